"""What may hang: one thread at a time, and whoever waits in turn is answered."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from strixd.errors import Unavailable
from strixd.host.one_thread import OneThread


@pytest.mark.parametrize("callers", [1, 2, 3, 8])
def test_who_asks_at_the_same_time_is_answered_in_turn(callers: int) -> None:
    """Several resources look within one pass."""
    within, most = 0, 0

    def work() -> int:
        nonlocal within, most
        within += 1
        most = max(most, within)
        threading.Event().wait(0.01)
        within -= 1
        return 7

    async def scenario() -> list[int]:
        thread = OneThread("the kernel", 30.0, "")
        return await asyncio.gather(*(thread.run(work, "look") for _ in range(callers)))

    assert asyncio.run(scenario()) == [7] * callers
    assert most == 1


async def _in_the_end(thread: OneThread) -> int:
    """A busy machine may be late, too."""
    async with asyncio.timeout(30):
        while True:
            with suppress(Unavailable):
                return await thread.run(lambda: 7, "look")


@pytest.mark.parametrize("callers", [1, 2, 8])
def test_who_waits_for_one_that_hangs_is_told_and_begins_nothing(callers: int) -> None:
    go, begun = threading.Event(), list[int]()

    def hang() -> None:
        begun.append(1)
        go.wait(60)

    async def scenario() -> None:
        thread = OneThread("the kernel", 0.1, "look there")
        asked = (thread.run(hang, "look") for _ in range(callers))
        for failure in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(failure, Unavailable)
            assert (str(failure), failure.hint) == ("Cannot look: the kernel does not answer", "look there")
        assert len(begun) == 1
        go.set()
        assert await _in_the_end(thread) == 7

    asyncio.run(scenario())
