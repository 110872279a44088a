"""Submits the units of a sweep to HyperQueue through its Python interface and waits for them.

    python submit.py submit.json

The server is the one whose directory HQ_SERVER_DIR names; without it a cluster of this process's own, with as many cores as this
machine has. Ends when its input ends, so that nothing of it outlives the sweep that started it.
"""

import json
import os
import sys
import threading

from hyperqueue import Client, Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
from hyperqueue.task.task import ResourceRequest


def end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def main() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    with open(sys.argv[1]) as file:
        told = json.load(file)
    with open(told["units"]) as file:
        units = json.load(file)
    # The default gives the whole job up at the first failure.
    job = Job(max_fails=None)
    for number, unit in enumerate(units):
        log = os.path.join(told["logs"], f"unit_{number}.log")
        job.program(
            told["command"],
            env={"HQ_ENTRY": json.dumps(unit)},
            stdout=None,
            stderr=log,
            resources=ResourceRequest(cpus=told["threads"]),
        )
    folder = os.environ.get("HQ_SERVER_DIR")
    if folder:
        client = Client(folder)
    else:
        cluster = LocalCluster()
        cluster.start_worker(WorkerConfig(cores=max(os.cpu_count() or 1, told["threads"])))
        client = cluster.client()
    client.wait_for_jobs([client.submit(job)], raise_on_error=False)
    # Threads of a cluster of our own would keep the process.
    os._exit(0)


main()
