"""The engine's pure parts: pacing, holds, phases, incidents."""

from __future__ import annotations

import pytest

from strixd.engine import incident as incidents
from strixd.engine.hold import FIRST, LONGEST, hold
from strixd.engine.phase import phase
from strixd.engine.status import ResourceView
from strixd.engine.supervise import WINDOW, Keep, Restart, verdict
from strixd.errors import Rejected
from strixd.plan import Condition


def view(name: str, condition: Condition, why: str = "") -> ResourceView:
    return ResourceView(name, condition, why, "", (), 0.0, 0.0)


@pytest.mark.parametrize(
    ("starts", "now", "expected"),
    [
        ((), 0.0, Keep()),
        ((100.0,), 100.0, Keep()),  # the first restart is immediate
        ((100.0, 101.0), 101.0, Restart(1.0)),
        ((100.0, 101.0), 102.0, Keep()),
        ((100.0, 101.0, 103.0), 103.0, Restart(5.0)),
        ((100.0, 101.0, 103.0), 103.0 + WINDOW, Keep()),  # stable service forgives
    ],
)
def test_pace_of_restarts(starts: tuple[float, ...], now: float, expected: Keep | Restart) -> None:
    assert verdict(starts, now) == expected


def test_a_fault_that_returns_is_never_a_loop() -> None:
    now = 0.0
    starts: list[float] = []
    while now < 3600.0:
        pace = verdict(tuple(starts), now)
        if isinstance(pace, Restart):
            now += pace.after
            continue
        starts.append(now)
        now += 0.5  # it dies at once, every time
    assert 15 <= len(starts) <= 35


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


def test_the_cause_of_an_incident_is_the_lowest_layer() -> None:
    views = {v.name: v for v in (view("vllm", "held", "died"), view("ray", "waiting", "no halo2"), view("image", "ok"))}
    begun = incidents.begin(views, "", "", now=10.0)
    assert begun is not None
    assert (begun.resource, begun.cause) == ("ray", "no halo2")
    over = incidents.end(incidents.started(incidents.started(begun, 9.0), 11.0), 15.0)
    assert [(m.name, m.at) for m in over.moments] == [("noticed", 10.0), ("started", 11.0), ("answering", 15.0)]
    assert over.ended == 15.0


def test_what_was_found_ended_explains_more_than_what_waits_for_it() -> None:
    views = {v.name: v for v in (view("image", "waiting", "looking"), view("ray", "waiting", "waits for image"))}
    begun = incidents.begin(views, "ray", "killed by signal 9", now=10.0)
    assert begun is not None
    assert (begun.resource, begun.cause) == ("ray", "killed by signal 9")


def test_no_incident_without_a_bad_sign() -> None:
    assert incidents.begin({"ray": view("ray", "ok")}, "", "", now=0.0) is None
