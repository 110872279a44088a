"""What happens to sweeps: one function each, from the beginning of a sweep to its table."""

import contextlib
import os
import signal
import subprocess
import threading
import time

from hq import HyperQueue
from lab import check, end, kill, until
from slurm import NODES, REQUEUED, SAVED, Slurm
from sweeps import BYTES, RUNS, Sweep

# Runs of a unit that an engine starts: a dozen units, some for everyone who works at once.
CHUNK = 10
# Seconds in which an engine has a worker, as long as there is something to do.
BETWEEN = 120
# Seconds in which the command ends when it is told to: one is promised, and this machine is busy.
PROMPT = 2.0
# What the sweep says when an engine keeps its units waiting until somebody has looked.
HELD = "will not go on by itself"


class Round:
    """One sweep that is disturbed: what the scenarios have in common, and what is to be told of it."""

    def __init__(self, lab, name, expected):
        self.lab = lab
        self.name = name
        # The files of the sweep that nobody disturbed; `None` for that one.
        self.expected = expected
        self.kills = 0
        self.records = self.results = None

    def sweep(self, engine="local", environment=None):
        options = [] if engine == "local" else ["--engine", engine, "--chunk", CHUNK]
        return Sweep(self.lab, self.name, options, environment)

    def moments(self, number, last=0.9):
        """Shares of all runs at which something happens, in order."""
        return sorted(self.lab.random.uniform(0.05, last) for _ in range(number))

    def pause(self, longest):
        time.sleep(self.lab.random.uniform(0, longest))

    def kill_worker(self, sweep):
        """Ends the process of a unit, as soon as there is one."""
        self.pause(0.5)
        workers = lambda: list(self.lab.workers(sweep.folder))
        until(lambda: sweep.is_over() or workers(), BETWEEN, "a worker")
        if found := workers():
            kill(self.lab.random.choice(found))
            self.kills += 1

    def kill_command(self, sweep):
        """Ends the command, and gives it again."""
        self.pause(0.5)
        end(sweep.process)
        self.kills += 1
        sweep.start()

    def disturb(self, sweep, *disturbances):
        """Lets things happen to a sweep in random order at random moments."""
        disturbances = self.lab.random.sample(disturbances, len(disturbances))
        sweep.start()
        for share, happen in zip(self.moments(len(disturbances)), disturbances):
            sweep.reach(share)
            happen(sweep)
        self.finish(sweep)

    def finish(self, sweep):
        sweep.finish()
        self.records, self.results = sweep.records(), sweep.results()
        # A run that was cut off left no record, and who is given it after that waits until nobody else is at it: so not even those
        # that were in flight have two.
        check(self.records.repeated == 0, f"{self.records.repeated} records are of runs that had one")
        expected = self.results if self.expected is None else self.expected
        other = sorted(name for name in {*expected, *self.results} if expected.get(name) != self.results.get(name))
        check(not other, f"{len(other)} files are not those of a sweep that nobody disturbed, among them {other[:1]}")


def one_line(code, words, expected, part):
    """An error is one line, the last one, and says what is wrong."""
    lines = words.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    holds = code == expected and len(errors) == 1 and lines[-1:] == errors and part in errors[0]
    check(holds, f"ended with {code} and '{words.strip()}', expected {expected} and a line with '{part}'")


def refuse_second(sweep):
    """The same command in the same folder at the same time."""
    second = sweep.ask()
    one_line(second.returncode, second.stderr, 1, "in use by process")


# On this machine.


def local(own):
    with own.sweep() as sweep:
        own.disturb(sweep)


def local_command(own):
    with own.sweep() as sweep:
        sweep.start()
        # The last one when the table is due.
        for share in [*own.moments(4), 1.0]:
            sweep.reach(share)
            own.kill_command(sweep)
        own.finish(sweep)


def local_signals(own):
    def stop(number):
        def happen(sweep):
            refuse_second(sweep)
            start = time.monotonic()
            sweep.process.send_signal(number)
            code, seconds = sweep.ended(), time.monotonic() - start
            check(code == 124 and seconds < PROMPT, f"{number.name}: ended with {code} after {seconds:.1f} s")
            own.kills += 1
            sweep.start()

        return happen

    with own.sweep() as sweep:
        own.disturb(sweep, *map(stop, [signal.SIGINT, signal.SIGTERM] * 2))


def local_disk(own):
    """A file system that is full, and is made larger."""
    with own.sweep() as sweep:
        sweep.folder.mkdir()
        mount = lambda options: subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", sweep.folder], check=True)
        remount = ""
        for share in own.moments(3):
            mount(f"{remount}size={int(share * BYTES)}")
            remount = "remount,"
            sweep.start()
            one_line(sweep.ended(), sweep.words(), 1, "No space left on device")
            own.kills += 1
        mount("remount,size=1g")
        sweep.start()
        own.finish(sweep)


def local_workers(own):
    """Workers that are started by hand, as any scheduler does."""
    quarter = RUNS // 4
    parts = [f"{first}..{first + quarter}" for first in range(0, RUNS, quarter)]
    with own.sweep() as sweep:
        begin = lambda part: own.lab.start(sweep.command("--index", part, "--threads", 1), sweep.log)
        workers = {part: begin(part) for part in parts}
        for share in own.moments(6):
            sweep.reach(share)
            own.pause(0.5)
            part = own.lab.random.choice(parts)
            end(workers[part])
            own.kills += 1
            workers[part] = begin(part)
        for part, worker in workers.items():
            code = worker.wait()
            check(code == 0, f"the worker of {part} ended with {code}")
        sweep.start()
        own.finish(sweep)


