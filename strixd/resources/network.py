"""The fabric link: a NetworkManager profile of strixd's own with address, MTU and zone, and active.

No default route, no DNS, and no other profile is edited: an automatic one that occupies the link loses it by
the activation of ours, and for good by priority.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strixd.fabric import Fabric, Pick, pick
from strixd.plan import Effect, Plan, Step, unguarded
from strixd.ports import Device, Host, Link, Profile

PRIORITY = 100  # above every automatic profile (-999..0)


@dataclass(frozen=True, slots=True)
class SaveProfile:
    """Make the stored profile be `profile`. `active_on`: the link on which the earlier one is in force."""

    effect: ClassVar[Effect] = Effect.NOW
    profile: Profile
    before: Profile | None
    active_on: str = ""

    def __str__(self) -> str:
        p = self.profile
        word = "change" if self.before else "add"
        return (
            f'{word} profile "{p.name}" on {p.interface or p.mac}: {p.address}, MTU {p.mtu}, zone {p.zone or "default"}'
        )

    def undo(self) -> Step:
        if self.before and self.active_on:
            return Restore(self.before, self.active_on)
        return SaveProfile(self.before, self.profile) if self.before else DeleteProfile(self.profile)

    async def apply(self, host: Host) -> None:
        await host.network.save(self.profile)


@dataclass(frozen=True, slots=True)
class Restore:
    """Store an earlier profile of ours again and put it in force: what is stored alone changes no link."""

    effect: ClassVar[Effect] = Effect.NOW
    profile: Profile
    interface: str

    def __str__(self) -> str:
        return f'put profile "{self.profile.name}" back in force on {self.interface}'

    def undo(self) -> Step | None:
        return None

    async def apply(self, host: Host) -> None:
        await host.network.save(self.profile)
        await host.network.activate(self.profile.uuid, self.interface)


@dataclass(frozen=True, slots=True)
class DeleteProfile:
    """Forget a profile of ours."""

    effect: ClassVar[Effect] = Effect.NOW
    profile: Profile

    def __str__(self) -> str:
        return f'delete profile "{self.profile.name}"'

    def undo(self) -> Step:
        return SaveProfile(self.profile, None)

    async def apply(self, host: Host) -> None:
        await host.network.delete(self.profile.uuid)


@dataclass(frozen=True, slots=True)
class Activate:
    """Let a profile have the device; `before` had it ("" for none). Taking back what the same profile was before is
    the work of SaveProfile."""

    effect: ClassVar[Effect] = Effect.NOW
    interface: str
    uuid: str
    name: str
    before: str
    before_name: str

    def __str__(self) -> str:
        instead = f' instead of "{self.before_name}"' if self.before_name and self.before != self.uuid else ""
        return f'activate profile "{self.name}" on {self.interface}{instead}'

    def undo(self) -> Step | None:
        if self.before == self.uuid:
            return None
        if not self.before:
            return Disconnect(self.interface, self.uuid, self.name)
        return Activate(self.interface, self.before, self.before_name, self.uuid, self.name)

    async def apply(self, host: Host) -> None:
        await host.network.activate(self.uuid, self.interface)


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Leave the device without a profile."""

    effect: ClassVar[Effect] = Effect.NOW
    interface: str
    uuid: str
    name: str

    def __str__(self) -> str:
        return f"disconnect {self.interface}"

    def undo(self) -> Step:
        return Activate(self.interface, self.uuid, self.name, "", "")

    async def apply(self, host: Host) -> None:
        await host.network.disconnect(self.interface)


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
    guard = staticmethod(unguarded)

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
        wanted = _wanted(desired, link)
        steps: tuple[Step, ...] = ()
        if observed.profile != wanted:
            active_on = link.name if device.profile == wanted.uuid else ""
            steps = (SaveProfile(wanted, observed.profile, active_on),)
        if not link.carrier:
            why, hint = f"no carrier on {link.name}", f"check the cable and the other end; ethtool {link.name}"
            return Plan(self.name, steps, "blocked", why, hint, facts, link.name)
        return _activation(self.name, steps, wanted=wanted, link=link, device=device)


def _activation(name: str, steps: tuple[Step, ...], *, wanted: Profile, link: Link, device: Device) -> Plan:
    ours = device.profile == wanted.uuid
    if not steps and ours and device.state == "activating":
        return Plan(name, condition="waiting", why=f"{link.name} is being activated", facts=_facts(link, device))
    holds = ours and device.state == "activated" and wanted.address in link.addresses and link.mtu == wanted.mtu
    if steps or not holds:
        steps += (Activate(link.name, wanted.uuid, wanted.name, device.profile, device.profile_name),)
    return Plan(name, steps, facts=_facts(link, device), interface=link.name)


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
