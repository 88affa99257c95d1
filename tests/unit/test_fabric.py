"""Which link is the fabric: by name, MAC or driver, and by the card that our profile is bound to."""

from __future__ import annotations

import pytest

from strixd.fabric import Fabric, pick
from strixd.ports import Link

ICE = Link("enp194s0np0", "50:7c:6f:00:00:01", "ice")
MOVED = Link("enp195s0np0", "50:7c:6f:00:00:01", "ice")
OTHER = Link("enp194s0np0", "50:7c:6f:00:00:09", "ice")
WAN = Link("eno1", "aa:00:00:00:00:01", "igc", default_route=True)
NAMED = Fabric(interface="enp194s0np0")
KNOWN = Fabric(interface="enp194s0np0", card=ICE.mac)

FOUND = [
    (NAMED, (ICE, WAN), ICE),
    (KNOWN, (ICE, WAN), ICE),
    (Fabric(mac=ICE.mac), (MOVED, WAN), MOVED),
    (Fabric(driver="ice"), (MOVED, WAN), MOVED),
    (KNOWN, (MOVED, WAN), MOVED),
    (KNOWN, (OTHER, WAN), OTHER),  # the card was replaced
    (KNOWN, (ICE, Link("enp194s0np0.7", ICE.mac), WAN), ICE),  # a VLAN has its card's MAC
    (Fabric(interface="eno1"), (WAN,), WAN),  # named outright
]


@pytest.mark.parametrize(("fabric", "links", "link"), FOUND)
def test_the_link_is_found(fabric: Fabric, links: tuple[Link, ...], link: Link) -> None:
    found = pick(fabric, links)
    assert found.link == link, found.why
    renamed = "enp194s0np0 of the file is called enp195s0np0 now (same card, MAC 50:7c:6f:00:00:01)"
    assert found.note == (renamed if fabric is KNOWN and link is MOVED else "")


REFUSED = [
    (NAMED, (MOVED, WAN), ("no link is interface enp194s0np0", "eno1, enp195s0np0")),
    (KNOWN, (WAN,), ("no link is interface enp194s0np0",)),
    (KNOWN, (OTHER, MOVED), ("enp194s0np0", "enp195s0np0", OTHER.mac, MOVED.mac)),
    (KNOWN, (MOVED, Link("bond0", ICE.mac)), ("bond0 and enp195s0np0",)),
    (Fabric(driver="ice"), (MOVED, OTHER), ("enp194s0np0 and enp195s0np0",)),
    (Fabric(driver="igc"), (WAN,), ("eno1 holds the default route",)),
    (Fabric(interface="enp1", card=WAN.mac), (WAN,), ("eno1 holds the default route",)),
]


@pytest.mark.parametrize(("fabric", "links", "words"), REFUSED)
def test_what_is_not_certain_is_refused(fabric: Fabric, links: tuple[Link, ...], words: tuple[str, ...]) -> None:
    found = pick(fabric, links)
    assert found.link is None
    assert all(word in found.why for word in words), found.why


def test_a_link_of_the_management_is_never_taken_under_any_name() -> None:
    found = pick(KNOWN, (MOVED,), management=("enp195s0np0",))
    assert "fabric.management" in found.why


def test_the_card_is_no_wish() -> None:
    assert NAMED == KNOWN
    assert repr(NAMED) == repr(KNOWN)
