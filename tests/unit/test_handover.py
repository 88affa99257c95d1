"""From a thread to the loop: in order, all of it, with one wake-up, and the loop keeps its turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from strixd.host.handover import BITE, Handover


def test_a_flood_from_a_thread_arrives_whole_and_in_order() -> None:
    async def run() -> list[int]:
        seen: list[int] = []
        done = asyncio.Event()
        handover = Handover(asyncio.get_running_loop())

        def flood() -> None:
            for n in range(50_000):
                handover.post(_append(seen, n))
            handover.post(done.set)

        thread = threading.Thread(target=flood)
        thread.start()
        await asyncio.wait_for(done.wait(), 30)
        thread.join()
        return seen

    assert asyncio.run(run()) == list(range(50_000))


def test_the_loop_is_woken_once_for_many_posts() -> None:
    loop = Mock(spec=asyncio.AbstractEventLoop)
    handover = Handover(loop)
    for _ in range(1000):
        handover.post(lambda: None)
    assert loop.call_soon_threadsafe.call_count == 1


def test_a_bite_is_bounded_and_the_rest_follows() -> None:
    loop, seen = Mock(spec=asyncio.AbstractEventLoop), list[int]()
    handover = Handover(loop)
    for n in range(BITE + 1):
        handover.post(_append(seen, n))
    loop.call_soon_threadsafe.call_args.args[0]()
    assert len(seen) == BITE
    loop.call_soon.call_args.args[0]()
    assert len(seen) == BITE + 1
    handover.post(_append(seen, 0))
    assert loop.call_soon_threadsafe.call_count == 2


def test_one_that_raises_takes_no_other_with_it() -> None:
    """The end of a link to the bus may be among those that follow, and nobody would dial again."""
    loop, seen = Mock(spec=asyncio.AbstractEventLoop), list[int]()
    handover = Handover(loop)
    for run in (_append(seen, 1), lambda: [][0], _append(seen, 2)):
        handover.post(run)
    with pytest.raises(IndexError):
        loop.call_soon_threadsafe.call_args.args[0]()
    loop.call_soon.call_args.args[0]()
    assert seen == [1, 2]
    handover.post(_append(seen, 3))
    assert loop.call_soon_threadsafe.call_count == 2


def test_nothing_runs_after_close() -> None:
    loop, seen = Mock(spec=asyncio.AbstractEventLoop), list[int]()
    handover = Handover(loop)
    handover.post(_append(seen, 1))
    handover.close()
    handover.post(_append(seen, 2))
    loop.call_soon_threadsafe.call_args.args[0]()
    assert seen == []


def _append(seen: list[int], number: int) -> Callable[[], None]:
    return lambda: seen.append(number)
