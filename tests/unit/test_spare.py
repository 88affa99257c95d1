"""Which of two links has the fabric's address, whom that concerns, and what the file may say of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strixd import collectives
from strixd.config import parse
from strixd.desired import fabric_of
from strixd.engine import paths
from strixd.engine.paths import Paths
from strixd.fabric import Fabric, Pick, both, overlap, pick
from strixd.ladder import OFF, Wanted
from strixd.plan import Plan
from strixd.ports import STAGED, Card, Device, Gid, Link, Profile, RdmaPort, Session
from strixd.resources import mtu, network, rung, spare
from strixd.resources.network_steps import Activate, GiveBack, KeepProfile, Restore, StageProfile
from strixd.resources.spare import APART, GRACE, Choice, Seen, Side
from tests.cluster_file import cluster_file

NOW = 1_000_000.0
ADDRESS = "192.168.100.1/30"
OURS = Profile("0d8b", "strixd-test", "", "", ADDRESS, 9000, "trusted", 100)
ICE = Link("enp1s0", "50:7c:6f:00:00:01", "ice", carrier=True)
BOLT = Link("thunderbolt0", "02:ab:00:00:00:01", "thunderbolt-net", carrier=True)
PORT = RdmaPort("irdma0", 1, "RoCE", "ACTIVE", "LinkUp", gids=(Gid(1, "RoCE v2", "192.168.100.1", "enp1s0"),))
FABRIC = Fabric(interface="enp1s0", address=ADDRESS, spare=Fabric(driver="thunderbolt-net"))
FIRST, SPARE = Pick(ICE), Pick(BOLT, spare=True)


def without(link: Link) -> Link:
    return replace(link, carrier=False)


def holding(link: Link) -> Link:
    return replace(link, addresses=(ADDRESS,))


def side(link: Link | None, since: float = 1000.0, *, ports: tuple[RdmaPort, ...] = ()) -> Side:
    """`since`: seconds for which it has been so."""
    if link is None:
        return Side(Pick(why="no link is it; links here: none"))
    return Side(
        Pick(link, spare=link.name == BOLT.name), Card(link.name, carrier=link.carrier, ports=ports, since=NOW - since)
    )


ON_FIRST = [
    ("normally", side(ICE), side(BOLT), ""),
    ("the spare is nothing", side(ICE), side(None), ""),
    ("the spare has no carrier", side(ICE), side(without(BOLT)), ""),
    ("neither has", side(without(ICE)), side(without(BOLT)), ""),
    ("neither is there", side(None), side(None), ""),
    ("a flap", side(without(ICE), GRACE - 1), side(BOLT), ""),
    ("the spare flaps", side(without(ICE)), side(BOLT, GRACE - 1), ""),
    ("unknown is not lost", Side(Pick(without(ICE)), Card("enp1s0", since=1.0)), side(BOLT), ""),
    ("unknown is no reason to wait", Side(FIRST, Card("enp1s0", since=1.0)), side(BOLT), ""),
    ("it has just come", Side(FIRST, Card("enp1s0", carrier=False, since=1.0)), side(BOLT), ""),
    ("no carrier", side(without(ICE), GRACE), side(BOLT), "no carrier on enp1s0; goes on over thunderbolt0"),
    ("it is not there", side(None), side(BOLT), "no link is it; links here: none; goes on over thunderbolt0"),
    (
        "RDMA is lost with it",
        side(without(ICE), ports=(PORT,)),
        side(BOLT),
        "no carrier on enp1s0; goes on over thunderbolt0, TCP, about 70 µs instead of 5 µs",
    ),
    (
        "the spare has RDMA, too",
        side(without(ICE), ports=(PORT,)),
        side(BOLT, ports=(PORT,)),
        "no carrier on enp1s0; goes on over thunderbolt0",
    ),
]


@pytest.mark.parametrize(("first", "other", "why"), [row[1:] for row in ON_FIRST], ids=[row[0] for row in ON_FIRST])
def test_from_the_first_link(first: Side, other: Side, why: str) -> None:
    chosen = spare.choose(Seen(first, other, now=NOW))
    assert chosen.why == why
    assert chosen.pick == (other if why else first).pick
    assert not chosen.soon or not first.carrier


def test_what_may_come_of_a_flap_is_told() -> None:
    chosen = spare.choose(Seen(side(without(ICE), 1), side(BOLT), now=NOW))
    assert chosen.soon == "no carrier on enp1s0; when it stays so for 5 s, thunderbolt0 is taken"
    assert spare.choose(Seen(side(without(ICE), 1), side(without(BOLT)), now=NOW)) == Choice(Pick(without(ICE)))


OUT = Card("enp1s0", carrier=False, since=NOW - 1000)
AGAIN = "enp1s0 has its carrier again"
ON_SPARE = [
    ("the first is out", side(without(ICE)), side(BOLT), 0.0, 900.0, ""),
    ("the first is not there", side(None), side(BOLT), 0.0, 900.0, ""),
    ("the first is back, and all are together", side(ICE), side(BOLT), 0.0, 0.0, ""),
    ("an apply while it was out", side(ICE, 100), side(BOLT), 101.0, 0.0, ""),
    ("an apply since", side(ICE, 100), side(BOLT), 99.0, 0.0, f"{AGAIN}, and an apply takes it"),
    ("an apply at once", side(ICE, GRACE - 1), side(BOLT), 1.0, 0.0, f"{AGAIN}, and an apply takes it"),
    ("not together for a moment", side(ICE), side(BOLT), 0.0, APART - 1, ""),
    ("apart", side(ICE), side(BOLT), 0.0, APART, f"{AGAIN}; the cluster is not together over the spare"),
    ("apart, and the first flaps", side(ICE, GRACE - 1), side(BOLT), 0.0, APART, ""),
    ("the carrier is newer than what the hardware said", Side(FIRST, OUT), side(BOLT), 500.0, APART, ""),
    ("the spare is out", side(ICE), side(without(BOLT)), 0.0, 0.0, f"{AGAIN}; no carrier on thunderbolt0"),
    ("the spare flaps", side(ICE), side(without(BOLT), GRACE - 1), 0.0, 0.0, ""),
    ("both are out", side(without(ICE)), side(without(BOLT)), 0.0, 900.0, ""),
]


@pytest.mark.parametrize(
    ("first", "other", "asked", "apart", "why"), [row[1:] for row in ON_SPARE], ids=[row[0] for row in ON_SPARE]
)
def test_from_the_spare(first: Side, other: Side, asked: float, apart: float, why: str) -> None:
    """`asked`, `apart`: seconds ago, 0 for never."""
    seen = Seen(first, other, True, asked and NOW - asked, apart and NOW - apart, NOW)
    chosen = spare.choose(seen)
    assert chosen.why == why
    assert chosen.pick == (first if why else other).pick


def test_a_link_that_has_just_come_back_is_waited_for() -> None:
    for other, apart in ((side(BOLT), APART), (side(without(BOLT)), 0.0)):
        chosen = spare.choose(Seen(side(ICE, 1), other, True, apart=apart and NOW - apart, now=NOW))
        assert (chosen.pick, chosen.why) == (other.pick, "")
        assert chosen.soon == f"{AGAIN}: it is taken when that lasts 5 s"


def test_only_what_is_not_on_disk_is_a_move() -> None:
    ours = replace(OURS, mac=BOLT.mac)
    assert spare.moved(replace(ours, others=STAGED), BOLT)
    assert not spare.moved(ours, BOLT)
    assert not spare.moved(replace(ours, others=STAGED), ICE)
    assert not spare.moved(replace(ours, others=STAGED), None)
    assert not spare.moved(None, BOLT)


# Which link everybody else goes by


IN_FORCE = [
    ((ICE, BOLT), "enp1s0", ""),
    ((holding(ICE), BOLT), "enp1s0", ""),
    ((without(ICE), BOLT), "enp1s0", ""),
    ((without(ICE), holding(BOLT)), "thunderbolt0", "(no carrier on enp1s0)"),
    ((without(holding(ICE)), holding(BOLT)), "thunderbolt0", "(no carrier on enp1s0)"),
    ((ICE, holding(BOLT)), "thunderbolt0", "(enp1s0 has its carrier again: strixd-cli apply takes it)"),
    ((holding(ICE), holding(BOLT)), "enp1s0", ""),
    ((holding(BOLT),), "thunderbolt0", "no link is interface enp1s0"),
]


@pytest.mark.parametrize(("links", "name", "note"), IN_FORCE)
def test_the_link_in_force_is_the_one_with_the_address(links: tuple[Link, ...], name: str, note: str) -> None:
    found = pick(FABRIC, links)
    assert found.link
    assert (found.link.name, found.spare) == (name, bool(note))
    assert note in found.note


def test_without_a_spare_the_address_on_another_link_is_nothing() -> None:
    assert pick(replace(FABRIC, spare=None), (without(ICE), holding(BOLT))).link == without(ICE)


@pytest.mark.parametrize(
    ("spared", "links", "management", "words"),
    [
        (Fabric(mac=ICE.mac), (ICE, BOLT), (), "enp1s0 is named as the spare of itself"),
        (Fabric(driver="thunderbolt-net"), (ICE, BOLT), ("thunderbolt0",), "fabric.management"),
        (Fabric(driver="thunderbolt-net"), (ICE, replace(BOLT, default_route=True)), (), "holds the default route"),
        (Fabric(interface="tb0"), (ICE, BOLT), (), "no link is interface tb0"),
    ],
)
def test_a_spare_that_cannot_be(
    spared: Fabric, links: tuple[Link, ...], management: tuple[str, ...], words: str
) -> None:
    first, found = both(replace(FABRIC, spare=spared), links, management=management)
    assert first.link == ICE
    assert found.link is None
    assert words in found.why


def test_the_address_that_the_other_link_has_just_had_overlaps_nothing() -> None:
    links = (without(holding(ICE)), holding(BOLT))
    assert overlap(ADDRESS, pick(FABRIC, links), links) == ""
    strange = (replace(links[0], addresses=("192.168.100.2/30",)), links[1])
    assert "of enp1s0" in overlap(ADDRESS, pick(FABRIC, strange), strange)
    third = (*links, Link("eth9", "", addresses=(ADDRESS,)))
    assert "of eth9" in overlap(ADDRESS, pick(FABRIC, third), third)


def test_the_file_names_it_as_it_names_the_first() -> None:
    text = cluster_file(card='interface = "enp1s0"\nspare-driver = "thunderbolt-net"')
    assert fabric_of(parse(text, "f").config.nodes[0]) == FABRIC
    assert fabric_of(parse(cluster_file(), "f").config.nodes[0]).spare is None


# What the network resource does about it

DESIRED = network.Desired(FABRIC, (), OURS)
ON_DISK = replace(OURS, mac=ICE.mac)
THERE = replace(OURS, mac=BOLT.mac, others=STAGED)
IDLE = Device("thunderbolt0", True, "disconnected")
HAS_BOLT = Device("thunderbolt0", True, "activated", OURS.uuid, OURS.name)
TO_SPARE = replace(OURS, mac=BOLT.mac)
SERVING = replace(holding(BOLT), mtu=9000)


def planned(chosen: Choice, profile: Profile | None, device: Device, holder: str = "") -> Plan:
    return network.Network().plan(DESIRED, network.Observed(chosen, profile, device, holder=holder))


def test_to_the_spare_and_the_undo_of_it() -> None:
    plan = planned(Choice(SPARE, "lost"), ON_DISK, IDLE, "enp1s0")
    stage = StageProfile("enp1s0", TO_SPARE, ON_DISK, in_force=True)
    assert plan.steps == (stage, Activate("thunderbolt0", OURS.uuid, OURS.name))
    assert (plan.interface, plan.condition, plan.why, plan.cause) == ("thunderbolt0", "held", "lost", "lost")
    assert stage.undo() == Restore("enp1s0", ON_DISK, THERE, in_force=True)


def test_a_link_that_lost_the_profile_with_its_carrier_gets_it_when_the_move_is_taken_back() -> None:
    plan = planned(Choice(replace(SPARE, other=without(ICE)), "lost"), ON_DISK, IDLE)
    assert plan.steps[0] == StageProfile("enp1s0", TO_SPARE, ON_DISK, in_force=True)


@pytest.mark.parametrize(
    ("chosen", "device", "hint"),
    [
        (Choice(replace(SPARE, other=without(ICE)), "lost"), IDLE, "ethtool enp1s0"),
        (Choice(SPARE, "lost"), IDLE, "ip -br link"),  # the first is not there
        (Choice(Pick(without(ICE)), soon="no carrier"), Device("enp1s0", True, "unavailable"), "ethtool enp1s0"),
        (Choice(Pick(without(ICE))), Device("enp1s0", True, "unavailable"), "ethtool enp1s0"),
    ],
)
def test_a_cable_that_is_out_has_a_next_command(chosen: Choice, device: Device, hint: str) -> None:
    assert hint in planned(chosen, ON_DISK, device).hint


def test_on_the_spare_nothing_is_left_to_do_and_nothing_is_kept_on_disk() -> None:
    plan = planned(Choice(Pick(SERVING, spare=True, note="why")), THERE, HAS_BOLT, "thunderbolt0")
    assert (plan.steps, plan.condition, plan.why) == ((), "ok", "")
    assert "why" in plan.facts


def test_back_to_the_first_and_the_undo_of_it() -> None:
    automatic = Device("enp1s0", True, "activating", "auto", "Wired connection 1")
    plan = planned(Choice(FIRST, "back"), THERE, automatic, "thunderbolt0")
    stage = StageProfile("thunderbolt0", ON_DISK, THERE, in_force=True)
    activate = Activate("enp1s0", OURS.uuid, OURS.name, "auto", "Wired connection 1")
    assert plan.steps == (stage, activate, KeepProfile("enp1s0", ON_DISK))
    assert (plan.interface, plan.condition, plan.why, plan.cause) == ("enp1s0", "ok", "", "back")
    instead = replace(ON_DISK, others=STAGED)
    assert stage.undo() == Restore("thunderbolt0", THERE, instead, in_force=True, beneath=ON_DISK)
    assert activate.undo() == GiveBack("enp1s0", OURS.uuid, OURS.name, "auto", "Wired connection 1")


def test_a_spare_that_lost_our_profile_gets_it_again() -> None:
    plan = planned(Choice(Pick(BOLT, spare=True)), THERE, IDLE)
    assert plan.steps == (Activate("thunderbolt0", OURS.uuid, OURS.name),)


def test_without_carrier_it_waits_or_is_blocked() -> None:
    device = Device("enp1s0", True, "unavailable")
    waits = planned(Choice(Pick(without(ICE)), soon="soon"), ON_DISK, device)
    assert (waits.condition, waits.why, waits.again, waits.steps) == ("waiting", "soon", GRACE, ())
    blocked = planned(Choice(Pick(without(ICE))), ON_DISK, device)
    assert (blocked.condition, blocked.why) == ("blocked", "no carrier on enp1s0")


def test_the_card_of_a_profile_that_is_not_on_disk_is_not_the_fabrics() -> None:
    for profile, mac in ((ON_DISK, ICE.mac), (THERE, ""), (None, "")):
        assert network.card(network.Observed(Choice(FIRST), profile, None)) == mac


def test_a_given_up_mtu_is_the_first_links_alone() -> None:
    asked = mtu.Asked(9000, (mtu.Peer("halo2", "192.168.100.2"),))
    kept = mtu.Record(9000, "halo2", "there", 130_400, "boot-1", "enp1s0")
    seen = mtu.Seen(kept, "boot-1")
    assert mtu.judge(asked, ICE, seen).size == 1500
    assert mtu.judge(asked, replace(BOLT, driver="igc"), seen).size == 9000
    assert mtu.judge(asked, ICE, replace(seen, record=replace(kept, link=""))).size == 1500


# Who comes in by it, and what the ranks are told


MGMT = Link("mgmt0", "52:54:00:00:00:01", "virtio_net", True, addresses=("10.0.0.5/24",), default_route=True)
BEFORE = (MGMT, holding(ICE), BOLT)
AFTER = (MGMT, ICE, holding(BOLT))


@pytest.mark.parametrize("way", ["enp1s0", "mgmt0"])
def test_the_address_moves_with_its_sessions_and_is_not_lost(way: str) -> None:
    before = Paths(BEFORE, (Session("192.168.100.2", "192.168.100.1", way),))
    after = Paths(AFTER, (Session("192.168.100.2", "192.168.100.1", "thunderbolt0"),))
    assert paths.lost(before, after, ours={"thunderbolt0"}) == ()


def test_what_is_lost_is_still_told() -> None:
    session = Session("10.0.0.9", "10.0.0.5", "mgmt0")
    elsewhere = Paths(AFTER, (replace(session, interface="thunderbolt0"),))
    (told,) = paths.lost(Paths(BEFORE, (session,)), elsewhere, ours={"thunderbolt0"})
    assert "leave by thunderbolt0 instead of mgmt0" in told
    nowhere = Paths((MGMT, ICE, BOLT), ())
    assert paths.lost(Paths(BEFORE, ()), nowhere, ours={"thunderbolt0"}) == (f"enp1s0 has lost its address {ADDRESS}",)


def test_rdma_that_went_with_the_first_link_is_lost_for_that_reason() -> None:
    found = pick(FABRIC, (without(ICE), holding(BOLT)))
    card = Card("thunderbolt0", "thunderbolt-net", True, 40.0, thunderbolt=True)
    wanted = Wanted(address="192.168.100.1")
    verdict = rung.judged(wanted, found, card, NOW)
    told = {OFF: "0", collectives.SOCKET: "=enp1s0"}
    chosen = rung.choose(verdict, rung.Seen(told, busy=True), leads=True, allow_tcp=True, dscp=0)
    why = "RDMA is lost: thunderbolt0, the spare, is in force (no carrier on enp1s0)"
    assert chosen.why == f"{why}; goes on over TCP, about 70 µs instead of 5 µs"
    assert chosen.told[collectives.SOCKET] == "=thunderbolt0"
