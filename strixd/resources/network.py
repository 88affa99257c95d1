"""The fabric link: a NetworkManager profile of strixd's own with address, MTU and zone, and active.

No default route, no DNS, and no other profile is edited: an automatic one that occupies the link loses it by
the activation of ours, and for good by priority. Where the file names a spare link, spare.py says which one has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from strixd.fabric import LINKS, OWN_NETWORK, Fabric, Pick, both, overlap
from strixd.ladder import CABLE
from strixd.plan import Plan, Step
from strixd.ports import STAGED, Device, Host, Link, Profile
from strixd.resources import mtu, spare
from strixd.resources.network_steps import Activate, KeepProfile, StageProfile, guard, staged
from strixd.resources.spare import Choice, Seen, Side

PRIORITY = 100  # above every automatic profile (-999..0)


@dataclass(frozen=True, slots=True)
class Desired:
    """`profile` lacks the MAC of the card, and its MTU is the wanted one, which must be proven to cross to the
    `peers`. `retry_after`: when the last apply came; what failed before is tried again. `apart`: since when the cluster
    has not been together, 0 while it is; that is observed, no wish."""

    fabric: Fabric
    management: tuple[str, ...]
    profile: Profile
    peers: tuple[mtu.Peer, ...] = ()
    retry_after: float = 0.0
    apart: float = field(default=0.0, compare=False, repr=False)

    @property
    def asked(self) -> mtu.Asked:
        return mtu.Asked(self.profile.mtu, self.peers, self.retry_after)


@dataclass(frozen=True, slots=True)
class Observed:
    """`choice`: the link that shall have the profile; `device`: what NetworkManager does with it; `holder`: of the
    fabric's two links the one that has the profile now, "" for none."""

    choice: Choice
    profile: Profile | None
    device: Device | None
    mtu: mtu.Seen = field(default_factory=mtu.Seen)
    overlap: str = ""
    holder: str = ""

    @property
    def pick(self) -> Pick:
        return self.choice.pick


def card(seen: object) -> str:
    """The MAC that our stored profile is bound to, from the last observation of this resource, if there was one."""
    return _bound(seen.profile) if isinstance(seen, Observed) else ""


def _bound(profile: Profile | None) -> str:
    """One that is not on disk says nothing of which card is the fabric's: it may be for the spare."""
    return profile.mac if profile and not staged(profile) else ""


class Network:
    name: ClassVar[str] = "network"
    settle: ClassVar[float] = 5.0
    supervised: ClassVar[bool] = False
    guard = staticmethod(guard)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        profile = await host.network.profile(desired.profile.uuid)
        links = await host.links.read()
        chosen = await _chosen(host, desired, profile, links)
        found = chosen.pick
        device = await host.network.device(found.link.name) if found.link else None
        way = mtu.way(desired.asked, found.link, desired.profile.address) if found.link else None
        record = mtu.loads(await host.files.read(mtu.RECORD))
        seen = mtu.Seen(record, host.identity.boot, await host.crossings.look(way))
        shared = overlap(desired.profile.address, found, links)
        return Observed(chosen, profile, device, seen, shared, await _holder(host, desired, found, device))

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        link, device = observed.pick.link, observed.device
        if link is None:
            return Plan(self.name, condition="blocked", why=observed.pick.why, hint="ip -br link")
        facts = _facts(link, device, observed.pick)
        if device is None or not device.managed:
            why, hint = f"NetworkManager does not manage {link.name}", f"nmcli device set {link.name} managed yes"
            return Plan(self.name, condition="blocked", why=why, hint=hint, facts=facts)
        if observed.overlap:
            return Plan(self.name, condition="blocked", why=observed.overlap, hint=OWN_NETWORK, facts=facts)
        if not link.carrier:
            return _no_carrier(self.name, link, observed.choice, facts)
        verdict = mtu.judge(desired.asked, link, observed.mtu)
        wanted = replace(desired.profile, interface="", mac=link.mac, mtu=verdict.size)
        plan = _plan(self.name, wanted, observed, link, device)
        told = tuple(filter(None, (*facts, verdict.fact, _stored(observed.profile, wanted))))
        steps, hint = (*verdict.steps, *plan.steps), plan.hint or verdict.hint
        plan = replace(plan, steps=steps, hint=hint, facts=told, cause=verdict.why)
        return _moving(plan, observed.choice)


async def _chosen(host: Host, desired: Desired, profile: Profile | None, links: tuple[Link, ...]) -> Choice:
    fabric = replace(desired.fabric, card=_bound(profile))
    first, second = both(fabric, links, management=desired.management)
    if fabric.spare is None:
        return Choice(first)
    moved = spare.moved(profile, second.link)
    one, other = await _side(host, first), await _side(host, second)
    return spare.choose(Seen(one, other, moved, desired.retry_after, desired.apart, host.now()))


