"""The workload's memory limit: what follows from what is read, the laws of a resource that is not one of the settings
(a step that failed is tried again, never taken back), and the files that the figures come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from strixd.engine.apply import begin
from strixd.errors import Rejected
from strixd.host import cgroup
from strixd.host.effects import Sysfs
from strixd.plan import Condition, Plan
from strixd.ports import NO_BOUND, Bound, Unit
from strixd.quadlet import SLICE
from strixd.resources import memory
from strixd.sim import World, simulated_host
from strixd.sim.gate import Killed, When
from strixd.workload import ended
from tests.sim.node import virtual

GIB = 1 << 30
WANTED = memory.Desired(reserve=8 * GIB)
MOST = 120 * GIB
TRUE = memory.Observed(total=128 * GIB, bound=Bound(MOST, MOST))
whens = pytest.mark.parametrize("when", ["before", "after"])


def plan(**seen: object) -> Plan:
    return memory.Memory().plan(WANTED, replace(TRUE, **seen))  # type: ignore[arg-type]


def test_the_limit_is_whole_mib() -> None:
    assert memory.limit(WANTED, 128 * GIB - 4096) == MOST - (1 << 20)


@pytest.mark.parametrize("had", [NO_BOUND, GIB], ids=["none", "another"])
def test_all_but_the_reserve_is_one_step(had: int) -> None:
    found = plan(bound=Bound(had, had))
    assert found.steps == (memory.Limit(MOST, had),)
    assert "to 120 GiB of memory, and no swap (it has " in str(found.steps[0])


@pytest.mark.parametrize(
    ("bound", "condition", "words"),
    [
        (Bound(MOST, MOST), "ok", ""),
        (Bound(MOST, None), "ok", ""),
        (Bound(MOST, NO_BOUND), "ineffective", "asked for a limit of 120 GiB, and the kernel has no limit"),
        (Bound(MOST, 4096 << 20), "ineffective", "the kernel has 4 GiB"),
    ],
)
def test_configured_and_in_force_are_two_facts(bound: Bound, condition: Condition, words: str) -> None:
    found = plan(bound=bound)
    assert (found.steps, found.condition) == ((), condition)
    assert words in found.why


def test_how_often_the_limit_was_reached_is_told() -> None:
    assert plan().facts == ("the model may take 120 GiB of 128 GiB, GPU memory not counted",)
    assert "reached 1 time," in plan(bound=Bound(MOST, MOST, reached=1)).facts[0]
    assert "reached 2 times," in plan(bound=Bound(MOST, MOST, reached=2)).facts[0]


def test_a_reserve_that_leaves_nothing_is_told_and_changes_nothing() -> None:
    found = plan(total=8 * GIB)
    assert (found.steps, found.condition) == ((), "blocked")
    assert "8 GiB leaves no model of the 8 GiB here" in found.why
    assert "memory-reserve" in found.hint
    assert found.facts == ("until then: 120 GiB",), "what was set earlier stays"


# The laws.


def fresh() -> World:
    return World()


def older() -> World:
    """Another limit is in force."""
    world = World()
    world.systemd.limits[SLICE] = GIB
    return world


starts = pytest.mark.parametrize("start", [fresh, older])


async def one_pass(world: World) -> Plan:
    """By a process of its own; the plan that is left."""
    host, resource = simulated_host(world), memory.Memory()
    found = resource.plan(WANTED, await resource.observe(host, WANTED))
    if not found.steps:
        return found
    return (await begin(resource, WANTED, host, found, lambda *_: None)).plan


@starts
@virtual
async def test_idempotent_and_quiet(start: Callable[[], World]) -> None:
    world = start()
    assert (await one_pass(world)).steps == ()
    settled, calls = world.snapshot(), list(world.calls.writes)
    assert (await one_pass(world)).condition == "ok"
    assert (world.snapshot(), world.calls.writes) == (settled, calls)


@starts
@whens
@virtual
async def test_failed_at_any_call_it_is_tried_again(start: Callable[[], World], when: When) -> None:
    calm = start()
    await one_pass(calm)
    for number in range(1, len(calm.calls.writes) + 1):
        world = start()
        world.fail("write", Rejected("no"), at=number, when=when)
        assert (await one_pass(world)).steps, "told as not done"
        assert (await one_pass(world)).steps == ()
        assert world.snapshot() == calm.snapshot()


@starts
@whens
@virtual
async def test_killed_at_any_call_it_is_taken_up(start: Callable[[], World], when: When) -> None:
    calm = start()
    await one_pass(calm)
    for number in range(1, len(calm.calls.writes) + 1):
        world = start()
        world.kill_at(number, when=when)
        with pytest.raises(Killed):
            await one_pass(world)
        assert (await one_pass(world)).steps == ()
        assert world.snapshot() == calm.snapshot()


# What the kernel says.


def test_an_end_for_want_of_memory_is_named_whatever_its_status() -> None:
    died = Unit("strixd-vllm.service", active="failed", result="oom-kill", status=137, invocation="i")
    assert "memory ran out" in ended(died)


@pytest.fixture
def group(tmp_path: Path) -> Path:
    folder = tmp_path / "strixd.slice/strixd-workload.slice"
    folder.mkdir(parents=True)
    return folder


def limit(root: Path) -> int | None:
    return cgroup.limit("/strixd.slice/strixd-workload.slice", root)


def test_the_limit_in_force(group: Path, tmp_path: Path) -> None:
    assert limit(tmp_path) == NO_BOUND, "no memory controller"
    (group / "memory.max").write_text("max\n")
    assert limit(tmp_path) == NO_BOUND
    (group / "memory.max").write_text("1073741824\n")
    assert limit(tmp_path) == GIB
    assert cgroup.limit("/strixd.slice/other.slice", tmp_path) is None
    assert cgroup.limit("", tmp_path) is None, "no group is not the root of all"


def test_only_kills_for_this_limit_count(group: Path, tmp_path: Path) -> None:
    assert cgroup.reached("/strixd.slice/strixd-workload.slice", tmp_path) == 0
    (group / "memory.events.local").write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 5\noom_group_kill 1\n")
    assert cgroup.reached("/strixd.slice/strixd-workload.slice", tmp_path) == 2


@virtual
async def test_the_memory_of_the_host_is_read_in_bytes(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       131072000 kB\nMemFree:        1 kB\n")
    assert await Sysfs(tmp_path).memory() == 131072000 << 10


@pytest.mark.parametrize("text", [None, "MemFree: 1 kB\n"])
@virtual
async def test_memory_that_cannot_be_read_is_a_named_failure(tmp_path: Path, text: str | None) -> None:
    (tmp_path / "proc").mkdir()
    if text:
        (tmp_path / "proc/meminfo").write_text(text)
    with pytest.raises(Rejected, match="how much memory"):
        await Sysfs(tmp_path).memory()
