"""The DSCP of RDMA connections that programs make by the kernel's rdma_cm, on the port that the ranks use.

The ranks' own traffic does not go by it: RCCL opens its queue pairs itself, with NCCL_IB_TC (collectives.py). This is
for all else over RoCE, so that a switch has one class for it. The kernel keeps the value until the device goes or the
host boots, so what was there before is remembered for as long. Without RDMA nothing is set, and nothing taken back.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import ClassVar

from strixd.decode import decode
from strixd.fabric import pick
from strixd.ladder import judge
from strixd.plan import Effect, Plan, Step, unguarded
from strixd.ports import Host, RdmaPort
from strixd.resources.fabric import Desired, card

RECORD = "/run/strixd/roce-tos.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """That strixd gives a port `tos`, where it `found` another: what somebody else gave it `before`, or strixd itself,
    or, where strixd was killed in between, still has."""

    device: str
    number: int
    tos: int
    found: int
    before: int

    def ours(self, tos: int) -> bool:
        return tos in (self.tos, self.found)


@dataclass(frozen=True, slots=True)
class Keep:
    """Remember what a port had before, or no longer (None). `former` was remembered until now."""

    effect: ClassVar[Effect] = Effect.NOW
    kept: Kept | None
    former: Kept | None = None

    def __str__(self) -> str:
        if self.kept is None:
            return "forget which TOS rdma_cm had before"
        return f"remember that rdma_cm had {_words(self.kept.before)} on {self.kept.device} port {self.kept.number}"

    def undo(self) -> Step:
        return Keep(self.former, self.kept)

    async def apply(self, host: Host) -> None:
        if self.kept is None:
            await host.files.remove(RECORD)
        else:
            await host.files.write(RECORD, json.dumps(asdict(self.kept)) + "\n")


@dataclass(frozen=True, slots=True)
class Mark:
    """Give the connections of a port this type of service, from now on; those that are there keep theirs."""

    effect: ClassVar[Effect] = Effect.NOW
    device: str
    number: int
    tos: int
    before: int

    def __str__(self) -> str:
        where = f"{self.device} port {self.number}"
        return f"have rdma_cm connect over {where} with {_words(self.tos)} instead of {_words(self.before)}"

    def undo(self) -> Step:
        return Mark(self.device, self.number, self.before, self.tos)

    async def apply(self, host: Host) -> None:
        await host.rdma_cm.set_tos(self.device, self.number, self.tos)


@dataclass(frozen=True, slots=True)
class Observed:
    """`port`: that of RoCE which the ranks may use, or, where no DSCP is wanted, the one of `kept` while it is there;
    `why` there is none. `tos`: what it has, None without a port."""

    port: RdmaPort | None = None
    why: str = ""
    tos: int | None = None
    kept: Kept | None = None


class Dscp:
    name: ClassVar[str] = "dscp"
    settle: ClassVar[float] = 0.0
    supervised: ClassVar[bool] = False
    guard = staticmethod(unguarded)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        kept = _loads(await host.files.read(RECORD))
        if not desired.wanted.dscp and kept is None:
            return Observed()
        port, why = await _port(host, desired, kept)
        tos = await host.rdma_cm.tos(port.device, port.number) if port else None
        return Observed(port, why, tos, kept)

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        dscp, kept = desired.wanted.dscp, observed.kept
        if not dscp and kept is None:
            return Plan(self.name, facts=("none is asked for: [fabric] dscp = 0",))
        if observed.port is None or observed.tos is None:
            return Plan(self.name, facts=(f"not set now: {observed.why}",))
        facts = (f"rdma_cm connects over {observed.port} with {_words(observed.tos)}",)
        if not dscp:
            return Plan(self.name, _back(kept, observed.tos), facts=facts)
        return Plan(self.name, _marked(observed.port, observed.tos, dscp << 2, kept), facts=facts)


async def _port(host: Host, desired: Desired, kept: Kept | None) -> tuple[RdmaPort | None, str]:
    """The port, or why there is none."""
    found = pick(desired.fabric, await host.links.read(), management=desired.management)
    hardware = await card(host, found)
    if hardware is None:
        return None, found.why or "the link has just gone"
    if not desired.wanted.dscp:
        mine = [each for each in hardware.ports if kept and (each.device, each.number) == (kept.device, kept.number)]
        return next(iter(mine), None), "the port that had one is not there"
    rung = judge(desired.wanted, hardware, host.now()).rdma
    if rung.port and rung.port.transport != "RoCE":
        return None, f"{rung.port} is {rung.port.transport}, where a DSCP has no meaning"
    return rung.port, rung.why


def _marked(port: RdmaPort, tos: int, wanted: int, former: Kept | None) -> tuple[Step, ...]:
    """What is remembered is what was there before strixd's first value, not what it gave itself."""
    if tos == wanted:
        return ()
    same = former is not None and (former.device, former.number) == (port.device, port.number)
    before = former.before if former and same and former.ours(tos) else tos
    kept = Kept(port.device, port.number, wanted, tos, before)
    keep = (Keep(kept, former),) if kept != former else ()
    return (*keep, Mark(port.device, port.number, wanted, tos))


def _back(kept: Kept | None, tos: int) -> tuple[Step, ...]:
    """What somebody else has given meanwhile stays."""
    if kept is None:
        return ()
    given = kept.ours(tos) and tos != kept.before
    mark = (Mark(kept.device, kept.number, kept.before, tos),) if given else ()
    return (*mark, Keep(None, kept))


def _words(tos: int) -> str:
    """The DSCP is the upper six bits of a type of service."""
    return f"DSCP {tos >> 2} (TOS {tos})"


def _loads(text: str | None) -> Kept | None:
    """A record that is not ours to read is none: then what is there now counts as what was before."""
    try:
        return decode(Kept, json.loads(text or "null"), key=str).value
    except ValueError:
        return None
