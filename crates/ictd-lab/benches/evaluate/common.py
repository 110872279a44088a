"""What the studies share: calling the program as a user does, measuring it, and saying what holds."""

import hashlib
import importlib.util
import json
import math
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path("target/release/ictd")
WORK = pathlib.Path("target/evaluate-bench")

# A process of a few megabytes between this one and what it measures: the peak of a child begins at the size of its parent.
MEASURE = """
import json, os, subprocess, sys, time
out, err, result, *command = sys.argv[1:]
with open(out, "wb") as o, open(err, "wb") as e:
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=o, stderr=e)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
with open(result, "w") as r:
    json.dump([os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss / 1024], r)
"""


class Run:
    """A command that has ended: exit code, seconds, peak of memory in MiB, and what it printed."""

    def __init__(self, command):
        WORK.mkdir(parents=True, exist_ok=True)
        # Two studies may run at a time.
        with tempfile.TemporaryDirectory(dir=WORK) as folder:
            out, err, result = (pathlib.Path(folder) / name for name in ("out", "err", "usage"))
            subprocess.run([sys.executable, "-S", "-c", MEASURE, out, err, result, *map(str, command)], check=True)
            self.code, self.seconds, self.peak = json.loads(result.read_text())
            self.out, self.err = out.read_text(), err.read_text()


class Evaluation(Run):
    """`ictd evaluate … --json`. A judgement of refuse, code 3, is an answer too."""

    def __init__(self, log, gamma, *options):
        super().__init__([PROGRAM, "evaluate", log, "--gamma", gamma, "--json", *options])
        if self.code not in (0, 3):
            raise SystemExit(f"ictd evaluate {log} {' '.join(map(str, options))}: code {self.code}\n{self.err}")
        self.answer = json.loads(self.out)
        self.judgement, self.reasons = self.answer["judgement"], self.answer["reasons"]
        self.chosen, self.rows = self.answer["chosen"], self.answer["rows"]

    def column(self, name):
        """A number of every row; what JSON cannot say is NaN."""
        return [math.nan if row[name] is None else row[name] for row in self.rows]


class KeptEvaluation(Evaluation):
    """The same, or what an earlier run of the same program on the same files said: a study of an hour can be interrupted. The
    states of rows are not kept."""

    def __init__(self, log, gamma, *options):
        digest = hashlib.sha256()
        for part in (PROGRAM, log, gamma, *options):
            content = part.read_bytes() if isinstance(part, pathlib.Path) else str(part).encode()
            digest.update(f"{len(content)}:".encode() + content)
        path = WORK / "kept" / f"{digest.hexdigest()}.json"
        if path.exists():
            vars(self).update(json.loads(path.read_text()))
            return
        super().__init__(log, gamma, *options)
        # Nobody reads these again.
        del self.out, self.answer
        for row in self.rows:
            del row["state"]
        path.parent.mkdir(exist_ok=True)
        # Renamed when complete.
        part = path.with_suffix(".part")
        part.write_text(json.dumps(vars(self)))
        part.rename(path)


class Criteria:
    """What was to be shown, decided before looking."""

    def __init__(self):
        self.all_hold = True

    def check(self, holds, text):
        # A comparison with NaN is false, and so does not hold.
        self.all_hold &= bool(holds)
        print(f"- {'holds' if holds else 'does not hold'}: {text}", flush=True)


def say(text):
    """Progress, beside the results."""
    print(f"bench evaluate: {text}", file=sys.stderr, flush=True)


def folder_of(package):
    """Where an installed package lies, without running any of it."""
    return pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])


def mean_and_error(values):
    """The mean of independent repetitions and its standard error."""
    n = len(values)
    mean = math.fsum(values) / n
    return mean, math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (n - 1) / n)
