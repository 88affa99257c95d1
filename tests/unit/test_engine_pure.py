"""The engine's pure parts: pacing, holds, phases, incidents."""

from __future__ import annotations

import pytest

from strixd.engine import incident as incidents
from strixd.engine.hold import FIRST, LONGEST, hold
from strixd.engine.incident import Blame
from strixd.engine.phase import phase
from strixd.engine.status import Incident, Moment, ResourceView
from strixd.engine.supervise import (
    DELAYS,
    JITTER,
    SELDOM,
    STABLE,
    TRIES,
    WINDOW,
    Attempt,
    GiveUp,
    Keep,
    Restart,
    over,
    verdict,
    well,
)
from strixd.errors import Rejected
from strixd.plan import Condition


def view(name: str, condition: Condition, why: str = "") -> ResourceView:
    return ResourceView(name, condition, why, "", (), 0.0, 0.0)


def attempts(*starts: float | tuple[float, ...]) -> tuple[Attempt, ...]:
    return tuple(Attempt(*one) if isinstance(one, tuple) else Attempt(one) for one in starts)


IN_VAIN = tuple(float(100 * number) for number in range(TRIES))


@pytest.mark.parametrize(
    ("history", "now", "kind", "after"),
    [
        ((), 0.0, Keep, 0.0),
        ((100.0,), 100.0, Keep, 0.0),  # the first restart is immediate
        ((100.0, 101.0), 101.0, Restart, 1.0),
        ((100.0, 101.0), 102.2, Keep, 0.0),
        ((100.0, 101.0, 103.0), 103.0, Restart, 5.0),
        ((100.0, 101.0, 103.0), 103.0 + WINDOW, Keep, 0.0),
        (((100.0, 150.0, 160.0), (500.0, 550.0, 550.0 + STABLE)), 550.0 + STABLE, Keep, 0.0),  # stable service forgives
        (((100.0, 150.0, 150.0 + STABLE), 500.0), 500.0, Keep, 0.0),
        (((100.0, 150.0, 149.0 + STABLE), 500.0), 500.0, Restart, 1.0),
        (((100.0, 150.0), 160.0), 160.0, Restart, 1.0),  # 10 s of service were not stable
        (IN_VAIN, IN_VAIN[-1] + 1, GiveUp, SELDOM - 1),  # none came well
        (IN_VAIN, IN_VAIN[-1] + SELDOM, Keep, 0.0),  # once more: the world may have mended itself
        ((*IN_VAIN[:-1], (IN_VAIN[-1], IN_VAIN[-1] + 1)), IN_VAIN[-1] + 2, Restart, DELAYS[-1] - 2),
        ((IN_VAIN[0], (IN_VAIN[1], IN_VAIN[1] + 1), *IN_VAIN[2:]), IN_VAIN[-1], Restart, DELAYS[-1]),
    ],
)
def test_pace_of_restarts(history: tuple[float | tuple[float, ...], ...], now: float, kind: type, after: float) -> None:
    pace = verdict(attempts(*history), now)
    assert type(pace) is kind
    assert after <= getattr(pace, "after", 0.0) <= after * (1 + JITTER) + 0.0001 * after + (JITTER * DELAYS[-1])


@pytest.mark.parametrize("service", [0.0, 3.0])
def test_a_fault_that_returns_is_never_a_loop(service: float) -> None:
    now = 0.0
    history: tuple[Attempt, ...] = ()
    while now < 7200.0:
        pace = verdict(history, now)
        if not isinstance(pace, Keep):
            now += pace.after
            continue
        history = (*history, Attempt(now))
        if service:
            history = well(history, now)
        now += 0.5 + service  # it dies, every time
        history = over(history, now)
    assert 12 <= len(history) <= 35


def test_what_was_given_up_says_how_often_it_was_tried() -> None:
    pace = verdict(attempts(*IN_VAIN), IN_VAIN[-1] + 20)
    assert isinstance(pace, GiveUp)
    assert pace.why == f"{TRIES} starts within 12 min, and none came well"


def test_only_the_first_answer_of_a_start_counts() -> None:
    history = well(attempts(1.0, 5.0), 7.0)
    assert history == attempts(1.0, (5.0, 7.0))
    assert well(history, 9.0) == history
    assert over(over(history, 8.0), 9.0) == attempts(1.0, (5.0, 7.0, 8.0))
    assert well((), 1.0) == over((), 1.0) == ()


