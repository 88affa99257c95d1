"""The cluster.toml that the lab lays is one that the product takes."""

from __future__ import annotations

from strixd.config.loading import parse
from tests.lab import registry
from tests.lab.cluster import cluster_toml
from tests.lab.host import Host
from tests.lab.layout import seats


def test_the_product_takes_the_labs_file() -> None:
    three = seats(("halo1", "halo2", "halo3"))
    text = cluster_toml([Host(seat, three) for seat in three], {"model": {"port": 8001, "eager": True}})
    config = parse(text, "cluster.toml").config
    assert config.image.reference == registry.REFERENCE
    assert [node.name for node in config.nodes] == ["halo1", "halo2", "halo3"]
    assert config.model.port == 8001
