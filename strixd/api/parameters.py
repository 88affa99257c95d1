"""What the methods of io.strixd take, as values; read from a call by commands.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from strixd.engine.status import Phase
from strixd.orders import Workload

_LONGEST_WAIT: Final = 30 * 86400
_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Nothing:
    """No parameters."""


@dataclass(frozen=True, slots=True)
class Ordered:
    model: str
    arguments: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """What is to be restarted; the server unless it is said."""

    workload: Workload | None = None


def _waitable(seconds: int) -> str:
    """A JSON number may have thousands of digits, of which no clock is made."""
    return "" if 0 <= seconds <= _LONGEST_WAIT else f"must be 0 to {_LONGEST_WAIT} seconds"


@dataclass(frozen=True, slots=True)
class Awaited:
    phase: Phase
    timeout: Annotated[int, _waitable] | None = None


def _countable(count: int) -> str:
    return "" if 1 <= count <= _MOST else f"must be 1 to {_MOST}"


@dataclass(frozen=True, slots=True)
class Counted:
    count: Annotated[int, _countable] | None = None
