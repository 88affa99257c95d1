"""Brings the cluster back by force after a fault that it did not survive, so that the next fault has one to hurt."""

from __future__ import annotations

from contextlib import suppress

from tests.e2e.cluster import Cluster
from tests.faults.tokens.course import AWAY
from tests.faults.tokens.harm import STRANGER
from tests.faults.tokens.processes import processes
from tests.lab.host import Host, wait_for

DOWN = (
    "systemctl kill -s KILL strixd-vllm strixd-ray; systemctl stop strixd strixd-vllm strixd-ray; podman rm -fa; true"
)
UP = "systemctl reset-failed; systemctl start strixd.socket strixd"


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
