"""What may happen to the model's own processes, and at every phase of their start."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.e2e.cluster import Cluster
from tests.faults.tokens.fault import Fault
from tests.faults.tokens.harm import Said, let_go, run, seize, signal, signalled, then, wait
from tests.faults.tokens.processes import Kind, processes

Sign = Callable[[Cluster, float], bool]
HUNG = r"no completion|no counter moves|does not answer|hung|stopped answering"
ENDED = r"ended with status 0|killed by signal"


def appears(place: int, kind: Kind) -> Sign:
    """A process of that kind, of the new run."""
    return lambda cluster, since: any(
        each.kind == kind and each.began > since for each in processes(cluster.hosts[place])
    )


def says(words: str) -> Sign:
    """The new run has logged that. `since` counts from the machine's boot."""

    def sign(cluster: Cluster, since: float) -> bool:
        epoch = since + time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        lines = cluster.head.journal(epoch)
        return any(words in line.get("MESSAGE", "") for line in lines if "vllm" in line.get("_SYSTEMD_UNIT", ""))

    return sign


def listens(cluster: Cluster, since: float) -> bool:
    """The new server has its port, and has not yet been asked."""
    return appears(0, "server")(cluster, since) and bool(cluster.head.sh("ss -Hltn sport = :8000"))


def crash(phase: str, sign: Sign, place: int, kind: Kind) -> Fault:
    """The server is killed, and in the start that follows a process once more, at that sign."""

    def harm(cluster: Cluster) -> None:
        since = time.clock_gettime(time.CLOCK_BOOTTIME)
        signal(cluster.head, "server")
        wait("that phase of the start", lambda: sign(cluster, since))
        wait(f"a {kind} to kill", lambda: appears(place, kind)(cluster, since))
        signal(cluster.hosts[place], kind)

    return Fault(f"crash {phase}", harm, r"killed by signal 9")


FAULTS = (
    Fault("server killed", signalled(0, "server"), r"killed by signal 9"),
    Fault("engine killed", signalled(0, "engine"), ENDED),
    Fault("rank killed on the head", signalled(0, "rank"), ENDED),
    Fault("rank killed on the worker", signalled(1, "rank"), ENDED),
    Fault("engine hangs", signalled(0, "engine", "STOP"), HUNG),
    Fault("rank hangs on the worker", signalled(1, "rank", "STOP"), HUNG),
    Fault("rank hangs on the head", signalled(0, "rank", "STOP"), HUNG),
    Fault(
        "500 to every completion",
        run(0, "touch /var/lib/strixd/models/lab/sick"),
        r"HTTP 500 to a completion",
    ),
    Fault(
        "port 8000 taken at the start",
        then(seize(0, "127.0.0.1", 8000), signalled(0, "server")),
        r"killed by signal 9",
        meanwhile=Said(r"8000.*(stranger|python3)"),
        mend=let_go(0),
    ),
    crash("while it imports", appears(0, "server"), 0, "server"),
    crash("when the engine appears", appears(0, "engine"), 0, "engine"),
    crash("at the placement", appears(1, "rank"), 1, "rank"),
    crash("while weights load", says("Starting to load model"), 1, "rank"),
    crash("before the first completion", listens, 0, "server"),
)
