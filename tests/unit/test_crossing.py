"""When tries that fail become a failure, and in which direction."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

import pytest

from strixd.host import crossing
from strixd.host.crossing import Pace, Sight, Streak
from strixd.ports import Crossing, Way

PEER = "192.168.100.2"
WAY = Way("enp1s0", "192.168.100.1", (PEER,), 9000)


def judged(sights: Iterable[tuple[float, Sight]]) -> list[Crossing]:
    streak, known = Streak(30.0), [Crossing(PEER)]
    for at, sight in sights:
        known.append(streak.judge(known[-1], sight, at))
    return known[1:]


def states(*sights: tuple[float, Sight]) -> list[tuple[str, str]]:
    return [(one.state, one.direction) for one in judged(sights)]


def test_one_large_echo_is_the_proof() -> None:
    (only,) = judged([(5.0, "crosses")])
    assert only == Crossing(PEER, "crosses", 5.0, "", "")


def test_a_silent_peer_proves_nothing_however_long() -> None:
    assert set(states((1, "silent"), (100, "silent"), (1000, "silent"))) == {("unproven", "")}


def test_a_failure_must_last() -> None:
    sights: tuple[tuple[float, Sight], ...] = ((1, "there"), (30, "there"), (31, "there"))
    assert states(*sights) == [("unproven", ""), ("unproven", ""), ("failed", "there")]


def test_a_peer_that_was_silent_for_longer_in_between_begins_anew() -> None:
    silent: list[tuple[float, Sight]] = [(20.0 + at, "silent") for at in range(3)]
    assert states((1, "there"), *silent, (24, "there"), (40, "there"), (54, "there")) == [
        *[("unproven", "")] * 6,
        ("failed", "there"),
    ]


@pytest.mark.parametrize("silences", [1, 2])
def test_a_moment_of_silence_ends_no_streak(silences: int) -> None:
    """The other side pauses when it lowers its own MTU, and a busy machine answers late."""
    silent: list[tuple[float, Sight]] = [(20.0 + at, "silent") for at in range(silences)]
    seen = states((1, "there"), *silent, (24, "there"), (25, "silent"), (31, "there"))
    assert seen == [*[("unproven", "")] * (len(seen) - 1), ("failed", "there")]


def test_what_was_proven_stays_so_until_the_contrary_is() -> None:
    seen = judged([(1, "crosses"), (61, "there"), (80, "there"), (91, "there")])
    assert [(one.state, one.at) for one in seen] == [("crosses", 1), ("crosses", 1), ("crosses", 1), ("failed", 91)]


def test_one_datagram_that_was_seen_to_arrive_says_that_the_way_back_is_broken() -> None:
    """The other side may have lowered its MTU meanwhile: then nothing large arrives there any more."""
    assert states((1, "back"), (15, "there"), (31, "there"))[-1] == ("failed", "back")
    assert states((1, "there"), (15, "back"), (31, "there"))[-1] == ("failed", "back")
    silent: list[tuple[float, Sight]] = [(at, "silent") for at in (10.0, 11.0, 12.0)]
    assert states((1, "back"), *silent, (15, "there"), (45, "there"))[-1] == ("failed", "there")


def test_a_failure_keeps_its_time_and_direction_and_ends_with_a_proof() -> None:
    seen = judged([(1, "there"), (31, "there"), (33, "back"), (35, "crosses")])
    assert [(one.state, one.direction, one.at) for one in seen[1:]] == [
        ("failed", "there", 31),
        ("failed", "there", 31),
        ("crosses", "", 35),
    ]


def test_the_words_tell_a_peer_that_never_answered_from_one_that_did() -> None:
    assert judged([(1, "silent")])[0].why == "does not answer yet"
    assert judged([(1, "crosses"), (61, "silent"), (62, "silent")])[-1].why == "does not answer"


def test_a_clock_that_is_set_makes_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """NTP often sets it just when a cluster has booted, and its nodes are not all set up."""
    times = iter([1000.0, 5000.0, 9000.0])

    async def there(*_: object) -> Sight:
        return "there"

    async def tried() -> list[Crossing]:
        streak, known = Streak(30.0), [Crossing(PEER)]
        for _ in range(3):
            known.append(await crossing.Pings()._try(WAY, known[-1], streak))
        return known

    monkeypatch.setattr(crossing, "sighted", there)
    monkeypatch.setattr(time, "time", lambda: next(times))
    assert {one.state for one in asyncio.run(tried())} == {"unproven"}


def test_when_it_crossed_is_told_by_the_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    async def crosses(*_: object) -> Sight:
        return "crosses"

    monkeypatch.setattr(crossing, "sighted", crosses)
    monkeypatch.setattr(time, "time", lambda: 1.76e9)
    assert asyncio.run(crossing.Pings()._try(WAY, Crossing(PEER), Streak(30.0))).at == 1.76e9


def test_a_silent_peer_is_asked_more_and_more_seldom_and_any_other_one_soon() -> None:
    streak, known = Streak(30.0), Crossing(PEER)
    rests = []
    for at in range(40):
        streak.judge(known, "silent", float(at))
        rests.append(streak.rest(Pace()))
    assert (rests[0], rests[9], rests[14], rests[-1]) == (0.0, 0.0, 5.0, Pace().silent)
    streak.judge(known, "there", 40.0)
    assert streak.rest(Pace()) == 0.0
    streak.judge(known, "crosses", 41.0)
    assert streak.rest(Pace()) == Pace().proven
