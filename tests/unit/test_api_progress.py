"""The way to a first completion, state by state."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded_door import resource, status

from strixd.api.progress import PATIENCE, Journey, Progress, advance
from strixd.engine.status import ResourceView, Status
from strixd.errors import CannotServe

START = Journey("serve tiny", "tiny")


def told(*states: Status) -> list[tuple[str, bool]]:
    journey = START
    heard: list[tuple[str, bool]] = []
    for now, state in enumerate(states):
        journey, news = advance(journey, state, float(now))
        heard += [(each.stage, each.done) for each in news]
    return heard


def drained(*resources: ResourceView) -> Status:
    return replace(status(*resources), drained=True, phase="drained")


def test_the_way_of_a_drain_is_one_stage() -> None:
    journey = Journey("drain", goal="drain")
    running = drained(resource("vllm", "waiting", "what runs has 50 s more"), resource("ray", "blocked", "no carrier"))
    journey, news = advance(journey, running, 0)
    assert news == (Progress("drain", False, "vllm: what runs has 50 s more"),)
    journey, news = advance(journey, drained(resource("vllm", "ok", "", "drained", "cut off")), 99)
    assert news == (Progress("drain", True, "drained, cut off"),)
    assert journey.arrived


def test_the_way_back_of_ray_alone_asks_for_no_model() -> None:
    journey, news = advance(
        Journey("restart ray", goal="ray"), replace(status(resource("vllm", "stuck")), model=None), 0
    )
    assert [(each.stage, each.done) for each in news] == [("image", True), ("ray", True)]
    assert journey.arrived


@pytest.mark.parametrize(
    ("journey", "state", "words"),
    [
        (START, drained(), "Cannot serve tiny: a later order says to drain"),
        (Journey("drain", goal="drain"), status(), "Cannot drain: a later order says to undrain"),
    ],
)
def test_an_order_to_the_contrary_ends_the_way(journey: Journey, state: Status, words: str) -> None:
    with pytest.raises(CannotServe, match=words):
        advance(journey, state, 0)


def test_all_at_once_when_it_answers_already() -> None:
    assert told(status()) == [(stage, True) for stage in ("image", "ray", "load", "completion")]


def test_the_same_words_are_said_once() -> None:
    pulling = status(resource("image", "waiting", "pulling"))
    assert told(pulling, pulling, status(resource("image", "waiting", "unpacking"))) == [("image", False)] * 2


def test_a_stage_that_falls_back_is_done_once_but_spoken_of() -> None:
    lost = status(resource("ray", "waiting", "halo2 has gone"))
    loading = status(resource("vllm", "waiting", "loading"))
    heard = told(loading, lost, loading)
    assert heard == [("image", True), ("ray", True), ("load", False), ("ray", False), ("load", False)]


def test_a_running_unit_without_a_completion_is_not_there_yet() -> None:
    ready = status()
    assert ready.model is not None
    silent = replace(ready, model=replace(ready.model, answered_at=0.0))
    journey, news = advance(START, silent, 0)
    assert news[-1] == Progress("load", False, "no completion yet")
    assert not journey.arrived


@pytest.mark.parametrize("name", ["network", "firewall", "image", "ray", "vllm"])
def test_a_stuck_layer_ends_the_way_at_once(name: str) -> None:
    with pytest.raises(CannotServe) as caught:
        advance(START, status(resource(name, "stuck", "the reason", hint="what to do")), 0)
    assert str(caught.value) == f"Cannot serve tiny: {name}: the reason"
    assert caught.value.hint == "what to do"


def test_kernel_arguments_are_not_on_the_way() -> None:
    assert told(status(resource("cmdline", "stuck", "no grubby")))[-1] == ("completion", True)


@pytest.mark.parametrize("condition", ["blocked", "held", "reboot"])
def test_a_halt_ends_the_way_when_it_lasts(condition: str) -> None:
    halted = status(resource("network", condition, "no carrier on enp1s0", hint="plug it in"))  # type: ignore[arg-type]
    journey, _ = advance(START, halted, 100)
    journey, _ = advance(journey, halted, 100 + PATIENCE - 0.1)
    with pytest.raises(CannotServe) as caught:
        advance(journey, halted, 100 + PATIENCE)
    assert str(caught.value) == (
        f"Cannot serve tiny yet: network is {condition}: no carrier on enp1s0. "
        "The order stays, and strixd goes on trying"
    )
    assert caught.value.hint == "plug it in"


def test_a_halt_that_ends_is_forgotten() -> None:
    halted = status(resource("network", "blocked", "no carrier"))
    journey, _ = advance(START, halted, 0)
    journey, _ = advance(journey, status(resource("network", "waiting", "coming up")), 10)
    journey, _ = advance(journey, halted, 20)
    journey, _ = advance(journey, halted, 20 + PATIENCE / 2)
    assert not journey.arrived


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(status(), phase="paused"), "strixd is paused here"),
        (replace(status(), model=None), "a later order says to stop"),
        (replace(status(), model=replace(status().model, name="large")), "a later order names large"),  # type: ignore[type-var]
    ],
)
def test_a_later_order_ends_the_way(other: Status, words: str) -> None:
    with pytest.raises(CannotServe, match=f"Cannot serve tiny: {words}"):
        advance(START, other, 0)
