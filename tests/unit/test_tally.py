"""What is counted for the metrics, and that nothing is counted twice."""

from __future__ import annotations

from dataclasses import replace

from recorded_door import NOON, status

from strixd.engine.status import Incident
from strixd.engine.tally import RECOVERY_SECONDS, Histogram, Tally
from strixd.plan import Step
from strixd.workload import Start, Stop

INCIDENT = Incident("a", "vllm", "ended", began=NOON + 10, ended=0.0, moments=())
OVER = replace(INCIDENT, ended=NOON + 50)


def tally(*seen: Incident | None) -> Tally:
    """After passes that saw these."""
    made = Tally(born=NOON)
    for incident in seen:
        made.saw(replace(status(), incident=incident), {})
    return made


def test_a_bound_belongs_to_the_bucket_below_it() -> None:
    made = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        made.add(value)
    assert (made.counts, made.total) == ([2, 1, 1], 12.0)


def test_an_incident_counts_once_and_its_recovery_once() -> None:
    made = tally(None, INCIDENT, INCIDENT, INCIDENT, OVER, OVER)
    assert made.incidents == {"vllm": 1}
    assert made.recoveries.total == 40.0
    assert made.recoveries.counts[RECOVERY_SECONDS.index(60.0)] == 1


def test_a_guess_that_is_corrected_does_not_count() -> None:
    assert tally(replace(INCIDENT, resource="network"), INCIDENT).incidents == {}
    assert tally(replace(INCIDENT, resource="network"), INCIDENT, INCIDENT).incidents == {"vllm": 1}


def test_one_that_is_over_at_once_counts() -> None:
    assert tally(INCIDENT, OVER).incidents == {"vllm": 1}


def test_the_history_of_an_earlier_daemon_does_not_count() -> None:
    early = replace(OVER, began=NOON - 100, ended=NOON - 50)
    made = tally(early, early)
    assert (made.incidents, sum(made.recoveries.counts)) == ({}, 0)


def test_one_that_began_under_an_earlier_daemon_is_only_a_recovery() -> None:
    early = replace(OVER, began=NOON - 10)
    made = tally(replace(early, ended=0.0), early)
    assert (made.incidents, sum(made.recoveries.counts)) == ({}, 1)


def test_an_older_one_that_comes_to_light_again_does_not_count() -> None:
    newer = replace(INCIDENT, id="b", began=NOON + 60)
    made = tally(INCIDENT, OVER, newer, newer, OVER, OVER)  # a new order has dropped the newer one
    assert (made.incidents, sum(made.recoveries.counts)) == ({"vllm": 2}, 1)


def test_starts_are_counted_by_workload() -> None:
    made = Tally(born=NOON)
    steps: tuple[Step, ...] = (Start("strixd-ray.service"), Stop("strixd-vllm.service"), Start("strixd-vllm.service"))
    for step in steps:
        made.took(step)
    assert made.starts == {"ray": 1, "vllm": 1}
