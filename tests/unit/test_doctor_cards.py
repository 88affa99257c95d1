"""The cards of tests/cases/link as doctor sees them: what could not be read is never ok."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import pytest

from strixd.config import parse
from strixd.doctor.checks import network, rdma
from strixd.doctor.facts import Own
from strixd.doctor.finding import Verdict
from strixd.host.hardware import SysfsCards
from strixd.orders import Orders
from strixd.ports import Card, Firmware
from tests.cluster_file import cluster_file
from tests.laid_tree import lay

CASES = tomllib.loads((Path(__file__).parents[1] / "cases/link/cases.toml").read_text())
SECTIONS = """\
[fabric]
kind = "{kind}"
allow-tcp = {tcp}
[image]
environment = {{ {environment} }}
"""
UNREAD = {"state-that-cannot-be-read", "kind-of-device-that-cannot-be-read", "carrier-that-cannot-be-read"}
"""Something that decides is not known."""
WITHOUT = {
    "roce-that-is-not-wanted",
    "rdma-that-the-person-turns-off",
    "thunderbolt-40",
    "thunderbolt-20",
    "thunderbolt-on-one-lane",
    "thunderbolt-whose-rate-is-unknown",
    "thunderbolt-renumbered",
    "plain-ethernet",
}
"""TCP is all that there is, or all that is wanted."""
RATES: dict[str, Verdict] = {
    "thunderbolt-40": "ok",
    "thunderbolt-20": "warning",
    "thunderbolt-on-one-lane": "warning",
    "thunderbolt-whose-rate-is-unknown": "unknown",
    "e810-good": "ok",
}


async def _silent(interface: str, driver: str, address: str) -> Firmware:
    """Neither ethtool nor devlink says anything."""
    return Firmware()


def read(case: dict[str, Any], root: Path) -> Card | None:
    lay(root, CASES["trees"].get(case.get("on"), "") + case.get("tree", ""))
    return asyncio.run(SysfsCards(root, _silent).card(case.get("interface", "enp194s0np0")))


def own(case: dict[str, Any]) -> Own:
    wanted = case.get("wanted", {})
    sections = SECTIONS.format(
        kind=wanted.get("kind", "auto"),
        tcp=str(wanted.get("allow-tcp", True)).lower(),
        environment=", ".join(f'{name} = "{value}"' for name, value in wanted.get("environment", {}).items()),
    )
    card = f'interface = "{case.get("interface", "enp194s0np0")}"'
    config = parse(cluster_file(sections, card=card), "cluster.toml").config
    return Own(config, config.head)


def expected(case: dict[str, Any]) -> Verdict:
    if case["name"] in UNREAD:
        return "unknown"
    if case.get("condition", "ok") != "ok":
        return "fault"
    if case["name"] in WITHOUT:
        return "ok"
    return "ok" if case["rung"].startswith("RDMA") else "warning"


@pytest.mark.parametrize("case", CASES["case"], ids=lambda case: case["name"])
def test_rdma_of_each_card(case: dict[str, Any], tmp_path: Path) -> None:
    card = read(case, tmp_path)
    judged = rdma.rdma(card, own(case), Orders())
    if card is None:
        assert judged is None
        return
    assert judged
    assert judged.verdict == expected(case), judged.read
    assert case.get("why", "") in judged.read
    assert case.get("mend", "") in judged.mend
    assert judged.mend or judged.verdict == "ok"


@pytest.mark.parametrize("name", RATES)
def test_rate_of_the_link(name: str, tmp_path: Path) -> None:
    case = next(each for each in CASES["case"] if each["name"] == name)
    judged = network.speed(read(case, tmp_path))
    assert judged
    assert judged.verdict == RATES[name]
