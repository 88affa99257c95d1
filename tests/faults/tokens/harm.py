"""The verbs of which faults are made."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.e2e.cluster import Cluster
from tests.faults.tokens.fault import AWAY, Act
from tests.faults.tokens.processes import Kind, Process, processes
from tests.lab.host import Host, wait_for

STRANGER = "stranger"
# A program of somebody else's that wants a port, and takes it in the moment when it is free.
SEIZE = """\
import socket, time
while True:
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("{address}", {port}))
        break
    except OSError:
        taken.close()
        time.sleep(0.01)
taken.listen()
time.sleep(3600)
"""


def one(host: Host, kind: Kind) -> Process:
    found = [process for process in processes(host) if process.kind == kind]
    assert found, f"no {kind} runs on {host.name}"
    return found[0]


def signal(host: Host, kind: Kind, name: str = "KILL") -> None:
    host.run("kill", f"-{name}", str(one(host, kind).pid))


def signalled(place: int, kind: Kind, name: str = "KILL") -> Act:
    """`place`: 0 for the head, 1 for the worker, here and below."""
    return lambda cluster: signal(cluster.hosts[place], kind, name)


def run(place: int, script: str) -> Act:
    return lambda cluster: cluster.hosts[place].sh(script, timeout=90)


def everywhere(script: str) -> Act:
    return lambda cluster: [host.sh(script, timeout=90) for host in cluster.hosts]


def then(*acts: Act) -> Act:
    return lambda cluster: [act(cluster) for act in acts]


def waiting(seconds: float) -> Act:
    """For faults that are measured in time."""
    return lambda _cluster: time.sleep(seconds)


def seize(place: int, address: str, port: int) -> Act:
    """Somebody takes the port as soon as it is free, and keeps it."""
    script = SEIZE.format(address=address, port=port)

    def act(cluster: Cluster) -> None:
        words = ("systemd-run", "--quiet", "--collect", f"--unit={STRANGER}", "python3", "-c", script)
        cluster.hosts[place].run(*words)

    return act


def let_go(place: int) -> Act:
    return run(place, f"systemctl stop {STRANGER}.service 2>/dev/null || true")


@dataclass(frozen=True, slots=True)
class Said:
    """Waits until `strixd-cli status` on a node has a text that matches."""

    pattern: str
    place: int = 0
    timeout: float = 90.0

    def __call__(self, cluster: Cluster) -> None:
        host = cluster.hosts[self.place]
        wait_for(
            f"status on {host.name} says {self.pattern!r}",
            lambda: bool(told(cluster, host, self.pattern)),
            self.timeout,
        )


def told(cluster: Cluster, host: Host, pattern: str) -> list[str]:
    """The resources' sentences there that match."""
    with suppress(*AWAY):
        return [each["why"] for each in cluster.status(host)["resources"] if re.search(pattern, each["why"])]
    return []


def starts(host: Host, since: float) -> int:
    """How often strixd took a step that starts a workload."""
    return sum(": start strixd-" in line.get("MESSAGE", "") for line in host.journal(since))


def no_loop(act: Act, at_most: int) -> Act:
    """While that is done, workloads are started so many times at most, on all hosts together."""

    def watched(cluster: Cluster) -> None:
        began = time.time()
        act(cluster)
        count = sum(starts(host, began) for host in cluster.hosts)
        assert count <= at_most, f"{count} starts of workloads: a loop"

    return watched


def wait(what: str, question: Callable[[], bool], timeout: float = 300) -> None:
    wait_for(what, question, timeout, pause=0.1)