async def _side(host: Host, found: Pick) -> Side:
    return Side(found, await host.hardware.card(found.link.name) if found.link else None)


async def _holder(host: Host, desired: Desired, found: Pick, device: Device | None) -> str:
    other = await host.network.device(found.other.name) if found.other else None
    held = [each.interface for each in (device, other) if each and each.profile == desired.profile.uuid]
    return next(iter(held), "")


def _moving(plan: Plan, choice: Choice) -> Plan:
    """To the spare something was lost, and the incident shall say what; back nothing was."""
    if not plan.steps:
        return replace(plan, condition="waiting", why=choice.soon, again=spare.GRACE) if choice.soon else plan
    if not choice.why:
        return plan
    if not choice.pick.spare:
        return replace(plan, condition="ok", cause=choice.why)
    hint = _look_at(choice.pick.other)
    return replace(plan, condition="held", why=choice.why, hint=hint, cause=choice.why)


def _look_at(link: Link | None) -> str:
    return CABLE.format(link.name) if link else LINKS


def _no_carrier(name: str, link: Link, choice: Choice, facts: tuple[str, ...]) -> Plan:
    if choice.soon:
        return Plan(name, (), "waiting", choice.soon, _look_at(link), facts, link.name, again=spare.GRACE)
    return Plan(name, (), "blocked", f"no carrier on {link.name}", _look_at(link), facts, link.name)


def _plan(name: str, wanted: Profile, observed: Observed, link: Link, device: Device) -> Plan:
    """Stage, activate, keep, as far as each is still to do. Without carrier nothing can be verified and so nothing is
    written: all of it is done when the carrier comes. Only bound otherwise, a profile stays in force as it is. For the
    spare it is not kept: after a boot it is the first link's again."""
    profile, ours = observed.profile, device.profile == wanted.uuid
    kept = profile == wanted or (observed.pick.spare and _is_written(profile, wanted))
    if kept and ours and device.state == "activating":
        why = f"{link.name} is being activated"
        return Plan(name, condition="waiting", why=why, interface=link.name)
    steps: tuple[Step, ...] = ()
    if not _is_written(profile, wanted):
        holder = observed.holder or _former(observed)
        steps = (StageProfile(holder or link.name, wanted, profile, in_force=bool(holder)),)
    holds = ours and device.state == "activated" and wanted.address in link.addresses and link.mtu == wanted.mtu
    if (steps and not _rebound(profile, wanted)) or not holds:
        steps += (Activate(link.name, wanted.uuid, wanted.name, device.profile, device.profile_name),)
    if not kept and not observed.pick.spare:
        steps += (KeepProfile(link.name, wanted),)
    return Plan(name, steps, interface=link.name)


def _former(observed: Observed) -> str:
    """Without carrier a link loses our profile; when the move is taken back later it may have its carrier again."""
    other = observed.pick.other
    return other.name if observed.choice.why and observed.profile and other else ""


def _is_written(profile: Profile | None, wanted: Profile) -> bool:
    """It is so, on disk or staged."""
    return profile in (wanted, replace(wanted, others=STAGED))


def _rebound(profile: Profile | None, wanted: Profile) -> bool:
    """It differs in nothing but the card or name that it is bound to."""
    return profile is not None and replace(profile, interface=wanted.interface, mac=wanted.mac) == wanted


def _stored(profile: Profile | None, wanted: Profile) -> str:
    """What the profile says, where that differs from what is wanted; what it is bound to is told elsewhere."""
    if profile is None or _is_written(profile, wanted) or _rebound(profile, wanted):
        return ""
    besides = f", and differs in {', '.join(profile.others)}" if profile.others else ""
    says = f"{profile.address or 'no address'}, MTU {profile.mtu}, zone {profile.zone or 'default'}{besides}"
    return f'profile "{profile.name}" says {says}'


def _facts(link: Link, device: Device | None, found: Pick) -> tuple[str, ...]:
    addresses = ", ".join(link.addresses) or "no address"
    by = f'profile "{device.profile_name}" {device.state}' if device and device.profile else "no profile active"
    other = f"the spare is {found.other.name}: {_carrier(found.other)}" if found.other and not found.spare else ""
    told = f"{link.name}: {_carrier(link)}, {addresses}, MTU {link.mtu}, {by}"
    return tuple(filter(None, (told, found.note, other)))


def _carrier(link: Link) -> str:
    return "carrier" if link.carrier else "no carrier"
