"""The step that saves evidence: it waits for the unit's end, not for ever, and never keeps a restart from going on."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import pytest

from strixd.errors import Rejected, Unavailable
from strixd.sim import World, clock, simulated_host
from strixd.workload import EVIDENCE, EVIDENCE_REQUEST, EVIDENCE_WITHIN, Gather

STEP = Gather("strixd-vllm.service", "no token for 20 s")


def play(scene: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        await scene(World())

    clock.run(main())


async def took(world: World) -> float:
    began = asyncio.get_running_loop().time()
    await STEP.apply(simulated_host(world))
    return asyncio.get_running_loop().time() - began


def test_it_says_what_it_is_for() -> None:
    assert str(STEP) == "save evidence (no token for 20 s)"
    assert STEP.undo() is None


def test_it_asks_the_unit_and_waits_for_its_end(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World) -> None:
        for _ in range(2):  # the second one must not take the end of the first for its own
            assert 1.0 <= await took(world) < 2.0
            assert not world.systemd.active(EVIDENCE)
        assert json.loads(world.disk.files[EVIDENCE_REQUEST]) == {"unit": STEP.unit, "why": STEP.why}

    play(scene)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("unit", "words"),
    [("ExecStart=/bin/sleep 600", "has not ended within 15 s"), ("ExecStart=/bin/false", "ended with status 1")],
)
def test_a_unit_that_hangs_or_fails_is_told_and_the_restart_goes_on(
    caplog: pytest.LogCaptureFixture, unit: str, words: str
) -> None:
    async def scene(world: World) -> None:
        world.systemd.fixed[EVIDENCE] = f"[Service]\nType=oneshot\n{unit}\n"
        world.systemd.reload()
        assert await took(world) <= EVIDENCE_WITHIN + 1

    play(scene)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert words in caplog.text


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("files.write", Rejected("Cannot write: No space left on device")),
        ("units.start", Unavailable("Cannot start: no bus")),
        ("units.read", Unavailable("Cannot read: no bus")),
    ],
)
def test_a_full_disk_or_an_absent_systemd_is_told_and_the_restart_goes_on(
    caplog: pytest.LogCaptureFixture, call: str, error: Exception
) -> None:
    async def scene(world: World) -> None:
        world.fail(call, error)
        await took(world)

    play(scene)
    assert str(error) in caplog.text
