"""Which MTU the link shall have, from what was kept and what the tries say."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from strixd.decode import decode
from strixd.plan import Step
from strixd.ports import Crossing, Link
from strixd.resources import mtu
from strixd.resources.mtu import Asked, Forget, Peer, Record, Remember, Seen

TWO, THREE = Peer("halo2", "192.168.100.2"), Peer("halo3", "192.168.100.3")
ADDRESS = "192.168.100.1/30"
LINK = Link("enp194s0np0", "50:7c:6f:00:00:01", "ice", True, 9000, 9702, (ADDRESS,))
ASKED = Asked(9000, (TWO,), after=100.0)
KEPT = Record(9000, "halo2", "there", 130_400, "boot-1")
FAILED = Crossing(TWO.address, "failed", 130.4, "there", "")
CROSSES = Crossing(TWO.address, "crosses", 130.4, why="")


def seen(*crossings: Crossing, record: Record | None = None, boot: str = "boot-1") -> Seen:
    return Seen(record, boot, crossings)


def test_until_a_peer_answers_it_is_unproven_and_kept() -> None:
    told = mtu.judge(ASKED, LINK, seen(Crossing(TWO.address, why="does not answer yet")))
    assert (told.size, told.steps, told.hint) == (9000, (), "")
    assert told.fact == "MTU 9000 unproven: halo2 does not answer yet"


def test_nothing_was_asked_yet() -> None:
    assert mtu.judge(ASKED, LINK, seen()).fact == "MTU 9000 unproven: halo2 has not been asked yet"


def test_proven() -> None:
    told = mtu.judge(ASKED, LINK, seen(CROSSES))
    assert (told.size, told.steps, told.fact) == (9000, (), "MTU 9000 crosses to halo2 and back")


@pytest.mark.parametrize(
    ("direction", "way", "where"),
    [("there", "from here to halo2", "this node"), ("back", "from halo2 to here", "halo2")],
)
def test_a_failure_is_kept_before_the_mtu_is_lowered(direction: str, way: str, where: str) -> None:
    failed = Crossing(TWO.address, "failed", 130.4, "there" if direction == "there" else "back", "")
    told = mtu.judge(ASKED, LINK, seen(failed))
    assert told.size == 1500
    assert told.steps == (Remember(replace(KEPT, direction=direction, link=LINK.name)),)
    assert told.fact.startswith(f"MTU 9000 does not cross {way}: it is 1500 on this side until strixd-cli apply")
    assert where in told.hint


def test_what_is_kept_holds_without_another_try() -> None:
    told = mtu.judge(ASKED, replace(LINK, mtu=1500), seen(record=KEPT))
    assert (told.size, told.steps) == (1500, ())
    assert "from here to halo2" in told.fact


@pytest.mark.parametrize(
    ("asked", "boot"),
    [
        (replace(ASKED, size=4000), "boot-1"),
        (replace(ASKED, after=130.5), "boot-1"),
        (replace(ASKED, peers=(THREE,)), "boot-1"),
        (replace(ASKED, size=1500), "boot-1"),
        (ASKED, "boot-2"),
    ],
    ids=["another size", "a later order", "another peer", "a plain size", "another boot"],
)
def test_what_no_longer_counts_is_forgotten(asked: Asked, boot: str) -> None:
    told = mtu.judge(asked, replace(LINK, mtu=1500), seen(record=KEPT, boot=boot))
    assert (told.size, told.steps) == (asked.size, (Forget(KEPT),))


def test_of_several_peers_one_failure_is_enough() -> None:
    asked = replace(ASKED, peers=(THREE, TWO))
    told = mtu.judge(asked, LINK, seen(Crossing(THREE.address, "crosses", 130.0, why=""), FAILED))
    assert told.size == 1500
    assert "halo2" in told.fact


def test_of_several_peers_all_must_answer() -> None:
    asked = replace(ASKED, peers=(TWO, THREE))
    told = mtu.judge(asked, LINK, seen(CROSSES, Crossing(THREE.address, why="does not answer yet")))
    assert told.size == 9000
    assert told.fact == "MTU 9000 crosses to halo2 and back; MTU 9000 unproven: halo3 does not answer yet"
    both = mtu.judge(asked, LINK, seen(CROSSES, replace(CROSSES, peer=THREE.address)))
    assert both.fact == "MTU 9000 crosses to halo2 and halo3 and back"


def test_a_plain_mtu_needs_no_proof() -> None:
    told = mtu.judge(replace(ASKED, size=1500), replace(LINK, mtu=1500), seen())
    assert (told.size, told.steps, told.fact) == (1500, (), "")


TB = Link("thunderbolt0", "02:00:00:00:00:01", "thunderbolt-net", True, 65522, 65522, (ADDRESS,))
SIZES = [
    (9000, LINK, 9000),
    (9000, replace(LINK, max_mtu=4000), 4000),
    (9000, replace(LINK, max_mtu=0), 9000),
    (9000, TB, 65522),
    (9000, replace(TB, max_mtu=65535), 65535),
    (9000, replace(TB, max_mtu=0), 9000),
    (1500, TB, 1500),
]


@pytest.mark.parametrize(("size", "link", "largest"), SIZES)
def test_no_larger_than_the_device_takes_and_by_thunderbolt_as_large_as_that(
    size: int, link: Link, largest: int
) -> None:
    assert mtu.largest(Asked(size), link) == largest


def test_a_way_is_tried_only_when_the_link_is_as_it_shall_be() -> None:
    way = mtu.way(ASKED, LINK, ADDRESS)
    assert way
    assert (way.interface, way.source, way.peers, way.size, way.asked) == (
        LINK.name,
        "192.168.100.1",
        (TWO.address,),
        9000,
        100.0,
    )
    for other in (replace(LINK, mtu=1500), replace(LINK, carrier=False), replace(LINK, addresses=())):
        assert mtu.way(ASKED, other, ADDRESS) is None
    assert mtu.way(replace(ASKED, size=1500), replace(LINK, mtu=1500), ADDRESS) is None


STEPS: list[tuple[Step, Step]] = [
    (Remember(KEPT), Forget(KEPT)),
    (Remember(KEPT, replace(KEPT, peer="halo3")), Remember(replace(KEPT, peer="halo3"), KEPT)),
    (Forget(KEPT), Remember(KEPT)),
]


@pytest.mark.parametrize(("step", "back"), STEPS)
def test_each_step_has_its_inverse_and_survives_json(step: Step, back: Step) -> None:
    assert step.undo() == back
    raw = json.loads(json.dumps(asdict(step)))  # type: ignore[call-overload]
    assert decode(type(step), raw, key=str).value == step


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"size": "9000"}'])
def test_a_file_that_cannot_be_read_is_no_failure(text: str | None) -> None:
    assert mtu.loads(text) is None


def test_a_file_of_ours_is_read_back() -> None:
    assert mtu.loads(json.dumps(asdict(KEPT))) == KEPT
