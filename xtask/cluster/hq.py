"""A HyperQueue of this machine's own, from the package on PyPI.

The package's local cluster has its server and its workers in threads of one process, where no worker can be killed by itself. Here
each is a process of its own: `python hq.py server DIR` and `python hq.py worker DIR`. A worker has an idle server of its own, whose
link `hq-current`, through which the package finds the server of a worker, is turned to the real one. It is the only thing that is
relied on that the package does not promise.
"""

import sys
import tempfile
import time
from pathlib import Path

from lab import Cluster, end, until

WORKERS = (0, 1)
CORES = 2
LINK = "hq-current"


class HyperQueue(Cluster):
    def __init__(self, lab, name):
        self.lab = lab
        self.folder = lab.scratch / name
        self.environment = {"HQ_SERVER_DIR": str(self.folder)}
        self.server = None
        self.workers = {}

    def begin(self):
        self.folder.mkdir()
        self.server = self.start("server")
        until((self.folder / LINK / "access.json").exists, 20, "the server of HyperQueue")
        for k in WORKERS:
            self.start_worker(k)

    def stop(self):
        for process in [*self.workers.values(), self.server]:
            if process:
                end(process)

    def start(self, part):
        return self.lab.start([sys.executable, "-B", __file__, part, self.folder], self.folder / f"{part}.out")

    def start_worker(self, k):
        self.workers[k] = self.start("worker")

    def kill_worker(self, k):
        end(self.workers.pop(k))


def serve(folder):
    from hyperqueue import LocalCluster

    return LocalCluster(server_dir=str(folder))


def work(folder):
    from hyperqueue.cluster import WorkerConfig

    own = Path(tempfile.mkdtemp(prefix="worker", dir=folder))
    cluster = serve(own)
    link = own / LINK
    link.unlink()
    link.symlink_to((folder / LINK).resolve())
    cluster.start_worker(WorkerConfig(cores=CORES))
    return cluster


if __name__ == "__main__":
    part, folder = sys.argv[1], Path(sys.argv[2])
    # What is not held on to ends.
    cluster = {"server": serve, "worker": work}[part](folder)
    # SIGTERM keeps its meaning: tasks inherit what is blocked, and it is what they get when their worker dies.
    while True:
        time.sleep(3600)
