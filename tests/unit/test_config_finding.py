"""A node finds itself by name or by card, and says so when none or two match."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from strixd import config
from strixd.config import Config
from strixd.errors import CardAway, ConfigError

FULL = config.load(Path(__file__).parents[1] / "cases" / "config" / "full.toml")
CARD = "b4:96:91:00:00:02"  # of halo2


def called(*names: str) -> Config:
    return replace(FULL, nodes=tuple(replace(node, name=name) for node, name in zip(FULL.nodes, names, strict=True)))


@pytest.mark.parametrize(
    ("names", "hostname", "macs", "found"),
    [
        (("halo1", "halo2", "halo3"), "halo1", [], 0),
        (("halo1", "halo2", "halo3"), "halo3.lan", [], 2),
        (("halo1", "halo2", "halo3"), "HALO3.", [], 2),
        (("halo1.lan", "halo2.lan", "halo3.lan"), "halo3", [], 2),
        (("halo1", "halo1.lan", "halo3"), "halo1", [], 0),
        (("halo1", "halo1.lan", "halo3"), "halo1.lan", [], 1),
        (("x.a", "y.b", "x.c"), "x.c", [], 2),
        (("halo1", "halo2", "halo3"), "localhost", [CARD], 1),
        (("halo1", "halo2", "halo3"), "localhost", ["00:11:22:33:44:55", "B4-96-91-00-00-02"], 1),
        (("halo1", "halo2", "halo3"), "halo2", [CARD], 1),
    ],
)
def test_found(names: tuple[str, ...], hostname: str, macs: list[str], found: int) -> None:
    nodes = called(*names)
    assert config.find_node(nodes, hostname, macs) is nodes.nodes[found]


@pytest.mark.parametrize(
    ("names", "hostname", "macs", "words"),
    [
        (("halo1", "halo2", "halo3"), "fedora", [], ["cannot find", '"fedora"', "halo1, ", CARD, "none was seen"]),
        (("halo1", "halo2", "halo3"), "fedora", ["02:00:00:00:00:01"], ["cannot find", "02:00:00:00:00:01"]),
        (("halo1", "halo2", "halo3"), "", [""], ["cannot find", "hostnamectl"]),
        (("halo1.a", "halo2.a", "halo3.a"), "halo1.b", [], ["cannot find", '"halo1.b"', "halo1.a"]),
        (("halo1.a", "halo2", "halo1.b"), "halo1", [], ["cannot tell", "halo1.a and halo1.b"]),
        (("halo1", "halo2", "halo3"), "halo1", [CARD], ["cannot tell", "halo1 and halo2", CARD]),
    ],
)
def test_none_or_two(names: tuple[str, ...], hostname: str, macs: list[str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        config.find_node(called(*names), hostname, macs)
    assert isinstance(caught.value, CardAway) == (words[0] == "cannot find")  # two that match do with every card, too
    (complaint,) = caught.value.complaints
    assert complaint.startswith("node: ")
    for word in words:
        assert word in complaint


def test_no_word_of_cards_where_the_file_has_none() -> None:
    nodes = replace(FULL, nodes=tuple(replace(node, mac="") for node in FULL.nodes))
    with pytest.raises(ConfigError) as caught:
        config.find_node(nodes, "fedora", [CARD])
    assert not isinstance(caught.value, CardAway)
    assert "card" not in str(caught.value)
