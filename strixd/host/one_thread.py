"""Files of the kernel that may hang whoever asks: one thread at a time, also while one hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from strixd.errors import Unavailable

T = TypeVar("T")


class OneThread:
    """`answer`: seconds for one call, and for the ends of those before it. `who` and `hint` are for the error."""

    def __init__(self, who: str, answer: float, hint: str) -> None:
        self._who = who
        self._answer = answer
        self._hint = hint
        self._busy: asyncio.Future[object] | None = None

    async def run(self, work: Callable[[], T], doing: str) -> T:
        """Raises Unavailable, and what `work` raises."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._answer
        while self._busy is not None and not self._busy.done():  # again: others may have waited for the same end
            if loop.time() >= deadline:
                raise self._silent(doing)
            await asyncio.wait({self._busy}, timeout=deadline - loop.time())
        future = loop.run_in_executor(None, work)
        self._busy = future  # type: ignore[assignment]  # only waited for
        done, _ = await asyncio.wait({future}, timeout=self._answer)
        if not done:
            raise self._silent(doing)
        return future.result()

    def _silent(self, doing: str) -> Unavailable:
        return Unavailable(f"Cannot {doing}: {self._who} does not answer", hint=self._hint)
