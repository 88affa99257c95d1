"""What was asked just now counts, until something changes."""

from __future__ import annotations

import asyncio

import pytest

from strixd.errors import Unavailable
from strixd.host.recent import Recent


class Source:
    """Each answer is another; the event, when it is there, is waited for before it."""

    def __init__(self) -> None:
        self.asked = 0
        self.hold: asyncio.Event | None = None

    async def ask(self) -> int:
        self.asked += 1
        answer = self.asked
        if self.hold:
            await self.hold.wait()
        return answer


async def failing() -> int:
    raise Unavailable("test")


def test_one_answer_for_each_question_until_something_changes() -> None:
    async def scenario() -> None:
        recent, source = Recent(60), Source()
        assert [await recent.read(key, source.ask) for key in ("a", "b", "a", "b")] == [1, 2, 1, 2]
        recent.forget()
        assert [await recent.read(key, source.ask) for key in ("a", "b", "a")] == [3, 4, 3]

    asyncio.run(scenario())


def test_it_counts_for_its_time_only() -> None:
    async def scenario() -> None:
        recent, source = Recent(0), Source()
        assert [await recent.read("a", source.ask) for _ in range(3)] == [1, 2, 3]

    asyncio.run(scenario())


def test_what_was_asked_before_a_change_is_not_kept_after_it() -> None:
    async def scenario() -> None:
        recent, source = Recent(60), Source()
        source.hold = asyncio.Event()
        early = asyncio.create_task(recent.read("a", source.ask))
        await asyncio.sleep(0)
        recent.forget()
        source.hold.set()
        assert await early == 1
        assert await recent.read("a", source.ask) == 2

    asyncio.run(scenario())


def test_a_change_of_our_own_counts_even_when_it_fails_and_an_error_is_not_kept() -> None:
    async def scenario() -> None:
        recent, source = Recent(60), Source()
        assert await recent.read("a", source.ask) == 1
        with pytest.raises(Unavailable), recent.changing():
            await failing()
        with pytest.raises(Unavailable):
            await recent.read("a", failing)
        assert await recent.read("a", source.ask) == 2

    asyncio.run(scenario())