# By Slurm.


@contextlib.contextmanager
def on_slurm(own):
    with Slurm(own.lab, f"slurm-{own.name}") as cluster, own.sweep("slurm", cluster.environment) as sweep:
        yield cluster, sweep


def slurm(own):
    with on_slurm(own) as (_, sweep):
        sweep.start()
        sweep.reach(0.2)
        refuse_second(sweep)
        own.finish(sweep)


def slurm_workers(own):
    with on_slurm(own) as (_, sweep):
        own.disturb(sweep, *[own.kill_worker] * 4)


def slurm_command(own):
    with on_slurm(own) as (_, sweep):
        own.disturb(sweep, *[own.kill_command] * 4)


def slurm_controller(own):
    def restart(sweep):
        # What is younger than that is lost with the controller, as it would be for everybody: see SAVED.
        until(lambda: sweep.submitted() + SAVED < time.time(), 60, "a job that is saved")
        cluster.kill_controller()
        own.kills += 1
        own.pause(5)
        cluster.start_controller()

    with on_slurm(own) as (cluster, sweep), operator(cluster, sweep):
        own.disturb(sweep, restart, restart)


@contextlib.contextmanager
def operator(cluster, sweep):
    """Somebody who looks after the cluster as soon as the sweep says that it needs that."""
    over = threading.Event()

    def attend():
        while not over.wait(1):
            if HELD in sweep.words():
                cluster.release()

    thread = threading.Thread(target=attend)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def slurm_daemon(own):
    """Daemons that come back before anybody gives them up."""

    def restart(_):
        node = own.lab.random.choice(NODES)
        cluster.kill_daemon(node)
        own.kills += 1
        own.pause(5)
        cluster.start_node(node)

    with on_slurm(own) as (cluster, sweep):
        own.disturb(sweep, restart, restart, restart)


def slurm_frozen(own):
    """A node that is given up while its workers live: theirs is begun elsewhere, and then they go on.

    They are stopped for that long, so that they are surely not done by then.
    """
    with on_slurm(own) as (cluster, sweep):
        sweep.start()
        sweep.reach(*own.moments(1, last=0.4))
        node, frozen = cluster.busiest(sweep.folder)
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        cluster.kill_daemon(node)
        own.kills += 1
        others = lambda: {unit for n in NODES if n != node for unit in cluster.workers(n, sweep.folder).values()}
        until(lambda: others() >= set(frozen.values()), REQUEUED, "the units of the node elsewhere")
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        own.finish(sweep)


def slurm_machine(own):
    """A node whose power fails, and that does not come back."""
    with on_slurm(own) as (cluster, sweep):
        sweep.start()
        sweep.reach(*own.moments(1, last=0.5))
        node, _ = cluster.busiest(sweep.folder)
        cluster.kill_machine(node)
        own.kills += 1
        own.finish(sweep)


# By HyperQueue.


@contextlib.contextmanager
def on_hyperqueue(own):
    with HyperQueue(own.lab, f"hq-{own.name}") as cluster, own.sweep("hyperqueue", cluster.environment) as sweep:
        yield cluster, sweep


def hyperqueue(own):
    """The package's own cluster, in the process that submits."""
    with own.sweep("hyperqueue") as sweep:
        own.disturb(sweep, refuse_second)


def hyperqueue_workers(own):
    def replace(_):
        own.pause(0.5)
        name = own.lab.random.choice(sorted(cluster.workers))
        cluster.kill_worker(name)
        own.kills += 1
        own.pause(2)
        cluster.start_worker(name)

    with on_hyperqueue(own) as (cluster, sweep):
        own.disturb(sweep, *[replace] * 4)


def hyperqueue_command(own):
    with on_hyperqueue(own) as (_, sweep):
        own.disturb(sweep, *[own.kill_worker, own.kill_command] * 2)


# By name: the engine, what is done to the sweep, and how. The first is what the others are compared with.
SCENARIOS = {
    "local": ("local", "nothing", local),
    "local-command": ("local", "the command killed", local_command),
    "local-signals": ("local", "Ctrl-C, SIGTERM; a second command meanwhile", local_signals),
    "local-disk": ("local", "the disk full", local_disk),
    "local-workers": ("--index, by hand", "workers killed", local_workers),
    "slurm": ("slurm", "a second command meanwhile", slurm),
    "slurm-workers": ("slurm", "workers killed", slurm_workers),
    "slurm-command": ("slurm", "the command killed", slurm_command),
    "slurm-controller": ("slurm", "the controller killed, and back", slurm_controller),
    "slurm-daemon": ("slurm", "a node's daemon killed, and back", slurm_daemon),
    "slurm-frozen": ("slurm", "a node's daemon killed; its workers go on later", slurm_frozen),
    "slurm-machine": ("slurm", "a node's power off", slurm_machine),
    "hyperqueue": ("hyperqueue", "a second command meanwhile", hyperqueue),
    "hyperqueue-workers": ("hyperqueue", "its workers killed", hyperqueue_workers),
    "hyperqueue-command": ("hyperqueue", "units and the command killed", hyperqueue_command),
}
