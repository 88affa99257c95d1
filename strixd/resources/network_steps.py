"""The steps of the fabric link, each with its inverse, and NetworkManager's checkpoint around them.

A profile of ours is staged (in memory, never activated by itself), activated, and kept on disk only when all else is
verified: whoever is killed or loses power in between finds at the next boot what was there before. Taking a step back
does nothing where there is nothing left to take back, and never forces a profile of others upon a link.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from strixd.errors import StrixdError
from strixd.plan import Effect, Plan, Step
from strixd.ports import STAGED, Host, Profile


@dataclass(frozen=True, slots=True)
class StageProfile:
    """Let there be this profile, in memory. `before`: as ours was; `in_force`: it has the link."""

    effect: ClassVar[Effect] = Effect.NOW
    interface: str
    profile: Profile
    before: Profile | None = None
    in_force: bool = False

    def __str__(self) -> str:
        p = self.profile
        settings = f"{p.address}, MTU {p.mtu}, zone {p.zone or 'default'}"
        return f'{"change" if self.before else "add"} profile "{p.name}" on {p.interface or p.mac}: {settings}'

    def undo(self) -> Step:
        if self.before is None:
            return DeleteProfile(self.interface, self.profile)
        was_for_the_spare = staged(self.before) and self.before.mac != self.profile.mac
        beneath = self.profile if was_for_the_spare else None
        instead = replace(self.profile, others=STAGED)
        return Restore(self.interface, self.before, instead, in_force=self.in_force, beneath=beneath)

    async def apply(self, host: Host) -> None:
        await host.network.stage(self.profile)


@dataclass(frozen=True, slots=True)
class Restore:
    """Let ours be an earlier one again, in memory or on disk as it was, and in force if it was: what is stored alone
    changes no link. `beneath`: what is on disk while that one is in memory for the spare link."""

    effect: ClassVar[Effect] = Effect.NOW
    interface: str
    profile: Profile
    instead: Profile
    in_force: bool = False
    beneath: Profile | None = None

    def __str__(self) -> str:
        again = f" in force on {self.interface}" if self.in_force else ""
        return f'put profile "{self.profile.name}" back{again}: {self.profile.address}, MTU {self.profile.mtu}'

    def undo(self) -> Step:
        return Restore(self.interface, self.instead, self.profile, in_force=self.in_force)

    async def apply(self, host: Host) -> None:
        if self.beneath:
            await host.network.save(self.beneath)
        if staged(self.profile):
            await host.network.stage(self.profile)
        else:
            await host.network.save(self.profile)
        device = await host.network.device(self.interface)
        if self.in_force and device and device.state != "unavailable":
            await host.network.activate(self.profile.uuid, self.interface)


@dataclass(frozen=True, slots=True)
class DeleteProfile:
    """Forget a profile of ours."""

    effect: ClassVar[Effect] = Effect.NOW
    interface: str
    profile: Profile

    def __str__(self) -> str:
        return f'delete profile "{self.profile.name}"'

    def undo(self) -> Step:
        return StageProfile(self.interface, self.profile)

    async def apply(self, host: Host) -> None:
        await host.network.delete(self.profile.uuid)


@dataclass(frozen=True, slots=True)
class Activate:
    """Let a profile of ours have the link; `before` had it ("" for none). What ours itself was before is StageProfile's
    to take back."""

    effect: ClassVar[Effect] = Effect.NOW
    interface: str
    uuid: str
    name: str
    before: str = ""
    before_name: str = ""

    def __str__(self) -> str:
        instead = f' instead of "{self.before_name}"' if self.before_name and self.before != self.uuid else ""
        return f'activate profile "{self.name}" on {self.interface}{instead}'

    def undo(self) -> Step | None:
        if self.before == self.uuid:
            return None
        return GiveBack(self.interface, self.uuid, self.name, self.before, self.before_name)

    async def apply(self, host: Host) -> None:
        await host.network.activate(self.uuid, self.interface)


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Let the profile `to` have the link again instead of ours, or none ("")."""

    effect: ClassVar[Effect] = Effect.NOW
    interface: str
    uuid: str
    name: str
    to: str = ""
    to_name: str = ""

    def __str__(self) -> str:
        return f'give {self.interface} back to "{self.to_name}"' if self.to else f"disconnect {self.interface}"

    def undo(self) -> Step:
        return Activate(self.interface, self.uuid, self.name, self.to, self.to_name)

    async def apply(self, host: Host) -> None:
        """Nobody waits here for an address that another's profile gets, or does not get, by DHCP."""
        if self.to:
            await host.network.give_back(self.interface, ours=self.uuid, to=self.to)
            return
        device = await host.network.device(self.interface)
        if device and device.profile == self.uuid:
            await host.network.disconnect(self.interface)


@dataclass(frozen=True, slots=True)
class KeepProfile:
    """Let a profile of ours that is in force as it shall be outlast a reboot."""

    effect: ClassVar[Effect] = Effect.LASTING
    interface: str
    profile: Profile

    def __str__(self) -> str:
        return f'keep profile "{self.profile.name}" on disk'

    def undo(self) -> Step:
        return Unkeep(self.interface, self.profile)

    async def apply(self, host: Host) -> None:
        await host.network.save(self.profile)


@dataclass(frozen=True, slots=True)
class Unkeep:
    """Let a profile of ours be in memory only again, so that it is not activated by itself while the link is taken from
    it. What it was on disk before is StageProfile's to bring back."""

    effect: ClassVar[Effect] = Effect.NOW
    interface: str
    profile: Profile

    def __str__(self) -> str:
        return f'keep profile "{self.profile.name}" in memory only'

    def undo(self) -> Step:
        return KeepProfile(self.interface, self.profile)

    async def apply(self, host: Host) -> None:
        if await host.network.profile(self.profile.uuid):
            await host.network.unsave(self.profile)


def staged(profile: Profile) -> bool:
    return "not on disk" in profile.others


@asynccontextmanager
async def guard(host: Host, plan: Plan, *, resumed: bool) -> AsyncIterator[None]:
    """A checkpoint of the link. It is confirmed at the end, rolled back after a StrixdError (also after one from the
    confirmation), and left to run out when strixd itself is ended."""
    checkpoint = await _begin(host, plan, resumed=resumed)
    try:
        yield
        if checkpoint:
            await host.network.confirm(checkpoint)
    except StrixdError:
        if checkpoint:
            with suppress(StrixdError):  # the failure counts; NetworkManager rolls back by itself when time is up
                await host.network.roll_back(checkpoint)
        raise


async def _begin(host: Host, plan: Plan, *, resumed: bool) -> str:
    """ "" where there is nothing to guard. One that a killed strixd left open is taken over even when there is nothing
    left to do: unconfirmed it would take everything back."""
    link = plan.interface
    if not link or await host.network.device(link) is None:
        return ""
    for checkpoint in await host.network.checkpoints(link) if resumed else ():
        await host.network.extend(checkpoint)
        return checkpoint
    return await host.network.checkpoint(link) if plan.steps else ""
