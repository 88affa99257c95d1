"""What may happen to the model's own processes, and at every phase of their start."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.cluster import Cluster
from tests.faults.tokens.fault import Act, Fault
from tests.faults.tokens.harm import Said, let_go, no_loop, run, seize, signal, signalled, then, wait, waiting
from tests.faults.tokens.processes import Kind, Process, processes

HUNG = r"no completion|no counter moves|does not answer|hung|stopped answering"
SLOW = "/var/lib/strixd/models/lab/slow"
LONG = 1200  # seconds
ENDED = r"ended with status 0|killed by signal"


@dataclass(frozen=True, slots=True)
class Before:
    """What there was when the first run was killed, and when that was, in seconds of the epoch."""

    processes: frozenset[Process]
    at: float


Sign = Callable[[Cluster, Before], bool]


def new(cluster: Cluster, before: Before, place: int, kind: Kind) -> list[Process]:
    """The processes of that kind that are of the new run."""
    return [each for each in processes(cluster.hosts[place]) if each.kind == kind and each not in before.processes]


def appears(place: int, kind: Kind) -> Sign:
    return lambda cluster, before: bool(new(cluster, before, place, kind))


def says(words: str) -> Sign:
    """The new run has logged that."""

    def sign(cluster: Cluster, before: Before) -> bool:
        lines = cluster.head.journal_from_outside(before.at)
        return any(words in line.get("MESSAGE", "") for line in lines if "vllm" in line.get("_SYSTEMD_UNIT", ""))

    return sign


def listens(cluster: Cluster, before: Before) -> bool:
    """The new server has its port, and has hardly been asked."""
    return bool(new(cluster, before, 0, "server") and cluster.head.sh("ss -Hltn sport = :8000"))


def crash(phase: str, sign: Sign, place: int, kind: Kind) -> Fault:
    """The server is killed, and in the start that follows a process once more, at that sign."""

    def harm(cluster: Cluster) -> None:
        before = Before(frozenset(each for host in cluster.hosts for each in processes(host)), time.time())
        signal(cluster.head, "server")
        wait(f"the start is at the phase {phase!r}", lambda: sign(cluster, before))
        wait(f"a {kind} to kill", lambda: bool(new(cluster, before, place, kind)))
        cluster.hosts[place].run("kill", "-KILL", str(new(cluster, before, place, kind)[0].pid))

    return Fault(f"crash {phase}", harm, r"killed by signal 9")


def slow(words: str) -> Act:
    """How long the next start takes (middleware.py)."""
    return then(run(0, f"echo {words} > {SLOW}"), signalled(0, "server"))


def begun_anew_with_evidence(cluster: Cluster) -> None:
    found: list[str] = []

    def saved() -> bool:
        said = cluster.head.sh("journalctl -b -u strixd-evidence -o cat --no-pager")
        found[:] = re.findall(r"does not come up: for 120 s it has written nothing.* is in (\S+)", said)
        return bool(found)

    wait("it is given up, and evidence is saved", saved)
    assert "does not come up" in cluster.head.sh(f"cat {found[-1]}/summary.txt")


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
        r"port 8000 is taken by python3 \(pid \d+, stranger\.service\)",  # what keeps it away, not how it ended
        meanwhile=Said(r"8000.*(stranger|python3)"),
        mend=let_go(0),
    ),
    crash("while it imports", appears(0, "server"), 0, "server"),
    crash("when the engine appears", appears(0, "engine"), 0, "engine"),
    crash("at the placement", appears(1, "rank"), 1, "rank"),
    crash("while weights load", says("Starting to load model"), 1, "rank"),
    crash("before the first completion", listens, 0, "server"),
)
SLOW_STARTS = (
    Fault(
        "a start that stands still",
        slow("still"),
        r"killed by signal 9",
        meanwhile=begun_anew_with_evidence,
        mend=run(0, f"rm {SLOW}"),
    ),
    Fault(
        "a start of twenty minutes",
        slow(str(LONG)),
        r"killed by signal 9",
        meanwhile=no_loop(waiting(LONG), at_most=1),
        mend=run(0, f"rm {SLOW}"),
    ),
)
