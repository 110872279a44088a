"""Sweeps on real clusters that are disturbed, for `cargo xtask cluster`.

    python run.py ICTD [--seed SEED] [SCENARIO ...]

One plan is swept by threads of this machine, by a Slurm and by a HyperQueue that are started here, while workers, nodes, schedulers
and the command itself are killed at random moments. Every time the files at the end have to be the same to the byte, and no run may
have two records. The table of what was done goes to standard output; the exit code is 1 when something was not as it should be.

All of it happens in namespaces of this program's own: its daemons cannot be reached from elsewhere, and the system ends them with it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab import Failed, Lab, check
from scenarios import SCENARIOS, Round

COLUMNS = ("engine", "what was done to it", "times", "seconds", "records", "repeated", "cut short", "same bytes")


def row(engine, what, own, seconds, outcome):
    records = own.records
    numbers = [records.found.total(), records.repeated, records.damaged] if records else ["-"] * 3
    return [engine, what, own.kills, f"{seconds:.0f}", *numbers, outcome]


def show(rows):
    widths = [max(len(str(cells[k])) for cells in rows) for k in range(len(COLUMNS))]
    rows = [rows[0], ["-" * width for width in widths], *rows[1:]]
    for cells in rows:
        print("  ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, widths)).rstrip())


def run(lab, wanted):
    """Whether all scenarios end as they should."""
    rows, expected, holds = [COLUMNS], None, True
    for name, (engine, what, scenario) in SCENARIOS.items():
        # The first one is what the others are compared with.
        if expected is not None and wanted and name not in wanted:
            continue
        own = Round(lab, name, expected)
        start = time.monotonic()
        try:
            scenario(own)
            # Those that are called as their engine disturb nothing.
            check(own.kills > 0 or name == engine, "the sweep was over before anything was done to it")
            outcome = "yes"
        except Failed as problem:
            outcome = "FAILED"
            holds = False
            print(f"{name}: {problem}", file=sys.stderr)
        rows.append(row(engine, what, own, time.monotonic() - start, outcome))
        print(f"{name}: {outcome}, {time.monotonic() - start:.0f} s", file=sys.stderr)
        expected = expected or own.results
        if expected is None:
            break
    show(rows)
    return holds


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ictd", type=Path, help="the program")
    parser.add_argument("--seed", type=int, default=1, help="what the random moments are drawn from")
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help="those alone")
    told = parser.parse_args()
    unknown = [name for name in told.scenario if name not in SCENARIOS]
    if unknown:
        parser.error(f"SCENARIO is '{unknown[0]}', expected one of {', '.join(SCENARIOS)}")
    return told


def main():
    told = arguments()
    if os.geteuid() != 0 or sys.platform != "linux":
        raise SystemExit("error: daemons and file systems of its own need root on Linux")
    if os.getpid() != 1:
        # The first process of its namespace, with whose end all others end.
        own = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        os.execvp("unshare", ["unshare", *own, sys.executable, "-B", *sys.argv])
    # Slurm asks for addresses of a kind that this machine has, and 127.0.0.1 does not count: so one that is nobody's (RFC 5737).
    for words in (["link", "set", "lo", "up"], ["address", "add", "192.0.2.1/32", "dev", "lo"]):
        subprocess.run(["ip", *words], check=True)
    scratch = Path(tempfile.mkdtemp(prefix="ictd-cluster-"))
    # Where the package of HyperQueue leaves folders behind when it is killed.
    os.environ["TMPDIR"] = str(scratch)
    # What the command submits to HyperQueue with.
    os.environ["ICTD_PYTHON"] = sys.executable
    holds = run(Lab(scratch, told.ictd.resolve(), told.seed), told.scenario)
    if holds:
        shutil.rmtree(scratch, ignore_errors=True)
    else:
        print(f"what was written is kept in {scratch}", file=sys.stderr)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
