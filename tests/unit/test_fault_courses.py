"""What the faults on real hosts are judged by (tests/faults/tokens), on laid sightings and incidents."""

from __future__ import annotations

from typing import Any

from tests.faults.tokens import host_faults, model_faults, ray_faults
from tests.faults.tokens.course import Course, judge_incidents, table
from tests.faults.tokens.fault import Fault, nothing
from tests.faults.tokens.processes import Process
from tests.faults.tokens.watch import Span, servers, survivors

KILLED = Fault("server killed", nothing, "killed by signal 9")
NAMES = ("noticed", "decided", "stopped", "started", "loaded", "serving")


def incident(*moments: tuple[str, float], cause: str = "killed by signal 9") -> dict[str, Any]:
    told = [{"name": name, "at": at} for name, at in moments]
    return {"resource": "vllm", "cause": cause, "began": 101.0, "ended": 140.0, "moments": told}


def complaints(*found: dict[str, Any], several: bool = False) -> list[str]:
    course = Course(KILLED, began=100.0)
    judge_incidents(course, list(found), several=several)
    return course.complaints


WHOLE = incident(*((name, 101.0 + number) for number, name in enumerate(NAMES)))
OLD, NEW = Process("halo1", "server", 5, 10.0), Process("halo1", "server", 9, 50.0)


def test_what_lives_on_when_the_new_server_has_begun_is_a_survivor() -> None:
    rank = Process("halo2", "rank", 7, 5.0)
    gone = {OLD: Span(20, 49.5), rank: Span(20, 49.9), NEW: Span(50.1, 90)}
    assert survivors(gone) == []
    assert servers(gone) == [OLD, NEW]
    assert survivors({**gone, rank: Span(20, 52.0)}) == [f"{rank} lived on for 2.0 s after {NEW} had begun"]
    assert survivors({**gone, OLD: Span(20, 51.0)}) == [f"{OLD} lived on for 1.0 s after {NEW} had begun"]


def test_a_rank_made_of_an_idle_worker_that_is_older_than_the_server_is_no_survivor() -> None:
    assert survivors({NEW: Span(50.1, 90), Process("halo1", "rank", 6, 12.0): Span(70, 90)}) == []


def test_one_whole_incident_with_its_cause_is_what_is_wanted() -> None:
    assert complaints(WHOLE) == []
    assert "no incident" in complaints()[0]
    assert "2 incidents" in complaints(WHOLE, WHOLE)[0]
    assert complaints(WHOLE, WHOLE, several=True) == []
    assert "does not match" in complaints(WHOLE | {"cause": "no carrier"})[0]
    assert "not over" in complaints(WHOLE | {"ended": 0.0})[0]


def test_moments_are_all_there_and_in_order() -> None:
    turned = incident(*((name, 110.0 - number) for number, name in enumerate(NAMES)))
    assert "out of order" in complaints(turned)[0]
    assert "no moment decided, stopped" in complaints(incident(("noticed", 101), ("serving", 140)))[0]


def test_the_table_has_a_line_for_every_fault() -> None:
    course = Course(KILLED, began=100.0, at={"tokens": 41.04})
    judge_incidents(course, [WHOLE], several=False)
    assert table([course])[1].split()[:4] == ["server", "killed", "-", "1.0"]
    assert "41.0" in table([course])[1]


def test_names_of_faults_are_their_own() -> None:
    names = [fault.name for fault in (*model_faults.FAULTS, *ray_faults.FAULTS, *host_faults.FAULTS)]
    assert len(set(names)) == len(names)
