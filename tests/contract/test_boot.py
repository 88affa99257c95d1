"""The contract of ports.BootLoader; where nothing can change kernel arguments, that is all there is to test of it. And
of ports.Kernel, what it says of memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from strixd.errors import StrixdError
from strixd.ports import DEFAULT_GRUB, KERNEL_CMDLINE, Boot, Host
from tests.contract.stage import Stage

OURS = "strixd.contract=1"


def lines(boot: Boot) -> dict[str, str]:
    """What is written at every place but rescue entries."""
    entries = {entry.name: entry.options for entry in boot.entries if not entry.rescue}
    files = {KERNEL_CMDLINE: boot.kernel_cmdline, DEFAULT_GRUB: boot.default_grub}
    return entries | {place: text for place, text in files.items() if text is not None}


@asynccontextmanager
async def tool(host: Host) -> AsyncIterator[dict[str, str]]:
    """What is written at first, and again afterwards."""
    before = await host.boot.read()
    assert before.tool, "the lab lays a stand-in for grubby into the host"
    try:
        yield lines(before)
    finally:
        await host.boot.change(lines(before))
        assert await host.boot.read() == before


async def test_what_runs_can_be_read(host: Host) -> None:
    assert (await host.boot.read()).running.strip()


async def test_memory_is_in_bytes(host: Host) -> None:
    assert 1 << 28 < await host.kernel.memory() < 1 << 44


async def test_without_a_tool_a_change_is_a_named_failure(stage: Stage, host: Host) -> None:
    with stage.without_boot_tool():
        assert (await host.boot.read()).tool == ""
        with pytest.raises(StrixdError):
            await host.boot.change({KERNEL_CMDLINE: OURS})


async def test_every_place_reads_exactly_as_told(host: Host) -> None:
    async with tool(host) as before:
        wanted = {place: f"{OURS} {text} last" for place, text in before.items()}
        await host.boot.change(wanted)
        assert lines(await host.boot.read()) == wanted


async def test_places_that_are_not_named_stay_as_they_are(host: Host) -> None:
    async with tool(host) as before:
        rescue = [entry for entry in (await host.boot.read()).entries if entry.rescue]
        place, text = next(iter(before.items()))
        await host.boot.change({place: f"{text} {OURS}"})
        after = await host.boot.read()
        assert lines(after) == before | {place: f"{text} {OURS}"}
        assert [entry for entry in after.entries if entry.rescue] == rescue


async def test_what_runs_is_not_changed(host: Host) -> None:
    async with tool(host) as before:
        running = (await host.boot.read()).running
        await host.boot.change({place: f"{text} {OURS}" for place, text in before.items()})
        assert (await host.boot.read()).running == running


async def test_init_arguments_and_quotes_come_through(host: Host) -> None:
    async with tool(host) as before:
        wanted = {place: f'{OURS} {text} dyndbg="file a/* +p" -- single' for place, text in before.items()}
        await host.boot.change(wanted)
        assert lines(await host.boot.read()) == wanted


async def test_the_same_twice_is_harmless(host: Host) -> None:
    async with tool(host) as before:
        wanted = {place: f"{OURS} {text}".strip() for place, text in before.items()}
        await host.boot.change(wanted)
        await host.boot.change(wanted)
        assert lines(await host.boot.read()) == wanted


async def test_an_entry_that_is_gone_is_passed_over(host: Host) -> None:
    async with tool(host) as before:
        await host.boot.change({"strixd-none": OURS})
        assert lines(await host.boot.read()) == before
