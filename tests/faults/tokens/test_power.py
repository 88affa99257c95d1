"""Power comes back to one node after the other, and tokens with it."""

from __future__ import annotations

import pytest

from tests.e2e.cluster import Cluster
from tests.lab.host import wait_for
from tests.lab.judge import GOING_DOWN, Judge

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("first", ["both", "head", "worker"])
def test_power_loss_of_both_and_any_order_of_starts(cluster: Cluster, judge: Judge, first: str) -> None:
    judge.expect(*GOING_DOWN)
    for host in cluster.hosts:
        host.kill()
    order = cluster.hosts if first != "worker" else tuple(reversed(cluster.hosts))
    order[0].boot()
    if first != "both":
        wait_for("it waits for the other", lambda: cluster.status(order[0])["passes"] > 3, 60, pause=1.0)
        assert not cluster.head.is_up() or not cluster.complete(timeout=1)
    order[1].boot()
    cluster.wait_for_tokens()
