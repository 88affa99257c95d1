"""The fabric link: a NetworkManager profile of strixd's own with address, MTU and zone, and active.

No default route, no DNS, and no other profile is edited: an automatic one that occupies the link loses it by
the activation of ours, and for good by priority.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strixd.fabric import Fabric, Pick, pick
from strixd.plan import Plan, Step
from strixd.ports import STAGED, Device, Host, Link, Profile
from strixd.resources.network_steps import Activate, KeepProfile, StageProfile, guard

PRIORITY = 100  # above every automatic profile (-999..0)


@dataclass(frozen=True, slots=True)
class Desired:
    """`profile` lacks interface and MAC where the file names a driver; its MTU is the wanted one."""

    fabric: Fabric
    management: tuple[str, ...]
    profile: Profile


@dataclass(frozen=True, slots=True)
class Observed:
    pick: Pick
    profile: Profile | None
    device: Device | None


class Network:
    name: ClassVar[str] = "network"
    settle: ClassVar[float] = 5.0
    supervised: ClassVar[bool] = False
    guard = staticmethod(guard)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        found = pick(desired.fabric, await host.links.read(), management=desired.management)
        profile = await host.network.profile(desired.profile.uuid)
        device = await host.network.device(found.link.name) if found.link else None
        return Observed(found, profile, device)

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        link, device = observed.pick.link, observed.device
        if link is None:
            return Plan(self.name, condition="blocked", why=observed.pick.why, hint="ip -br link")
        facts = _facts(link, device)
        if device is None or not device.managed:
            why, hint = f"NetworkManager does not manage {link.name}", f"nmcli device set {link.name} managed yes"
            return Plan(self.name, condition="blocked", why=why, hint=hint, facts=facts)
        if not link.carrier:
            why, hint = f"no carrier on {link.name}", f"check the cable and the other end; ethtool {link.name}"
            return Plan(self.name, (), "blocked", why, hint, facts, link.name)
        return _plan(self.name, _wanted(desired, link), observed.profile, link, device)


def _plan(name: str, wanted: Profile, profile: Profile | None, link: Link, device: Device) -> Plan:
    """Stage, activate, keep, as far as each is still to do. Without carrier nothing can be verified and so nothing is
    written: all of it is done when the carrier comes."""
    facts, ours, kept = _facts(link, device), device.profile == wanted.uuid, profile == wanted
    if kept and ours and device.state == "activating":
        why = f"{link.name} is being activated"
        return Plan(name, condition="waiting", why=why, facts=facts, interface=link.name)
    steps: tuple[Step, ...] = ()
    if not _is_written(profile, wanted):
        steps = (StageProfile(link.name, wanted, profile, in_force=ours),)
    holds = ours and device.state == "activated" and wanted.address in link.addresses and link.mtu == wanted.mtu
    if steps or not holds:
        steps += (Activate(link.name, wanted.uuid, wanted.name, device.profile, device.profile_name),)
    if not kept:
        steps += (KeepProfile(link.name, wanted),)
    return Plan(name, steps, facts=facts, interface=link.name)


def _is_written(profile: Profile | None, wanted: Profile) -> bool:
    """It is so, on disk or staged."""
    return profile in (wanted, replace(wanted, others=STAGED))


def _wanted(desired: Desired, link: Link) -> Profile:
    """Bound to the MAC unless the file names the interface; no larger MTU than the device takes."""
    profile = desired.profile
    if not profile.interface:
        profile = replace(profile, mac=link.mac)
    return replace(profile, mtu=min(profile.mtu, link.max_mtu)) if link.max_mtu else profile


def _facts(link: Link, device: Device | None) -> tuple[str, ...]:
    carrier = "carrier" if link.carrier else "no carrier"
    addresses = ", ".join(link.addresses) or "no address"
    by = f'profile "{device.profile_name}" {device.state}' if device and device.profile else "no profile active"
    return (f"{link.name}: {carrier}, {addresses}, MTU {link.mtu} (not proven to cross), {by}",)
