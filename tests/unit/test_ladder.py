"""Cards as sysfs shows them: what kind of link that is, which rung of the ladder, and what the containers are told."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strixd import collectives
from strixd.host.hardware import SysfsCards
from strixd.ladder import GRACE, LOSSES, Verdict, Wanted, judge
from strixd.ports import Card, Firmware, Gid, RdmaPort
from strixd.quadlet import Container, link, render
from strixd.resources.completed import with_host
from strixd.resources.image import Report
from tests.laid_tree import lay
from tests.quadlet_text import environment

CASES = tomllib.loads((Path(__file__).parents[1] / "cases/link/cases.toml").read_text())
LATE = 1e12


async def _silent(interface: str, driver: str, address: str) -> Firmware:
    """Neither ethtool nor devlink says anything."""
    return Firmware()


def read(root: Path, interface: str) -> Card | None:
    return asyncio.run(SysfsCards(root, _silent).card(interface))


def asked(fabric: Mapping[str, Any]) -> Wanted:
    return Wanted(
        kind=fabric.get("kind", "auto"),
        allow_tcp=fabric.get("allow-tcp", True),
        dscp=fabric.get("dscp", 0),
        address="192.168.100.1",
        person=fabric.get("environment", {}),
    )


@pytest.mark.parametrize("case", CASES["case"], ids=lambda case: case["name"])
def test_a_card_in_sysfs_ends_in_kind_rung_and_environment(case: dict[str, Any], tmp_path: Path) -> None:
    lay(tmp_path, CASES["trees"].get(case.get("on"), "") + case.get("tree", ""))
    card = read(tmp_path, case.get("interface", "enp194s0np0"))
    assert (card is None) == case.get("absent", False)
    if card is None:
        return
    wanted = asked(case.get("wanted", {}))
    verdict = judge(wanted, card, LATE)
    assert verdict.kind == case["kind"]
    assert (verdict.condition, verdict.why) == (case.get("condition", "ok"), case.get("why", ""))
    assert case.get("mend", "") in verdict.hint or case.get("mend", "") in verdict.rdma.hint
    if verdict.condition == "ok":
        assert str(verdict.best) == case["rung"]
        assert verdict.rdma.why == case.get("lacks", verdict.rdma.why)
        told = collectives.told(verdict.best, wanted.dscp)
        assert told == case.get("environment", told)


def test_the_whole_card_is_read(tmp_path: Path) -> None:
    lay(tmp_path, CASES["trees"]["e810"])
    card = read(tmp_path, "enp194s0np0")
    assert card
    assert (card.driver, card.carrier, card.speed, card.mtu, card.changes, card.lost) == (
        "ice",
        True,
        100.0,
        9000,
        2,
        0,
    )
    assert card.pci
    assert (card.pci.address, card.pci.speed, card.pci.width) == ("0000:c2:00.0", 16.0, 4)
    assert (card.pci.max_speed, card.pci.max_width) == (16.0, 16)
    (port,) = card.ports
    assert (port.state, port.physical, port.layer, port.rate, port.mtu) == ("ACTIVE", "LinkUp", "Ethernet", 100.0, 4096)
    assert port.firmware == "1.71"
    assert port.gids == (
        Gid(0, "RoCE v2", "", "enp194s0np0"),
        Gid(1, "RoCE v2", "192.168.100.1", "enp194s0np0"),
    )


GOOD = Card(
    "eth1",
    driver="ice",
    carrier=True,
    ports=(RdmaPort("irdma0", 1, "RoCE", "ACTIVE", "LinkUp", gids=(Gid(3, "RoCE v2", "10.0.0.1", "eth1"),)),),
    since=1000.0,
)
ASKED = Wanted(address="10.0.0.1")
DOWN = replace(GOOD, ports=(replace(GOOD.ports[0], state="DOWN"),))


def verdict(card: Card, *, after: float, wanted: Wanted = ASKED) -> Verdict:
    """Judged so many seconds after all came to be so."""
    return judge(wanted, card, card.since + after)


@pytest.mark.parametrize(
    ("card", "wanted", "condition"),
    [
        (GOOD, ASKED, "ok"),
        (DOWN, ASKED, "waiting"),
        (replace(GOOD, ports=()), ASKED, "waiting"),  # irdma is not loaded yet
        (replace(GOOD, ports=(), driver="veth"), ASKED, "ok"),  # which never has any
        (replace(GOOD, ports=(), driver="veth"), replace(ASKED, kind="roce"), "waiting"),
        (replace(GOOD, ports=(), thunderbolt=True), ASKED, "ok"),
        (replace(GOOD, ports=(), firmware=Firmware(safe_mode=True)), ASKED, "ok"),
        (replace(GOOD, ports=(replace(GOOD.ports[0], transport="iWARP"),)), ASKED, "ok"),
        (replace(GOOD, lost=LOSSES), ASKED, "ok"),
        (DOWN, replace(ASKED, person={"NCCL_IB_DISABLE": "1"}), "ok"),
    ],
)
def test_what_may_still_come_is_waited_for(card: Card, wanted: Wanted, condition: str) -> None:
    assert verdict(card, after=GRACE - 1, wanted=wanted).condition == condition
    assert verdict(card, after=GRACE + 1, wanted=wanted).condition in ("ok", "blocked")


def test_a_link_that_flaps_carries_tcp() -> None:
    flapping = verdict(replace(GOOD, lost=LOSSES), after=0)
    assert flapping.best.name == "tcp"
    assert "lost its carrier or its RDMA port 3 times within 10 min" in flapping.rdma.why


def test_what_was_told_is_read_back_from_the_container() -> None:
    told = collectives.told(verdict(GOOD, after=0).best, 26)
    person = {"NCCL_IB_HCA": "mlx5_0", "OTHER": 'a "b" 100% \\n $x'}
    text = render(with_host(Container("x", "x", "i", ("c",), environment=person), Report(), told))
    assert environment(text) == {**told, **person}
    assert link(text) == told
    assert link("") == link("# keys: none\n# link: \n") == {}
    assert collectives.words(told, GOOD) == "RDMA (RoCE v2, irdma0 port 1, GID 3)"
    assert collectives.words(told, None) == "RDMA (RoCE v2, irdma0 port 1, GID 3)"
    assert collectives.name({}) is None


def test_every_variable_of_the_link_is_set_or_unset_for_certain() -> None:
    words = collectives.first_words({"NCCL_IB_HCA": "=irdma0:1", "VLLM_HOST_IP": "10.0.0.1", "PATH": "/bin"})
    assert "export NCCL_IB_HCA==irdma0:1; " in words
    assert "export VLLM_HOST_IP=10.0.0.1; " in words
    assert "unset NCCL_IB_GID_INDEX; " in words
    assert "PATH" not in words
    assert words.count(";") == len(collectives.OWN)


def test_what_the_person_says_against_it_is_told() -> None:
    derived = collectives.told(verdict(GOOD, after=0).best, 0)
    person = {"NCCL_IB_HCA": "mlx5_0", "NCCL_IB_TC": "106", "NCCL_IB_GID_INDEX": "3", "NCCL_DEBUG": "INFO"}
    assert collectives.contradictions(person, derived) == (
        "[image] environment says NCCL_IB_HCA=mlx5_0, and counts; strixd would say =irdma0:1",
        "[image] environment says NCCL_IB_TC=106, and counts; strixd would leave it unset",
    )
