"""The most telling faults of tests/faults/tokens, each of which must end in tokens again."""

from __future__ import annotations

import pytest

from tests.e2e.cluster import Cluster
from tests.faults.tokens import host_faults, model_faults, ray_faults
from tests.faults.tokens.course import COURSES
from tests.faults.tokens.fault import Fault
from tests.faults.tokens.revival import undergoing
from tests.lab.judge import Judge

pytestmark = pytest.mark.lab
TELLING = {
    "server killed",
    "engine hangs",
    "raylet killed on the worker",
    "head's power lost",
    "NetworkManager restarted",
    "firewalld restarted",
    "cable out for 5 s",
    "strixd killed",
}
ALL = (*model_faults.FAULTS, *ray_faults.FAULTS, *host_faults.FAULTS)
FAULTS = [fault for fault in ALL if fault.name in TELLING]


def test_all_of_them_are_here() -> None:
    assert {fault.name for fault in FAULTS} == TELLING


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_tokens_again_after(fault: Fault, serving: Cluster, judge: Judge, request: pytest.FixtureRequest) -> None:
    with undergoing(serving, judge, request.config.stash.setdefault(COURSES, [])) as undergo:
        course = undergo(fault)
    assert not course.complaints, "\n".join(course.complaints)
