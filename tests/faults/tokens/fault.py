"""A fault as data: how it is done, how it is undone where the world has to be mended first, and what must be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from strixd.errors import StrixdError
from tests.e2e.cluster import Cluster
from tests.lab.host import NotUp
from tests.lab.shell import CommandFailed

AWAY = (StrixdError, NotUp, CommandFailed, TimeoutError, AssertionError, OSError, ValueError, LookupError)
"""What an act upon a cluster in trouble, or a look at it, may meet."""

Act = Callable[[Cluster], object]


def nothing(_cluster: Cluster) -> None:
    """The world works on without anybody's help."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`harm` is done; `meanwhile` looks at what strixd says and does while it lasts (AssertionError or TimeoutError:
    not as it should be); `mend` lets the machines work again. `cause`: a pattern for the incident's sentence. `steady`:
    the same server process must still be there afterwards. `expected`: journal lines beyond those of any end of a
    workload. `within`: seconds from the mending to tokens."""

    name: str
    harm: Act
    cause: str = ""
    meanwhile: Act = nothing
    mend: Act = nothing
    steady: bool = False
    expected: tuple[str, ...] = ()
    within: float = 300.0

    def __str__(self) -> str:
        return self.name
