"""Brings the cluster back by force after a fault that it did not survive, so that the next fault has one to hurt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from tests.e2e.cluster import Cluster
from tests.faults.tokens.course import Course, table, undergo
from tests.faults.tokens.fault import AWAY, Fault
from tests.faults.tokens.harm import STRANGER
from tests.faults.tokens.processes import processes
from tests.lab.cache import say
from tests.lab.host import Host, wait_for
from tests.lab.judge import GOING_DOWN, Judge

DOWN = (
    "systemctl kill -s KILL strixd-vllm strixd-ray; systemctl stop strixd strixd-vllm strixd-ray; podman rm -fa; true"
)
UP = "systemctl reset-failed; systemctl start strixd.socket strixd"


class Undergo(Protocol):
    def __call__(self, fault: Fault, *, several: bool = False) -> Course: ...


@contextmanager
def undergoing(cluster: Cluster, judge: Judge, courses: list[Course]) -> Iterator[Undergo]:
    """Inside, the cluster can undergo a fault; it serves before, and it serves again afterwards."""
    judge.expect(*GOING_DOWN)
    if not serving(cluster):
        revive(cluster)
    forget(cluster)

    def course(fault: Fault, *, several: bool = False) -> Course:
        judge.expect(*fault.expected)
        courses.append(undergo(cluster, fault, several=several))
        say("\n".join((*table(courses[-1:]), *courses[-1].complaints)))
        return courses[-1]

    yield course
    if not serving(cluster):
        revive(cluster)


def serving(cluster: Cluster) -> bool:
    with suppress(*AWAY):
        return cluster.status()["phase"] == "ready" and bool(cluster.complete(timeout=5))
    return False


def revive(cluster: Cluster) -> None:
    """First what the fault may have left of itself, then ever stronger means."""
    for host in cluster.hosts:
        host.thaw()
        host.push_cable()
        host.boot()
        host.attempt("systemctl", "stop", f"{STRANGER}.service")
        for process in processes(host):
            host.attempt("kill", "-CONT", str(process.pid))
    for means in (_ask, _anew, _power):
        if serving(cluster):
            return
        means(cluster)
        with suppress(TimeoutError):
            wait_for("it serves", lambda: serving(cluster), 150, pause=1.0)
    assert serving(cluster), "the cluster cannot be revived"


def forget(cluster: Cluster) -> None:
    """An apply lifts every hold and the pace of restarts: each fault is judged for itself. Until that is through."""
    for host in cluster.hosts:
        cluster.cli("apply", host=host)
    wait_for("it serves", lambda: serving(cluster), 60, pause=1.0)


def _ask(cluster: Cluster) -> None:
    for host in cluster.hosts:
        cluster.cli("apply", host=host, timeout=60)


def _anew(cluster: Cluster) -> None:
    for host in cluster.hosts:
        host.attempt("bash", "-c", DOWN, timeout=120)
    for host in cluster.hosts:
        host.attempt("bash", "-c", UP, timeout=60)


def _power(cluster: Cluster) -> None:
    for host in cluster.hosts:
        host.kill()
    hosts: tuple[Host, ...] = cluster.hosts
    for host in hosts:
        host.start()
    for host in hosts:
        host.wait_booted()
