"""What an apply says of itself, state by state, and how it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded_door import MOVE, MTU, change, resource, status

from strixd.api.applying import Heard, Told, advance, end
from strixd.engine.status import ChangeView
from strixd.plan import Condition

ONE, TWO = f"1 of 2: {MOVE.text}", f"2 of 2: {MTU.text}"


def running(taken: int, **fields: object) -> ChangeView:
    return change(outcome="running", ended=0.0, taken=taken, **fields)


def heard(*states: ChangeView | None) -> tuple[Heard, list[tuple[str, bool, str]]]:
    so_far = Heard()
    said: list[tuple[str, bool, str]] = []
    for state in states:
        so_far, news = advance(so_far, state)
        said += [(each.stage, each.done, each.text) for each in news]
    return so_far, said


def test_each_step_begins_and_is_taken_and_nothing_is_said_twice() -> None:
    _, said = heard(None, running(0), running(0), running(1), running(2), running(2), None)
    assert said == [
        ("step", False, ONE),
        ("step", True, ONE),
        ("step", False, TWO),
        ("step", True, TWO),
        ("check", False, "looking whether it holds"),
    ]


def test_skipped_states_are_made_up_for() -> None:
    _, said = heard(running(2))
    assert [each[:2] for each in said] == [("step", True), ("step", True), ("check", False)]
    so_far, _ = heard(running(1))
    assert list(end(so_far, status(), (change(),))) == [Told("step", True, TWO), Told("end", True, "2 steps taken")]
    assert len(list(end(Heard(), status(), (change(),)))) == 3


def test_steps_that_are_taken_back_are_told_as_that() -> None:
    _, said = heard(running(2), running(1), running(0))
    assert said[-2:] == [("undo", False, f"2 of 2: {MTU.undo}"), ("undo", False, f"1 of 2: {MOVE.undo}")]


def test_a_second_change_begins_anew() -> None:
    _, said = heard(running(2), running(0, id="c2"))
    assert said[-1] == ("step", False, ONE)


def test_nothing_to_do_is_a_good_end() -> None:
    assert list(end(Heard(), status(), ())) == [Told("end", True, "nothing to change")]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("failed", "firewall, network: the peer is gone; all of it is taken back"),
        (
            "left over",
            "firewall, network: the peer is gone; not all could be taken back: strixd-cli history tells what was done",
        ),
    ],
)
def test_a_failure_is_the_end_even_when_another_change_was_done(outcome: str, words: str) -> None:
    failed = change(outcome=outcome, why="the peer is gone")
    for changes in ((failed,), (failed, change(id="c2"))):
        assert list(end(Heard("c2", 2), status(), changes)) == [Told("end", False, words)]


@pytest.mark.parametrize(("condition", "good"), [("held", False), ("stuck", False), ("blocked", True), ("ok", True)])
def test_a_setting_that_was_tried_in_vain_is_no_good_end(condition: Condition, good: bool) -> None:
    (last,) = end(Heard(), status(resource("network", condition, "no")), ())
    assert (last.done, last.text) == (good, "nothing to change" if good else f"network is {condition}: no")


def test_workloads_say_nothing_of_an_apply() -> None:
    (last,) = end(Heard(), status(resource("vllm", "held", "crashed")), ())
    assert last.done


def test_paused_is_no_good_end() -> None:
    (last,) = end(Heard(), replace(status(), phase="paused"), ())
    assert (last.done, last.text) == (False, "nothing was changed: strixd is paused here, strixd-cli resume ends that")
