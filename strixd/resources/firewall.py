"""The zone of the fabric link in firewalld, as in force now.

What lasts is the zone in the NetworkManager profile (resources/network.py): a zone that is set only here is lost
at the next activation. Here its effect is watched, drift is mended, and a zone of our own is defined where asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strixd.fabric import Fabric, Pick, pick
from strixd.plan import Effect, Plan, Step, unguarded
from strixd.ports import Host, Zone


@dataclass(frozen=True, slots=True)
class DefineZone:
    """Make the permanent definition of a zone of ours be `zone`."""

    effect: ClassVar[Effect] = Effect.NOW
    zone: Zone
    before: Zone | None

    def __str__(self) -> str:
        word = "change" if self.before else "add"
        return f"{word} firewall zone {self.zone.name} ({len(self.zone.rules)} rules)"

    def undo(self) -> Step:
        return DefineZone(self.before, self.zone) if self.before else RemoveZone(self.zone)

    async def apply(self, host: Host) -> None:
        await host.firewall.define_zone(self.zone)


@dataclass(frozen=True, slots=True)
class RemoveZone:
    """Take a zone of ours away."""

    effect: ClassVar[Effect] = Effect.NOW
    zone: Zone

    def __str__(self) -> str:
        return f"remove firewall zone {self.zone.name}"

    def undo(self) -> Step:
        return DefineZone(self.zone, None)

    async def apply(self, host: Host) -> None:
        await host.firewall.remove_zone(self.zone.name)


@dataclass(frozen=True, slots=True)
class Move:
    """Put the interface into another zone, now. A zone of "" is the default one."""

    effect: ClassVar[Effect] = Effect.NOW
    interface: str
    zone: str
    before: str

    def __str__(self) -> str:
        return f"move {self.interface} from zone {self.before or 'default'} to {self.zone or 'default'}"

    def undo(self) -> Step:
        return Move(self.interface, self.before, self.zone)

    async def apply(self, host: Host) -> None:
        await host.firewall.move(self.interface, self.zone)


@dataclass(frozen=True, slots=True)
class Desired:
    """`zone` "" when the file says `firewall = false`; `own` is its definition when it is a zone of ours."""

    fabric: Fabric
    management: tuple[str, ...]
    zone: str
    own: Zone | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    pick: Pick
    now: str = ""
    permanent: str = ""
    own: Zone | None = None


class Firewall:
    name: ClassVar[str] = "firewall"
    settle: ClassVar[float] = 3.0
    supervised: ClassVar[bool] = False
    guard = staticmethod(unguarded)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        found = pick(desired.fabric, await host.links.read(), management=desired.management)
        if not found.link or not desired.zone:
            return Observed(found)
        now = await host.firewall.zone_of(found.link.name)
        permanent = await host.firewall.permanent_zone_of(found.link.name)
        own = await host.firewall.zone(desired.own.name) if desired.own else None
        return Observed(found, now, permanent, own)

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        if not desired.zone:
            return Plan(self.name, facts=("not ours: the file says firewall = false",))
        link = observed.pick.link
        if link is None:
            return Plan(self.name, condition="blocked", why=observed.pick.why, hint="ip -br link")
        if not link.carrier:  # NetworkManager takes the zone away with the address, and brings both back
            why = f"no carrier on {link.name}"
            return Plan(self.name, condition="waiting", why=why, facts=_facts(link.name, desired, observed))
        steps: tuple[Step, ...] = ()
        if desired.own and desired.own != observed.own:
            steps += (DefineZone(desired.own, observed.own),)
        if observed.now != desired.zone:
            steps += (Move(link.name, desired.zone, observed.now),)
        return Plan(self.name, steps, facts=_facts(link.name, desired, observed), interface=link.name)


def _facts(interface: str, desired: Desired, observed: Observed) -> tuple[str, ...]:
    facts = (f"{interface} is in zone {observed.now or 'default'}",)
    if observed.permanent in ("", desired.zone):
        return facts
    command = f"firewall-cmd --permanent --zone={observed.permanent} --remove-interface={interface}"
    return (*facts, f"the permanent file of zone {observed.permanent} names {interface} too; to mend: {command}")
