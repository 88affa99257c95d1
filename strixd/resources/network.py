"""The fabric link: a NetworkManager profile of strixd's own with address, MTU and zone, and active.

No default route, no DNS, and no other profile is edited: an automatic one that occupies the link loses it by
the activation of ours, and for good by priority.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from strixd.fabric import OWN_NETWORK, Fabric, Pick, overlap, pick
from strixd.plan import Plan, Step
from strixd.ports import STAGED, Device, Host, Link, Profile
from strixd.resources import mtu
from strixd.resources.network_steps import Activate, KeepProfile, StageProfile, guard

PRIORITY = 100  # above every automatic profile (-999..0)


@dataclass(frozen=True, slots=True)
class Desired:
    """`profile` lacks the MAC of the card, and its MTU is the wanted one, which must be proven to cross to the
    `peers`. `retry_after`: when the last apply came; what failed before is tried again."""

    fabric: Fabric
    management: tuple[str, ...]
    profile: Profile
    peers: tuple[mtu.Peer, ...] = ()
    retry_after: float = 0.0

    @property
    def asked(self) -> mtu.Asked:
        return mtu.Asked(self.profile.mtu, self.peers, self.retry_after)


@dataclass(frozen=True, slots=True)
class Observed:
    pick: Pick
    profile: Profile | None
    device: Device | None
    mtu: mtu.Seen = field(default_factory=mtu.Seen)
    overlap: str = ""


def card(seen: object) -> str:
    """The MAC that our stored profile is bound to, from the last observation of this resource, if there was one."""
    return seen.profile.mac if isinstance(seen, Observed) and seen.profile else ""


class Network:
    name: ClassVar[str] = "network"
    settle: ClassVar[float] = 5.0
    supervised: ClassVar[bool] = False
    guard = staticmethod(guard)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        profile = await host.network.profile(desired.profile.uuid)
        fabric = replace(desired.fabric, card=profile.mac if profile else "")
        links = await host.links.read()
        found = pick(fabric, links, management=desired.management)
        device = await host.network.device(found.link.name) if found.link else None
        way = mtu.way(desired.asked, found.link, desired.profile.address) if found.link else None
        record = mtu.loads(await host.files.read(mtu.RECORD))
        seen = mtu.Seen(record, host.identity.boot, await host.crossings.look(way))
        return Observed(found, profile, device, seen, overlap(desired.profile.address, found.link, links))

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        link, device = observed.pick.link, observed.device
        if link is None:
            return Plan(self.name, condition="blocked", why=observed.pick.why, hint="ip -br link")
        facts = _facts(link, device, observed.pick.note)
        if device is None or not device.managed:
            why, hint = f"NetworkManager does not manage {link.name}", f"nmcli device set {link.name} managed yes"
            return Plan(self.name, condition="blocked", why=why, hint=hint, facts=facts)
        if observed.overlap:
            return Plan(self.name, condition="blocked", why=observed.overlap, hint=OWN_NETWORK, facts=facts)
        if not link.carrier:
            why, hint = f"no carrier on {link.name}", f"check the cable and the other end; ethtool {link.name}"
            return Plan(self.name, (), "blocked", why, hint, facts, link.name)
        verdict = mtu.judge(desired.asked, link, observed.mtu)
        wanted = replace(desired.profile, interface="", mac=link.mac, mtu=verdict.size)
        plan = _plan(self.name, wanted, observed.profile, link, device)
        told = tuple(filter(None, (*facts, verdict.fact, _stored(observed.profile, wanted))))
        steps = (*verdict.steps, *plan.steps)
        return replace(plan, steps=steps, hint=plan.hint or verdict.hint, facts=told, cause=verdict.why)


def _plan(name: str, wanted: Profile, profile: Profile | None, link: Link, device: Device) -> Plan:
    """Stage, activate, keep, as far as each is still to do. Without carrier nothing can be verified and so nothing is
    written: all of it is done when the carrier comes. Only bound otherwise, a profile stays in force as it is."""
    ours, kept = device.profile == wanted.uuid, profile == wanted
    if kept and ours and device.state == "activating":
        why = f"{link.name} is being activated"
        return Plan(name, condition="waiting", why=why, interface=link.name)
    steps: tuple[Step, ...] = ()
    if not _is_written(profile, wanted):
        steps = (StageProfile(link.name, wanted, profile, in_force=ours),)
    holds = ours and device.state == "activated" and wanted.address in link.addresses and link.mtu == wanted.mtu
    if (steps and not _rebound(profile, wanted)) or not holds:
        steps += (Activate(link.name, wanted.uuid, wanted.name, device.profile, device.profile_name),)
    if not kept:
        steps += (KeepProfile(link.name, wanted),)
    return Plan(name, steps, interface=link.name)


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


def _facts(link: Link, device: Device | None, note: str) -> tuple[str, ...]:
    carrier = "carrier" if link.carrier else "no carrier"
    addresses = ", ".join(link.addresses) or "no address"
    by = f'profile "{device.profile_name}" {device.state}' if device and device.profile else "no profile active"
    return (f"{link.name}: {carrier}, {addresses}, MTU {link.mtu}, {by}", *filter(None, (note,)))
