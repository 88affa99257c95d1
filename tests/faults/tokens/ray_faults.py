"""What may happen to Ray: its processes, its containers, its port, and who believes in which of its sessions."""

from __future__ import annotations

import time
from functools import partial

from tests.e2e.cluster import Cluster
from tests.faults.tokens.fault import Fault
from tests.faults.tokens.harm import Said, let_go, one, run, seize, signalled, then, wait
from tests.faults.tokens.processes import processes
from tests.lab.host import Host

LONG = 120  # seconds that stand for an hour: past every time after which Ray or strixd could give up (60 s and less)
KILL = "kill -KILL $(podman inspect --format '{{.State.Pid}}' strixd-ray)"
"""Of its first process: `podman kill` waits for more, and fails where that comes late."""
HEAD_ENDED = r"strixd-ray.service|has not joined|Ray|does not answer"
RAY_ENDED = rf"{HEAD_ENDED}|strixd-vllm.service ended"
"""On the worker: the server may have ended, and been started again, before that is known on the head."""


def worker_long_before_the_head(cluster: Cluster) -> None:
    """The worker starts, and waits; nothing of it may loop, or tire."""
    cluster.head.kill()
    cluster.workers[0].reboot()
    Said(r"is not there yet|no carrier|carrier", place=1, timeout=LONG)(cluster)
    time.sleep(LONG)
    cluster.head.boot()


def began_after(head: Host, moment: float) -> bool:
    return any(each.kind == "raylet" and each.began > moment for each in processes(head))


def session_replaced(cluster: Cluster) -> None:
    """The worker is frozen while the head gets a new session, so it wakes up in a cluster that is gone."""
    head, worker = cluster.head, cluster.workers[0]
    gcs = one(head, "gcs")
    worker.freeze()
    try:
        head.sh(KILL)
        new = partial(began_after, head, gcs.began)
        wait("the head's new session", new)
    finally:
        worker.thaw()


FAULTS = (
    Fault("raylet killed on the worker", signalled(1, "raylet"), RAY_ENDED),
    Fault("raylet killed on the head", signalled(0, "raylet"), HEAD_ENDED),
    Fault("gcs killed", signalled(0, "gcs"), HEAD_ENDED),
    Fault("Ray's container killed on the head", run(0, KILL), HEAD_ENDED),
    Fault("Ray's container killed on the worker", run(1, KILL), RAY_ENDED),
    Fault("Ray's container removed on the head", run(0, "podman rm -f --depend strixd-ray"), HEAD_ENDED),
    Fault("Ray's container removed on the worker", run(1, "podman rm -f strixd-ray"), RAY_ENDED),
    Fault("the model's container removed", run(0, "podman rm -f strixd-vllm"), r"strixd-vllm.service"),
    Fault(
        "port 6379 taken at the start",
        then(seize(0, "0.0.0.0", 6379), run(0, KILL)),
        f"{HEAD_ENDED}|port 6379 is taken by python3",
        meanwhile=Said(r"6379.*(stranger|python3)"),
        mend=let_go(0),
    ),
    Fault("worker long before the head", worker_long_before_the_head),
    Fault("head's session replaced", session_replaced, HEAD_ENDED),
)
