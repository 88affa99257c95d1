"""Step, Plan and Resource: the words in which every change is thought before it is made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Literal, Protocol, TypeVar

from strixd.ports import Host

Condition = Literal["ok", "waiting", "blocked", "reboot", "ineffective", "held", "stuck"]
"""ok; waiting: something it needs is not ok yet; blocked: strixd cannot help (no carrier); reboot: true after the
next boot; ineffective: set, and without the effect that it is for; held: failed, next try at a stated time; stuck: an
operator must look."""


class Effect(Enum):
    """When a step takes effect."""

    NOW = "now"
    REBOOT = "reboot"
    LASTING = "lasting"
    """Makes last what holds already (a profile from memory to disk): taken only when all else is verified."""


class Step(Protocol):
    """One change to one thing, as plain data: printable, comparable."""

    effect: ClassVar[Effect]

    def __str__(self) -> str: ...
    def undo(self) -> Step | None:
        """The step back, known from what was observed; None when there is nothing to take back."""

    async def apply(self, host: Host) -> None:
        """Idempotent; raises StrixdError only."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one resource must do (`steps`), or why there is nothing to do although it is not ok (`condition`, `why`,
    and what a person can do about it: `hint`). `facts` says in words what was observed. `interface`: the one network
    interface that the plan is about, also when there are no steps. `cause`: why there are steps although nobody
    changed anything. `calm`: seconds for which all that it needs must have been ok before the steps are taken: they
    may be for the echo of what is mended already. `again`: seconds until one must look again, 0 when the end of it
    gives a sign or can wait. `echo`: what is amiss follows from the end of a workload or from a start of ours, so it
    explains no incident. `hopeless`: what the steps do has failed in a way that it gets over only if it ever worked:
    they are taken when the model has answered under the same wish, else `why` is for a person."""

    resource: str
    steps: tuple[Step, ...] = ()
    condition: Condition = "ok"
    why: str = ""
    hint: str = ""
    facts: tuple[str, ...] = ()
    interface: str = ""
    cause: str = ""
    calm: float = 0.0
    again: float = 0.0
    echo: bool = False
    hopeless: bool = False


D = TypeVar("D", contravariant=True)
O = TypeVar("O")  # noqa: E741 - the letter of the design: Resource[D, O]


class Resource(Protocol[D, O]):
    """A thing kept true. `settle`: seconds the world may take to agree with a step that it accepted.
    `supervised`: a workload, whose steps start something that may fail later: engine/supervise paces them, and
    they are not taken back."""

    name: ClassVar[str]
    settle: ClassVar[float]
    supervised: ClassVar[bool]

    def needs(self, desired: D) -> tuple[str, ...]:
        """Names of the resources that must be ok before a step of this one is taken."""

    async def observe(self, host: Host, desired: D) -> O:
        """All the reading."""

    def plan(self, desired: D, observed: O) -> Plan:
        """All the thinking; no I/O."""

    def guard(self, host: Host, plan: Plan, *, resumed: bool) -> AbstractAsyncContextManager[None]:
        """Stands around the steps of this plan, their verification and their undoing: a transaction of the foreign
        system's own, which takes everything back should strixd be killed inside. Left without an error it is
        confirmed; left with a StrixdError it is rolled back; anything else leaves it to its own timeout. `resumed`: an
        attempt that was killed is taken up again, and its transaction may still be open."""


@asynccontextmanager
async def unguarded(host: Host, plan: Plan, *, resumed: bool) -> AsyncIterator[None]:
    """The guard of a system that has no transactions."""
    yield
