"""A fabric network that shares addresses with another link's is refused before anything is touched."""

from __future__ import annotations

import pytest
from test_settings import Living

from strixd.engine.hold import LONGEST, hold
from strixd.errors import CutsOff, NotSettled
from strixd.fabric import Pick, overlap
from strixd.ports import Link
from strixd.sim import World
from strixd.sim.world import FABRIC, MANAGEMENT
from tests.sim.node import virtual

OURS = Link(FABRIC, "", addresses=("192.168.100.1/30",))


@pytest.mark.parametrize(
    ("other", "found"),
    [
        ("192.168.100.0/30", True),
        ("192.168.100.2/24", True),
        ("192.168.0.9/16", True),
        ("192.168.100.1/32", True),
        ("192.168.100.5/30", False),
        ("10.0.0.5/24", False),
        ("127.0.0.1/8", False),
    ],
)
def test_which_networks_overlap(other: str, found: bool) -> None:
    links = (OURS, Link("eth0", "", addresses=("10.9.9.9/24", other)))
    words = f"192.168.100.1/30 of the file overlaps {other} of eth0" if found else ""
    assert overlap("192.168.100.1/30", Pick(OURS), links) == words


def test_a_link_does_not_overlap_itself_and_without_one_there_is_nothing_to_say() -> None:
    assert overlap("192.168.100.1/30", Pick(OURS), (OURS,)) == ""
    assert overlap("10.0.0.1/24", Pick(), (Link("eth0", "", addresses=("10.0.0.2/24",)),)) == ""


@virtual
async def test_nothing_is_written_then() -> None:
    world = World()
    nic = world.network.nics[MANAGEMENT]
    nic.link = Link(nic.name, nic.link.mac, carrier=True, addresses=("192.168.100.66/24",), default_route=True)
    view = (await Living(world).one_pass())["network"]
    assert (view.condition, view.why) == ("blocked", "192.168.100.1/24 of the file overlaps 192.168.100.66/24 of mgmt0")
    assert world.network.stored == {}


def test_a_change_that_cut_people_off_is_not_tried_again_soon() -> None:
    assert hold(None, "key", CutsOff("no"), 0.0).until == LONGEST
    assert hold(None, "key", NotSettled("no"), 0.0).until < 10
