"""The memory limit on a kernel that keeps one (a lab host's does not): who is killed, and who lives on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.cache import say
from tests.vm.guest import FILES
from tests.vm.machine import Machine

GIB, MIB = 1 << 30, 1 << 20
Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen(vm: Machine) -> Seen:
    told = vm.boot(FILES / "press.py")
    for line in (told["strixd"] + told["kernel"]).splitlines():
        say(f"vm: {line}")
    return told


def test_all_but_the_reserve_is_in_force(seen: Seen) -> None:
    most = (seen["total"] - GIB) // MIB * MIB
    assert seen["status"]["condition"] == "ok"
    assert seen["without_end"]["limit"] == most


def test_a_model_without_end_is_killed_at_the_limit_and_says_so(seen: Seen) -> None:
    glutton = seen["without_end"]
    assert not glutton["ended"]["held_all"]
    assert glutton["peak"] <= glutton["limit"]
    assert (glutton["ended"]["ActiveState"], glutton["ended"]["Result"]) == ("failed", "oom-kill")
    assert "memory ran out" in glutton["ended"]["words"]
    assert "reached 1 time," in " ".join(glutton["facts"]), glutton["events"]


def test_a_model_that_runs_gets_another_limit_at_once(seen: Seen) -> None:
    change = seen["another_reserve"]
    assert change["before"] - change["after"] == 64 * MIB, change["said"]
    assert change["same"], "it was not restarted"


def test_when_the_host_has_none_left_the_model_goes_before_one_that_has_more(seen: Seen) -> None:
    choice = seen["kernel_chooses"]
    assert choice["ended"]["Result"] == "oom-kill"
    assert choice["other"] == "active"


def test_everything_else_lives_on(seen: Seen) -> None:
    assert "0" not in seen["before"].values()
    assert seen["after"] == seen["before"]
