"""A cluster of two lab hosts that serves the tiny model, once for all tests here: its start is the long part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.lab.fixtures import Pair
from tests.lab.install import install
from tests.lab.lab import Lab


@pytest.fixture(scope="package")
def bare_pair(lab: Lab) -> Iterator[Pair]:
    first, second = lab.new_hosts()
    yield first, second
    lab.remove_hosts()


@pytest.fixture(scope="package")
def cluster(bare_pair: Pair, packages: Path) -> Cluster:
    """Installed and configured, nothing started."""
    install(bare_pair, packages)
    made = Cluster(bare_pair)
    made.lay()
    return made


@pytest.fixture(scope="package")
def serving(cluster: Cluster) -> Cluster:
    """Started on both at once, and a first completion has come out."""
    cluster.start()
    cluster.serve()
    return cluster
