"""Ranks that outlive their server, on two real hosts."""

from __future__ import annotations

import re

import pytest

from tests.e2e.cluster import Cluster
from tests.lab.host import Host, wait_for
from tests.lab.judge import GOING_DOWN, Judge

pytestmark = pytest.mark.lab

STAYS = "exec -a ray::RayWorkerProc.run sleep 900"
"""A process that calls itself a rank, and that Ray knows nothing of: nothing but the end of its container ends it."""
STILL_THERE = "of the former run (is|are) still there, on .*halo2"
"""Ranks of both nodes at first, should the head look before they have ended: the journal tells the first look only."""


def ranks(host: Host) -> list[str]:
    return host.sh("pgrep -f '^ray::RayWorker' || true").split()


def said(host: Host, pattern: str) -> bool:
    return re.search(pattern, host.sh("journalctl -b -u strixd -o cat --no-pager")) is not None


def shared_memory(host: Host) -> set[str]:
    return set(host.sh("podman exec strixd-ray ls /dev/shm").split())


def test_ranks_of_a_killed_server_end_before_the_next_starts_even_a_stopped_one(cluster: Cluster, judge: Judge) -> None:
    judge.expect(*GOING_DOWN)
    before = {host: ranks(host) for host in cluster.hosts}
    left = shared_memory(cluster.head)
    assert all(before.values())
    worker = cluster.workers[0]
    worker.run("kill", "-STOP", *before[worker])
    cluster.kill_server()
    cluster.wait_for_tokens()
    for host in cluster.hosts:
        assert not set(ranks(host)) & set(before[host])
    assert not shared_memory(cluster.head) & left


def test_a_rank_that_nothing_ends_goes_with_its_own_nodes_ray(cluster: Cluster, judge: Judge) -> None:
    judge.expect(*GOING_DOWN)
    worker = cluster.workers[0]
    worker.run("podman", "exec", "-d", "strixd-ray", "bash", "-c", STAYS)
    wait_for("it is there", lambda: len(ranks(worker)) == 2, 10, pause=0.2)
    cluster.kill_server()
    wait_for("the head waits", lambda: said(cluster.head, STILL_THERE), 30)
    wait_for("the worker acts", lambda: said(worker, r"\(1 rank of an ended model left over\)"), 60, pause=0.5)
    cluster.wait_for_tokens()
    assert len(ranks(worker)) == 1
    assert not said(cluster.head, "of an ended model left over"), "the head's own Ray ran on"
