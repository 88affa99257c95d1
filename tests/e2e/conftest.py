"""A cluster of two lab hosts that serves the tiny model, once per module."""

from __future__ import annotations

import pytest

from tests.e2e.cluster import Cluster
from tests.lab.fixtures import Pair


@pytest.fixture(scope="module")
def cluster(pair: Pair) -> Cluster:
    """Configured, nothing started."""
    made = Cluster(pair)
    made.lay()
    return made


@pytest.fixture(scope="module")
def serving(cluster: Cluster) -> Cluster:
    """Started on both at once, and a first completion has come out."""
    cluster.start()
    cluster.serve()
    return cluster