def test_a_hold_grows_while_nothing_changes_and_starts_anew_when_something_does() -> None:
    failure = Rejected("no")
    first = hold(None, "a", failure, 0.0)
    assert first.until == FIRST
    assert first.holds("a", FIRST - 0.1)
    assert not first.holds("b", 0.0)
    assert not first.holds("a", FIRST)
    later = first
    for _ in range(20):
        later = hold(later, "a", failure, 0.0)
    assert later.until == LONGEST
    assert hold(later, "b", failure, 0.0).until == FIRST


@pytest.mark.parametrize(
    ("conditions", "paused", "problem", "expected"),
    [
        ({}, False, "", "starting"),
        ({"ray": "ok", "vllm": "ok"}, False, "", "ready"),
        ({"ray": "ok", "cmdline": "blocked"}, False, "", "ready"),
        ({"ray": "waiting"}, False, "", "converging"),
        ({"ray": "waiting", "network": "blocked"}, False, "", "degraded"),
        ({"ray": "stuck", "network": "blocked"}, False, "", "stuck"),
        ({"ray": "ok"}, True, "", "paused"),
        ({"ray": "ok"}, False, "cluster.toml:3: x", "degraded"),
    ],
)
def test_phase(conditions: dict[str, Condition], paused: bool, problem: str, expected: str) -> None:
    views = {name: view(name, condition) for name, condition in conditions.items()}
    assert phase(views, paused=paused, problem=problem) == expected
    assert phase(views, paused=paused, drained=True, problem=problem) == (
        "drained" if expected == "ready" else expected
    )


def begun(resource: str = "vllm") -> Incident:
    return incidents.begin(Blame(resource, "it died"), 10.0)


def test_the_cause_of_an_incident_is_the_lowest_layer() -> None:
    views = {v.name: v for v in (view("vllm", "held", "died"), view("ray", "waiting", "no halo2"), view("image", "ok"))}
    assert incidents.lowest(views, set(), {}) == Blame("ray", "no halo2", sure=False)
    assert incidents.lowest({"ray": view("ray", "ok")}, set(), {}) is None


@pytest.mark.parametrize(
    ("first", "later", "expected"),
    [("vllm", "ray", "ray"), ("ray", "network", "network"), ("ray", "vllm", "ray"), ("host", "network", "host")],
)
def test_a_lower_layer_explains_what_was_seen_first(first: str, later: str, expected: str) -> None:
    assert incidents.blamed(begun(first), Blame(later, "gone")).resource == expected


def test_what_was_killed_explains_itself() -> None:
    killed = incidents.begin(Blame("vllm", "strixd-vllm.service killed by signal 9"), 10.0)
    assert incidents.blamed(killed, Blame("ray", "halo2 has not joined")) == killed


@pytest.mark.parametrize("lower", [Blame("ray", "ended with status 1"), Blame("network", "no carrier")], ids=str)
def test_what_the_end_of_ray_has_killed_is_explained_by_that_and_what_explains_it(lower: Blame) -> None:
    killed = incidents.begin(Blame("vllm", "strixd-vllm.service killed by signal 9"), 10.0)
    explained = incidents.blamed(killed, lower, orphaned=True)
    assert (explained.resource, explained.cause) == (lower.resource, lower.cause)


def test_an_echo_explains_nothing() -> None:
    views = {v.name: v for v in (view("ray", "waiting", "started"), view("vllm", "held", "ended with status 0"))}
    assert incidents.lowest(views, {"ray"}, {}) == Blame("vllm", "ended with status 0", sure=False)
    assert incidents.lowest(views, {"ray", "vllm"}, {}) is None


def test_what_comes_after_the_start_explains_nothing() -> None:
    started = incidents.mark(begun(), Moment("started", 12.0))
    assert incidents.blamed(started, Blame("ray", "gone")) == started


def test_moments_are_kept_in_their_order_and_once() -> None:
    now = begun()
    for name, at in (("decided", 11.0), ("decided", 12.0), ("started", 13.0), ("stopped", 12.5), ("loaded", 9.0)):
        now = incidents.mark(now, Moment(name, at))
    over = incidents.end(now, 20.0)
    told = [(moment.name, moment.at) for moment in over.moments]
    assert told == [("noticed", 10.0), ("decided", 11.0), ("stopped", 12.5), ("started", 13.0), ("serving", 20.0)]
    assert (over.ended, over.starts) == (20.0, 1)


def test_another_start_makes_void_what_the_one_before_has_reached() -> None:
    now = begun()
    for name, at in (("started", 13.0), ("loaded", 15.0), ("started", 20.0)):
        now = incidents.mark(now, Moment(name, at))
    assert [moment.name for moment in now.moments] == ["noticed", "started"]
    assert (incidents.at(now, "started"), incidents.at(now, "loaded"), now.starts) == (20.0, 0.0, 2)
