"""A sweep that is started, disturbed and started again, and what its journal and its table say."""

import collections
import dataclasses
import zlib
from pathlib import Path

from lab import check, end, kill, until

PLAN = Path(__file__).parent / "plan.toml"
RUNS = 120
# What it writes, checkpoints above all, about.
BYTES = 30 << 20
# Every run says the same whoever does it; these are the files that have to be the same to the byte.
RESULTS = ("results.csv", "results.json", "curves/*.csv", "checkpoints.csv", "checkpoints/*/*.safetensors")
# A sweep that takes longer than this hangs.
PATIENCE = 300


@dataclasses.dataclass
class Records:
    """What the files of all workers say together."""

    found: collections.Counter
    damaged: int

    @property
    def repeated(self):
        return self.found.total() - len(self.found)


class Sweep:
    """A sweep in a folder of its own, by one command that is given again and again."""

    def __init__(self, lab, name, options=(), environment=None):
        self.lab = lab
        self.folder = lab.scratch / name
        self.log = lab.scratch / f"{name}.out"
        self.options = options
        self.environment = environment
        self.process = None
        self.said = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Nothing of it is left to disturb the next one, whatever became of it."""
        if self.process:
            end(self.process)
        for pid in self.lab.workers(self.folder):
            kill(pid)

    def command(self, *options):
        return [self.lab.ictd, "sweep", PLAN, "--out", self.folder, *options]

    def start(self):
        self.said = self.log.stat().st_size if self.log.exists() else 0
        self.process = self.lab.start(self.command(*self.options), self.log, self.environment)

    def words(self):
        """What the command has said since it was started last."""
        return self.log.read_bytes()[self.said :].decode() if self.log.exists() else ""

    def ask(self):
        """The same command once more, to its end."""
        return self.lab.ask(self.command(*self.options), self.environment)

    def submitted(self):
        """When a job was noted last, in seconds since 1970."""
        return (self.folder / "engine" / "job.json").stat().st_mtime

    def is_over(self):
        """Whether the command was given and has ended."""
        return self.process is not None and self.process.poll() is not None

    def ended(self):
        """The exit code of the command, once it has ended."""
        until(self.is_over, PATIENCE, "the end of the sweep")
        return self.process.returncode

    def records(self):
        """Counts the records of every run: lines of checksum, key of the setting, seed and results."""
        records = Records(collections.Counter(), 0)
        for path in (self.folder / "journal").glob("*.log"):
            *lines, rest = path.read_bytes().split(b"\n")
            records.damaged += rest != b""
            for line in lines:
                checksum, _, content = line.partition(b"\t")
                if checksum == b"%08x" % zlib.crc32(content):
                    records.found[tuple(content.split(b"\t")[:2])] += 1
                else:
                    records.damaged += 1
        return records

    def reach(self, share):
        """Waits until this share of all runs is done, or the command is."""
        is_reached = lambda: self.is_over() or len(self.records().found) >= share * RUNS
        until(is_reached, PATIENCE, f"{share:.0%} of the runs")

    def results(self):
        """The content of all files that count, by name."""
        paths = sorted(path for pattern in RESULTS for path in self.folder.glob(pattern))
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}

    def finish(self):
        """Waits for the table, and sees that asking for it again changes nothing."""
        code = self.ended()
        check(code == 0, f"ended with {code}: {self.words()}")
        table = self.folder / "results.csv"
        written = table.stat().st_mtime_ns
        again = self.ask()
        check(again.returncode == 0 and table.stat().st_mtime_ns == written, f"given again: {again.stderr}")
