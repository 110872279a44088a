"""A Slurm of this machine's own: authentication, a controller, two nodes.

Every node has process numbers of its own (a PID namespace, whose first process stands for the machine): when that first process is
killed, daemon, steps and tasks are gone at once, as they are when the power fails.
"""

import os
import socket

from lab import Cluster, child_of, end, kill, until

NODES = (1, 2)
# Enough for all units of a sweep on one node, so that what a lost node did is begun elsewhere at once.
CPUS = 4
# Seconds between a change and the moment when the controller has surely saved it: jobs younger than that die with it, and their
# numbers are given out again. Slurm saves every five.
SAVED = 7
# Seconds in which Slurm declares a silent node dead (measured: 26 to 28) and begins its elements elsewhere (cred_expire, below).
REQUEUED = 90

CONFIG = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=6817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# Elements of a lost node wait until their credentials have expired, two minutes unless told otherwise.
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
# No control groups: they need a service manager.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=5,sched_min_interval=100000,bf_interval=5,batch_sched_delay=0
ReturnToService=2
SlurmdTimeout=10
SlurmdParameters=config_overrides
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName=node{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=2000\n"
# The first process of a node: it waits for those whose parents died.
MACHINE = "while :; do sleep 86400 & wait $!; done"


class Slurm(Cluster):
    def __init__(self, lab, name):
        self.lab = lab
        self.folder = lab.scratch / name
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self.munged = self.controller = None
        self.machines, self.daemons = {}, {}

    def begin(self):
        for part in ("state", "keys"):
            (self.folder / part).mkdir(parents=True)
        host = socket.gethostname().split(".")[0]
        text = CONFIG.format(host=host, folder=self.folder)
        text += "".join(NODE.format(n=n, host=host, port=6817 + n, cpus=CPUS) for n in NODES)
        (self.folder / "slurm.conf").write_text(text)
        self.start_munge()
        self.start_controller()
        for n in NODES:
            self.start_node(n)

    def stop(self):
        for n in NODES:
            self.kill_machine(n)
        for process in (self.controller, self.munged):
            if process:
                end(process)

    def start(self, command):
        return self.lab.start(command, self.folder / f"{command[0]}.out", self.environment)

    def ask(self, *command):
        """What a command of Slurm's prints; nothing where it fails."""
        answer = self.lab.ask(command, self.environment)
        return answer.stdout.strip() if answer.returncode == 0 else ""

    def start_munge(self):
        key = self.folder / "keys" / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        key.parent.chmod(0o700)
        own = {"socket": "munge.sock", "key-file": key, "log-file": "munged.log", "pid-file": "munged.pid", "seed-file": "keys/seed"}
        files = [f"--{option}={self.folder / name}" for option, name in own.items()]
        # Folders below /tmp are for everybody; that would be refused otherwise.
        self.munged = self.start(["munged", "--force", "--foreground", *files])
        until((self.folder / "munge.sock").exists, 20, "munged")

    def start_controller(self):
        self.controller = self.start(["slurmctld", "-D"])
        until(lambda: "is UP" in self.ask("scontrol", "ping"), 20, "slurmctld")

    def kill_controller(self):
        end(self.controller)

    def release(self):
        """What an operator does where elements were begun twice, because their first beginning was lost with the controller: the
        node was closed for that, and they are held until somebody has looked."""
        for n in NODES:
            if "drain" in self.state(n):
                self.ask("scontrol", "update", f"NodeName=node{n}", "State=RESUME")
        held = [line.split("|")[0] for line in self.ask("squeue", "-h", "-r", "-o", "%i|%r").splitlines() if "held" in line]
        for element in held:
            self.ask("scontrol", "release", element)

    def state(self, n):
        return self.ask("sinfo", "-h", "-N", "-n", f"node{n}", "-o", "%t")

    def start_node(self, n):
        if n not in self.machines:
            outer = self.start(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", MACHINE])
            self.machines[n] = outer, child_of(outer)
        inner = self.machines[n][1]
        entered = self.start(["nsenter", "-t", inner, "-p", "-m", "slurmd", "-D", "-N", f"node{n}"])
        self.daemons[n] = entered, child_of(entered)
        # A node that is not heard of has a star behind its state.
        until(lambda: self.state(n) in ("idle", "mix", "alloc", "comp"), 60, f"node{n}")

    def kill_daemon(self, n):
        """Ends the daemon of a node; its tasks go on."""
        if n in self.daemons:
            entered, daemon = self.daemons.pop(n)
            kill(daemon)
            entered.wait()

    def kill_machine(self, n):
        """Ends all of a node, as a power failure does."""
        if n in self.machines:
            outer, inner = self.machines.pop(n)
            kill(inner)
            outer.wait()
            self.kill_daemon(n)

    def workers(self, n, folder):
        """Those workers of a sweep that are on a node, and their units."""
        own = namespace(self.machines[n][1])
        return {pid: unit for pid, unit in self.lab.workers(folder).items() if namespace(pid) == own}

    def busiest(self, folder):
        """The node that has most workers of a sweep, and these, one at least."""
        most = lambda: max(((n, self.workers(n, folder)) for n in NODES), key=lambda found: len(found[1]))
        return until(lambda: (found := most())[1] and found, 30, "a worker")


def namespace(pid):
    """Which processes are numbered together with this one; `None` where it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None
