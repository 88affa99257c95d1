"""What the benches of a cluster begin with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.cluster import Cluster
from tests.lab.install import install
from tests.lab.lab import running_lab


@contextmanager
def served() -> Iterator[Cluster]:
    """Two lab hosts with this checkout's packages, whose model has answered."""
    with running_lab() as lab:
        cluster = Cluster(lab.new_hosts())
        install(cluster.hosts)
        cluster.lay()
        cluster.start()
        cluster.serve()
        yield cluster
