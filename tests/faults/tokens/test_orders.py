"""Orders on a worker that the head knows nothing of."""

from __future__ import annotations

import json

import pytest

from tests.e2e.cluster import TOKENS, Cluster
from tests.lab.host import wait_for
from tests.lab.judge import GOING_DOWN, Judge

pytestmark = pytest.mark.lab


def test_restart_of_ray_on_a_worker_waits_until_it_has_joined(cluster: Cluster, judge: Judge) -> None:
    """The head knows nothing of that order: for it this is a fault, told as one."""
    judge.expect(*GOING_DOWN)
    known = {each["id"] for each in json.loads(cluster.cli("incidents", "--json").check().stdout)}
    assert "2 of 2 members" in cluster.cli("restart", "ray", host=cluster.workers[0]).check().stdout

    def over() -> bool:
        newest = json.loads(cluster.cli("incidents", "1", "--json").check().stdout)
        return bool(newest) and newest[0]["id"] not in known and newest[0]["ended"] > 0

    wait_for("the incident is over", over, TOKENS, pause=1.0)
    assert cluster.complete()
