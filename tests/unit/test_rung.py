"""Who decides over RDMA or TCP, and when: tables of what a node sees and what its ranks are told then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from strixd import collectives
from strixd.fabric import Fabric, Pick
from strixd.ladder import COST, Verdict, Wanted, judge
from strixd.plan import Condition
from strixd.ports import Card, Firmware, Gid, Link, Member, RayReport, RdmaPort
from strixd.resources import fabric, rung
from strixd.resources.rung import FINE, Choice, Seen

PORT = RdmaPort("irdma0", 1, "RoCE", "ACTIVE", "LinkUp", gids=(Gid(3, "RoCE v2", "10.0.0.1", "eth1"),))
CARD = Card("eth1", driver="ice", carrier=True, speed=100.0, ports=(PORT,))
WANTED = Wanted(address="10.0.0.1")
GOOD, BAD = (judge(WANTED, card, 1e9) for card in (CARD, replace(CARD, ports=(replace(PORT, state="DOWN"),))))
RDMA, TCP = (collectives.told(each, 0) for each in (GOOD.rdma, GOOD.tcp))
MOVED = {**RDMA, collectives.INDEX: "1"}
DOWN = "irdma0 port 1 is DOWN, LinkUp"
Told = Mapping[str, str]


def choose(verdict: Verdict, seen: Seen, *, leads: bool = True, allow_tcp: bool = True) -> Choice:
    return rung.choose(verdict, seen, leads=leads, allow_tcp=allow_tcp, dscp=0)


@pytest.mark.parametrize(
    ("verdict", "told", "busy", "other", "then"),
    [
        (GOOD, {}, False, None, RDMA),  # a first start
        (BAD, {}, False, None, TCP),
        (GOOD, {}, False, DOWN, TCP),
        (GOOD, RDMA, True, FINE, RDMA),
        (GOOD, RDMA, True, None, RDMA),
        (BAD, RDMA, True, FINE, TCP),
        (GOOD, RDMA, True, DOWN, TCP),
        (GOOD, MOVED, True, FINE, MOVED),  # not under a model
        (GOOD, MOVED, False, FINE, RDMA),
        (GOOD, TCP, True, FINE, TCP),  # the better rung waits for the next start
        (GOOD, TCP, False, FINE, RDMA),
        (GOOD, TCP, False, None, TCP),  # which the other may not be able to take
        (GOOD, {"NCCL_SOCKET_IFNAME": "eth1"}, True, FINE, RDMA),  # an earlier strixd said nothing of it
    ],
)
def test_the_head_decides(verdict: Verdict, told: Told, busy: bool, other: str | None, then: Told) -> None:
    assert choose(verdict, Seen(told, busy, {"halo2": other})).told == then


@pytest.mark.parametrize(
    ("verdict", "told", "busy", "head", "then"),
    [
        (GOOD, {}, False, "", RDMA),
        (BAD, {}, False, "", TCP),
        (BAD, {}, False, "rdma", TCP),  # and says so: the head decides then
        (GOOD, {}, False, "tcp", TCP),
        (GOOD, RDMA, True, "tcp", TCP),
        (GOOD, RDMA, True, "", RDMA),
        (BAD, RDMA, True, "rdma", RDMA),  # a model is ended by the head alone
        (BAD, RDMA, False, "rdma", TCP),
        (GOOD, TCP, False, "", TCP),
        (GOOD, TCP, False, "rdma", RDMA),
        (GOOD, TCP, True, "rdma", TCP),
        (GOOD, MOVED, True, "rdma", MOVED),
        (GOOD, MOVED, False, "rdma", RDMA),
    ],
)
def test_the_others_follow(verdict: Verdict, told: Told, busy: bool, head: str, then: Told) -> None:
    assert choose(verdict, Seen(told, busy, {"halo1": DOWN}, head), leads=False).told == then


def test_another_dscp_is_a_setting_and_counts_at_once() -> None:
    for told, then in ((RDMA, {**RDMA, "NCCL_IB_TC": "104"}), (TCP, TCP)):
        choice = rung.choose(GOOD, Seen(told, True, {"halo2": FINE}), leads=True, allow_tcp=True, dscp=26)
        assert choice.told == then
    marked = {**RDMA, "NCCL_IB_TC": "104"}
    assert choose(GOOD, Seen(marked, True, {"halo2": FINE})).told == RDMA


def test_a_lost_rung_is_told_with_what_it_costs_and_a_better_one_with_its_name() -> None:
    lost = choose(GOOD, Seen(RDMA, True, {"halo2": DOWN}))
    assert (lost.lost, lost.why) == (True, f"RDMA is lost: halo2: {DOWN}; goes on over TCP, {COST}")
    better = choose(GOOD, Seen(TCP, True, {"halo2": FINE}))
    assert (better.lost, better.better) == (False, "RDMA (RoCE v2, irdma0 port 1, GID 3)")
    assert choose(GOOD, Seen(TCP, True, {"halo2": None})).better == ""
    assert choose(GOOD, Seen(TCP, False, {"halo2": FINE})).why.endswith("is there now")


@pytest.mark.parametrize("verdict", [replace(GOOD, condition="waiting", why="w"), replace(GOOD, condition="blocked")])
def test_what_is_in_the_way_of_the_link_changes_nothing(verdict: Verdict) -> None:
    choice = choose(verdict, Seen(MOVED, False, {"halo2": FINE}))
    assert (choice.halt, choice.told) == ("waiting", MOVED)
    assert choice.why.startswith("waits for fabric")


def test_without_tcp_another_node_that_lacks_rdma_is_named() -> None:
    choice = choose(GOOD, Seen(RDMA, True, {"halo2": DOWN, "halo3": FINE}), allow_tcp=False)
    assert (choice.halt, choice.why) == ("blocked", f"halo2: {DOWN}; [fabric] allow-tcp = false")
    assert choice.told == RDMA


def test_what_the_records_say() -> None:
    members = (
        Member("halo1", "10.0.0.1", alive=True, record={"rdma": FINE, "rung": "rdma"}),
        Member("halo2", "10.0.0.2", alive=False, record={"rdma": FINE}),
        Member("halo2", "10.0.0.2", alive=True, record={"rdma": DOWN}),
    )
    report = RayReport(at=1.0, members=members)
    assert rung.others(report, "halo1", ("halo1", "halo2", "halo3")) == {"halo2": DOWN, "halo3": None}
    assert rung.others(None, "halo1", ("halo1", "halo2")) == {"halo2": None}
    assert (rung.named(report, "halo1"), rung.named(report, "halo2"), rung.named(None, "halo1")) == ("rdma", "", "")


BOLT = Card("eth1", driver="thunderbolt-net", carrier=True, speed=40.0, changes=2, thunderbolt=True)
LINK = Pick(Link("eth1", "02:00:00:00:00:01", carrier=True))


@pytest.mark.parametrize(
    ("card", "wanted", "condition", "words"),
    [
        (CARD, WANTED, "ok", "roce: RDMA (RoCE v2, irdma0 port 1, GID 3); TCP over eth1, 100 Gb/s"),
        (CARD, replace(WANTED, kind="infiniband"), "blocked", '[fabric] kind = "infiniband"'),
        (
            replace(CARD, ports=()),
            WANTED,
            "ok",
            "ethernet: no RDMA: no RDMA device is bound to eth1 (mend: modprobe",
        ),
        (None, WANTED, "blocked", "eth1 has just gone"),
        (CARD, replace(WANTED, person={"NCCL_IB_TC": "1"}), "ok", "[image] environment says NCCL_IB_TC=1, and counts"),
        (CARD, WANTED, "ok", "the image sets NCCL_IB_DISABLE=1; strixd's own counts"),
        (replace(BOLT, speed=20.0), WANTED, "ok", "20 Gb/s of the 40 that USB4 can"),
        (BOLT, WANTED, "ok", "thunderbolt: no RDMA: Thunderbolt carries TCP only; TCP over eth1, 40 Gb/s"),
        (replace(CARD, firmware=Firmware("4.20")), WANTED, "ok", "firmware 4.20, "),
    ],
)
def test_the_link_says_what_it_is(card: Card | None, wanted: Wanted, condition: Condition, words: str) -> None:
    desired = fabric.Desired(Fabric(interface="eth1"), (), wanted)
    seen = fabric.Observed(LINK, card, 1e9, "NCCL_IB_DISABLE=1")
    plan = fabric.FabricLink().plan(desired, seen)
    assert (plan.condition, plan.steps) == (condition, ())
    assert words in "; ".join((plan.why, *plan.facts))


@pytest.mark.parametrize(
    ("verdict", "before", "word"),
    [
        (GOOD, {}, FINE),
        (BAD, {"rdma": FINE}, DOWN),
        (replace(BAD, condition="waiting"), {"rdma": FINE}, FINE),
        (replace(BAD, condition="waiting"), {"rdma": DOWN}, DOWN),
        (judge(WANTED, replace(CARD, carrier=False, ports=()), 1e9), {"rdma": FINE}, FINE),
        (judge(replace(WANTED, allow_tcp=False), replace(CARD, ports=()), 1e9), {}, "no RDMA device is bound to eth1"),
    ],
)
def test_a_node_says_what_has_settled(verdict: Verdict, before: Told, word: str) -> None:
    assert rung.said(verdict, before, TCP) == {"rdma": word, "rung": "tcp"}


@pytest.mark.parametrize(
    ("verdict", "before", "told", "new"),
    [
        (BAD, {"rdma": FINE}, RDMA, True),
        (BAD, {}, RDMA, True),  # lost before anything was said
        (BAD, {"rdma": DOWN}, RDMA, False),  # said and saved already
        (BAD, {"rdma": FINE}, TCP, False),  # nothing is lost that was not in use
        (GOOD, {"rdma": FINE}, RDMA, False),
        (replace(BAD, condition="waiting"), {"rdma": FINE}, RDMA, False),  # it may come back
    ],
)
def test_a_loss_of_its_own_is_new_to_a_node_once(verdict: Verdict, before: Told, told: Told, new: bool) -> None:
    assert rung.newly_lost(verdict, before, told) == new
