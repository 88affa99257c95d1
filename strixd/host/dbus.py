"""The words of D-Bus: what a call is made to, what a signal is, what a service says when it says no.

Plain values without a D-Bus library, so that what an adapter sends can be built, compared and tested without a bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from strixd.errors import Rejected


@dataclass(frozen=True, slots=True)
class Variant:
    """A value with its D-Bus signature, for where a signature says `v`, which Python's types cannot tell:
    Variant("u", 9000). May hold, or be held by, dicts, lists and tuples."""

    signature: str
    value: object


@dataclass(frozen=True, slots=True)
class Remote:
    """One interface of one object of one service. For a subscription, "" means any."""

    service: str
    path: str
    interface: str


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal as it came; `path` is the object that sent it."""

    path: str
    member: str
    args: tuple[Any, ...]


class RemoteError(Rejected):
    """A service said no: `name` is the D-Bus name of its error, `words` its own words."""

    def __init__(self, doing: str, *, name: str, words: str) -> None:
        super().__init__(f"Cannot {doing}: {words}")
        self.name = name
        self.words = words
