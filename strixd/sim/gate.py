"""Every call of one simulated strixd process goes through its gate: here calls are counted, refused and cut short.

A killed process does nothing any more: whatever it still calls, while Python unwinds its stack, is refused too,
as after a real SIGKILL. A new process is a new gate over the same world.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from strixd.errors import Unavailable
from strixd.sim.clock import Clock

When = Literal["before", "after"]
HUNG = 25.0  # seconds until a port gives up on a service that does not answer


class Killed(BaseException):
    """strixd was killed here. Not an Exception: nothing in the product may catch it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A writing call that strixd made."""

    port: str
    method: str
    args: tuple[object, ...] = ()

    def __str__(self) -> str:
        return f"{self.port}.{self.method}{self.args}"


@dataclass(slots=True)
class Fault:
    """Raised at the `left`-th matching call from now on, before or after it took effect. `call` is "port.method",
    "port.*", "write" (any writing call) or "any"."""

    call: str
    left: int
    error: BaseException
    when: When = "before"

    def fits(self, port: str, method: str, *, writing: bool) -> bool:
        if self.call == "write":
            return writing
        return self.call in ("any", f"{port}.*", f"{port}.{method}")


@dataclass(slots=True)
class Calls:
    """What was called, what shall go wrong, which services are away (`down`) and which do not answer (`hung`)."""

    writes: list[Call] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    down: set[str] = field(default_factory=set)
    hung: set[str] = field(default_factory=set)
    reads: int = 0

    def due(self, port: str, method: str, *, writing: bool) -> Fault | None:
        """Counts this call; the fault whose turn it is leaves the list."""
        due = None
        for fault in [fault for fault in self.faults if fault.fits(port, method, writing=writing)]:
            fault.left -= 1
            if fault.left == 0:
                self.faults.remove(fault)
                due = due or fault
        return due


class Gate:
    """The calls of one strixd process."""

    def __init__(self, calls: Calls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self.dead = False
        self.closed = False  # nobody watches any more: adapters that act by themselves stop

    @asynccontextmanager
    async def read(self, port: str, method: str) -> AsyncIterator[None]:
        self._calls.reads += 1
        async with self._call(port, method, writing=False):
            yield

    @asynccontextmanager
    async def write(self, port: str, method: str, *args: object) -> AsyncIterator[None]:
        async with self._call(port, method, writing=True):
            self._calls.writes.append(Call(port, method, args))
            yield

    @asynccontextmanager
    async def _call(self, port: str, method: str, *, writing: bool) -> AsyncIterator[None]:
        self._alive()
        await self._answering(port)
        fault = self._calls.due(port, method, writing=writing)
        if fault and fault.when == "before":
            self._raise(fault.error)
        yield
        self._alive()
        if fault:
            self._raise(fault.error)

    async def _answering(self, port: str) -> None:
        if port in self._calls.down:
            raise Unavailable(f"Cannot reach {port}: the service is not running (simulated)")
        if port in self._calls.hung:
            await self._clock.sleep(HUNG)
            raise Unavailable(f"Cannot reach {port}: no answer within {HUNG:.0f} s (simulated)")

    def _alive(self) -> None:
        if self.dead:
            raise Killed

    def _raise(self, error: BaseException) -> None:
        self.dead = self.dead or isinstance(error, Killed)
        raise error
