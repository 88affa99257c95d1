"""The contract of ports.Units, on plain units and on a Quadlet file.

The unit has the name of a workload: what a run was like is only remembered of the units that strixd watches.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from strixd.errors import Rejected
from strixd.ports import NO_BOUND, Bound, Host, Unit
from strixd.resources.vllm import NAME as WORKLOAD
from tests.contract.stage import until, watching

NAME = f"{WORKLOAD}.service"
FILE = f"/run/systemd/system/{NAME}"
QUADLET = f"/run/containers/systemd/{WORKLOAD}.container"
ONLINE = 70.0  # seconds: Quadlet's units wait for network-online.target, and that for the automatic profile


@asynccontextmanager
async def unit(host: Host, *lines: str) -> AsyncIterator[str]:
    """A unit with these lines in [Service], loaded and watched; gone afterwards."""
    async with watching(host):
        await host.files.write(FILE, "\n".join(("[Service]", *lines, "")))
        await host.units.reload()
        try:
            yield NAME
        finally:
            await host.units.stop(NAME)
            await host.files.remove(FILE)
            await host.units.reload()


async def test_the_processes_of_a_unit_are_named(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/sleep 30") as name:
        assert await host.units.programs(name) == ()
        await host.units.start(name)

        async def named() -> bool:  # a unit is active a moment before its program is there
            return any("sleep 30" in title for title in await host.units.programs(name))

        assert await until(host, named)
        await host.units.stop(name)
        assert await host.units.programs(name) == ()


async def test_an_interrupt_reaches_those_of_one_title_and_nobody_else(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/sleep 600") as name:
        await host.units.start(name)
        started = await becomes(host, name, "active")
        await host.units.interrupt(name, "VLLM::EngineCore")
        await host.units.interrupt("strixd-none.service", "VLLM::EngineCore")
        await host.sleep(0.3)
        assert await host.units.read(name) == started


async def becomes(host: Host, name: str, active: str, *, seconds: float = 5.0) -> Unit:
    async def look() -> Unit | None:
        state = await host.units.read(name)
        return state if state.active == active else None

    found = await until(host, look, seconds=seconds)
    assert found, await host.units.read(name)
    return found


async def test_an_unknown_unit_is_inactive_and_not_loaded(host: Host) -> None:
    state = await host.units.read("strixd-none.service")
    assert (state.name, state.loaded, state.active) == ("strixd-none.service", False, "inactive")
    assert state.invocation == ""


async def test_an_unknown_unit_cannot_be_started(host: Host) -> None:
    with pytest.raises(Rejected, match="not found"):
        await host.units.start("strixd-none.service")


async def test_stopping_an_unknown_unit_does_nothing(host: Host) -> None:
    await host.units.stop("strixd-none.service")


async def test_a_loaded_unit_that_never_ran(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/sleep 600") as name:
        state = await host.units.read(name)
        assert (state.loaded, state.active, state.invocation) == (True, "inactive", "")


async def test_a_started_unit_is_active_with_a_process(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/sleep 600") as name:
        before = host.now()
        await host.units.start(name)
        state = await becomes(host, name, "active")
        assert state.invocation
        assert before - 1 <= state.since <= host.now() + 1


async def test_starting_an_active_unit_changes_nothing(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/sleep 600") as name:
        await host.units.start(name)
        first = await becomes(host, name, "active")
        await host.units.start(name)
        await host.sleep(0.3)
        assert await host.units.read(name) == first


async def test_a_stopped_unit_is_inactive_when_the_call_returns(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/sleep 600") as name:
        await host.units.start(name)
        started = await becomes(host, name, "active")
        await host.units.stop(name)
        state = await host.units.read(name)
        assert (state.active, state.result) == ("inactive", "success")
        assert state.since >= started.since


async def test_each_run_has_an_invocation_of_its_own(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/sleep 600") as name:
        await host.units.start(name)
        first = await becomes(host, name, "active")
        await host.units.stop(name)
        await host.units.start(name)
        second = await becomes(host, name, "active")
        assert second.invocation != first.invocation


async def test_a_limit_of_a_slice_counts_at_once_and_outlives_a_reload(host: Host) -> None:
    """Whether the kernel obeys is for a machine with a memory controller (tests/vm)."""
    name = f"strixdcontract{uuid4().hex[:8]}.slice"
    assert await host.units.bound(name) == Bound()
    await host.units.limit(name, 1 << 30)
    await host.units.reload()
    assert await host.units.bound(name) == Bound(1 << 30, None)
    async with unit(host, "ExecStart=/bin/sleep 600", f"Slice={name}") as inside:
        await host.units.start(inside)
        await becomes(host, inside, "active")
        assert (await host.units.bound(name)).kernel in (1 << 30, NO_BOUND)
        await host.units.limit(name, 2 << 30)
        assert (await host.units.bound(name)).told == 2 << 30
        assert (await host.units.bound(name)).kernel in (2 << 30, NO_BOUND)
    await host.units.limit(name, NO_BOUND)
    assert (await host.units.bound(name)).told == NO_BOUND


async def test_an_exit_status_is_kept(host: Host) -> None:
    async with unit(host, 'ExecStart=/bin/sh -c "exit 3"') as name:
        await host.units.start(name)
        state = await becomes(host, name, "failed")
        assert (state.result, state.status) == ("exit-code", 3)
        assert state.invocation


async def test_a_signal_is_kept(host: Host) -> None:
    async with unit(host, 'ExecStart=/bin/sh -c "kill -KILL $$$$"') as name:
        await host.units.start(name)
        state = await becomes(host, name, "failed")
        assert (state.result, state.status) == ("signal", 9)


async def test_a_unit_that_ends_well_is_inactive(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/true") as name:
        await host.units.start(name)

        async def ended() -> bool:
            state = await host.units.read(name)
            return bool(state.invocation) and state.active == "inactive"

        assert await until(host, ended)
        state = await host.units.read(name)
        assert (state.result, state.status) == ("success", 0)


async def test_start_does_not_wait_for_the_job(host: Host) -> None:
    async with unit(host, "Type=oneshot", "ExecStart=/bin/sleep 2") as name:
        before = host.now()
        await host.units.start(name)
        assert host.now() - before < 1
        assert await becomes(host, name, "activating")
        await becomes(host, name, "inactive")


async def test_a_failing_unit_can_be_started_any_number_of_times(host: Host) -> None:
    """systemd's start limit (five in ten seconds) is for restarts of its own; strixd paces itself."""
    async with unit(host, 'ExecStart=/bin/sh -c "exit 3"') as name:
        invocations = set()
        for _ in range(8):
            await host.units.start(name)
            state = await becomes(host, name, "failed")
            assert state.result == "exit-code"
            invocations.add(state.invocation)
        assert len(invocations) == 8


