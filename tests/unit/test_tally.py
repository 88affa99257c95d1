"""What is counted for the metrics, and that nothing is counted twice."""

from __future__ import annotations

from dataclasses import replace

from recorded_door import NOON, status

from strixd.engine.status import Incident, Moment
from strixd.engine.tally import RECOVERY_SECONDS, Histogram, Tally
from strixd.plan import Step
from strixd.workload import Start, Stop

OPEN = Incident("a", "vllm", "ended", began=NOON + 10, ended=0.0, moments=())
OVER = replace(OPEN, ended=NOON + 50, moments=(Moment("serving", NOON + 50),))


def tally(*seen: Incident | None) -> Tally:
    """After passes that saw these."""
    made = Tally()
    for incident in seen:
        made.saw(replace(status(), incident=incident), {})
    return made


def test_a_bound_belongs_to_the_bucket_below_it() -> None:
    made = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        made.add(value)
    assert (made.counts, made.total) == ([2, 1, 1], 12.0)


def test_an_incident_counts_once_when_it_is_over() -> None:
    assert tally(None, OPEN, OPEN).incidents == {}
    made = tally(None, OPEN, OPEN, OVER, OVER)
    assert made.incidents == {"vllm": 1}
    assert made.recoveries.total == 40.0
    assert made.recoveries.counts[RECOVERY_SECONDS.index(60.0)] == 1


def test_what_it_is_blamed_on_in_the_end_counts() -> None:
    assert tally(None, OPEN, OPEN, replace(OVER, resource="network")).incidents == {"network": 1}


def test_the_next_one_counts_too() -> None:
    made = tally(None, OVER, replace(OPEN, id="b"), replace(OVER, id="b"), replace(OVER, id="b"))
    assert (made.incidents, sum(made.recoveries.counts)) == ({"vllm": 2}, 2)


def test_the_history_of_an_earlier_daemon_does_not_count() -> None:
    made = tally(OVER, OVER, replace(OPEN, id="b"))
    assert (made.incidents, sum(made.recoveries.counts)) == ({}, 0)


def test_one_that_outlived_a_daemon_counts_when_it_is_over() -> None:
    made = tally(OPEN, OVER)
    assert (made.incidents, sum(made.recoveries.counts)) == ({"vllm": 1}, 1)


def test_one_that_ends_with_another_order_is_no_recovery() -> None:
    made = tally(OPEN, replace(OVER, moments=(Moment("ordered", NOON + 50),)))
    assert (made.incidents, sum(made.recoveries.counts)) == ({"vllm": 1}, 0)


def test_starts_are_counted_by_workload() -> None:
    made = Tally()
    steps: tuple[Step, ...] = (Start("strixd-ray.service"), Stop("strixd-vllm.service"), Start("strixd-vllm.service"))
    for step in steps:
        made.took(step)
    assert made.starts == {"ray": 1, "vllm": 1}
