"""What was asked just now counts for a while, unless a change was told of since."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class Recent:
    """Answers by what was asked for. `seconds`: for how long one counts; an error is never kept."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: dict[Hashable, tuple[float, Any]] = {}
        self._changes = 0

    async def read(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """What comes while something changes is an answer, but is not kept: it may be of before the change."""
        until, kept = self._kept.get(key, (0.0, None))
        if time.monotonic() < until:
            return kept  # type: ignore[no-any-return]  # put there by the same key
        changes, until = self._changes, time.monotonic() + self._seconds
        answer = await ask()
        if changes == self._changes:
            self._kept[key] = (until, answer)
        return answer

    def forget(self) -> None:
        """Something changed: the next read asks again."""
        self._changes += 1
        self._kept.clear()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """We change something, whether that succeeds or not."""
        try:
            yield
        finally:
            self.forget()