async def test_a_unit_whose_file_has_changed_is_stale_until_a_reload(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/sleep 600") as name:
        await host.units.start(name)
        await becomes(host, name, "active")
        assert not (await host.units.read(name)).stale
        await host.files.write(FILE, "[Service]\nExecStart=/bin/sleep 601\n")
        assert (await host.units.read(name)).stale
        await host.units.reload()
        assert not (await host.units.read(name)).stale


async def test_a_quadlet_file_is_a_unit_after_a_reload(host: Host) -> None:
    async with watching(host):
        await host.files.write(QUADLET, "[Container]\nImage=localhost/strixd-none\nPull=never\nExec=true\n")
        try:
            assert not (await host.units.read(NAME)).loaded
            await host.units.reload()
            assert (await host.units.read(NAME)).loaded
            await host.files.write(QUADLET, "[Container]\nImage=localhost/strixd-none\nPull=never\nExec=false\n")
            assert (await host.units.read(NAME)).stale
            await host.units.reload()
            assert not (await host.units.read(NAME)).stale
            await host.units.start(NAME)
            assert (await becomes(host, NAME, "failed", seconds=ONLINE)).result == "exit-code"
        finally:
            await host.files.remove(QUADLET)
            await host.units.reload()
        assert not (await host.units.read(NAME)).loaded
