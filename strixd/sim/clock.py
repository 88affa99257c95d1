"""The simulation's time: the event loop's, times a factor.

For tests the loop itself is virtual (`run`): whenever nothing is ready it jumps to its next timer, so that code
with asyncio timeouts runs unchanged and a thousand hours pass in seconds, the same way each time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
EPOCH = 1_760_000_000.0
UP = 100.0  # seconds for which the host has been up at the beginning
PATIENCE = 5.0  # real seconds that a virtual loop without any timer waits for a file descriptor or a thread


class Clock:
    """Seconds since the epoch in the simulated world, and timers there."""

    def __init__(self, *, factor: float = 1.0, epoch: float = EPOCH) -> None:
        self._factor = factor
        self._epoch = epoch
        self._start: float | None = None

    def now(self) -> float:
        """Seconds since the epoch, by a clock that may be set."""
        return self._epoch + self.steady()

    def steady(self) -> float:
        """Seconds by a clock that nobody sets."""
        at = asyncio.get_running_loop().time()
        if self._start is None:
            self._start = at - UP / self._factor
        return (at - self._start) * self._factor

    def dated(self, at: float) -> float:
        """When that was (by `steady`) as the clock is set now."""
        return self._epoch + at

    async def sleep(self, seconds: float) -> None:
        self.now()
        await asyncio.sleep(seconds / self._factor)

    def after(self, seconds: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        self.now()
        return asyncio.get_running_loop().call_later(seconds / self._factor, action)


class _Jumping(selectors.EpollSelector):
    """Instead of waiting for the next timer it moves the time there."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            return self._wait()
        self.time += timeout
        return ready

    def _wait(self) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(PATIENCE)
        if not ready:
            raise RuntimeError("the simulation stands still: no timer is set and nobody will wake it")
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when everybody waits."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.time


def run(main: Coroutine[Any, Any, T]) -> T:
    """asyncio.run in virtual time. What goes wrong in a timer of the world is raised too, not only logged."""
    wrong: list[BaseException] = []
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: wrong.append(_error(context)))
        result = runner.run(main)
    if wrong:
        raise wrong[0]
    return result


def _error(context: dict[str, Any]) -> BaseException:
    error = context.get("exception")
    return error if isinstance(error, BaseException) else RuntimeError(str(context.get("message")))
