"""From a foreign thread to the event loop, with one wake-up at most.

One `call_soon_threadsafe` per signal overflows the self-pipe that SIGTERM uses too, and SIGTERM is lost. So a thread
posts into a queue, the loop is woken once, and empties the queue in bounded bites.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

BITE = 128
"""Posts handled before the loop gets a turn for everything else."""


class Handover:
    """`post` from any thread; what was posted runs on the loop, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._posts: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._woken = False
        self._closed = False

    def post(self, run: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                return
            self._posts.append(run)
            if not self._woken:
                self._woken = True
                self._loop.call_soon_threadsafe(self._drain)

    def close(self) -> None:
        """After this nothing runs any more; the loop may be closed."""
        with self._lock:
            self._closed = True
            self._posts.clear()

    def _drain(self) -> None:
        more = True
        try:
            more = self._bite()
        finally:  # one that raises takes nothing with it that was posted after it
            if more:
                self._loop.call_soon(self._drain)

    def _bite(self) -> bool:
        """Whether there may be more."""
        for _ in range(BITE):
            with self._lock:
                if not self._posts:
                    self._woken = False
                    return False
                run = self._posts.popleft()
            run()
        return True
