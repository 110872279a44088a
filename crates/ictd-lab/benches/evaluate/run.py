"""Studies of `ictd evaluate` on data of others, for `cargo xtask bench evaluate [icu|minari|cdnow|speed]`.

Every number comes from the program as a user calls it. Tables go to standard output, progress to standard error; the exit code
is 1 when a criterion does not hold.
"""

import importlib
import os
import sys
import time

# Before NumPy is loaded: on small matrices threads that wait for each other cost more than they bring.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import common

STUDIES = {"icu": "icu", "minari": "minari_tasks", "cdnow": "cdnow", "speed": "speed"}


def main():
    wanted = sys.argv[1:] or list(STUDIES)
    unknown = [name for name in wanted if name not in STUDIES]
    if unknown:
        raise SystemExit(f"found study '{unknown[0]}', expected one of {', '.join(STUDIES)}")
    criteria = common.Criteria()
    for name in wanted:
        start = time.perf_counter()
        importlib.import_module(STUDIES[name]).study(criteria)
        common.say(f"{name}: {time.perf_counter() - start:.0f} s")
    sys.exit(0 if criteria.all_hold else 1)


if __name__ == "__main__":
    main()
