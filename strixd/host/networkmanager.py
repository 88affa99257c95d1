"""NetworkManager over D-Bus: one profile of ours, and what the devices do. Foreign profiles are read, never edited.

Reading asks and writes nothing. An activation is followed by its signals, and its end is read from the objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import TypeVar

from strixd.errors import Rejected
from strixd.host import nm_words as words
from strixd.host.dbus import Remote, RemoteError, Variant
from strixd.host.nm_checkpoints import Checkpoints
from strixd.host.nm_objects import ACTIVE, DEVICE, MANAGER, NONE, PATIENCE, PROFILE, SERVICE, SETTINGS, Attempt, gone
from strixd.host.nm_settings import to_profile, to_settings
from strixd.ports import Profile, Wake

T = TypeVar("T")

TO_DISK, IN_MEMORY, IN_MEMORY_ONLY = 0x1, 0x2, 0x8
"""The flags of AddConnection2 (1 and 2) and Update2. In memory is a file in /run, where it is found again by a
restarted NetworkManager. It hides the file of the same profile on disk: with 2 that stays as it was, until Delete
removes both; with 8 it is removed at once (seen with 1.52)."""
STORED = "/etc/NetworkManager/system-connections/"
"""Where a profile is that survives a reboot; /run and "" do not."""


class NetworkManager(Checkpoints):
    """Implements ports.Network."""

    def watch(self, wake: Wake) -> None:
        """Wakes when NetworkManager comes or goes, a device changes its state, or a profile is changed."""
        on = self._bus.subscribe
        self._bus.on_connected(lambda: wake("the system bus is there"))
        self._bus.on_owner(SERVICE, lambda _: wake("NetworkManager came or went"))
        on(Remote(SERVICE, "", DEVICE), "StateChanged", lambda _: wake("a network device changed its state"))
        on(Remote(SERVICE, "", PROFILE), "Updated", lambda _: wake("a network profile was changed"))
        for member in ("NewConnection", "ConnectionRemoved"):
            on(SETTINGS, member, lambda _: wake("a network profile came or went"))

    async def profile(self, uuid: str) -> Profile | None:
        path = await self._profile_path(uuid)
        if path == NONE:
            return None
        doing, remote = f"read the network profile {uuid}", Remote(SERVICE, path, PROFILE)
        try:
            settings = (await self._bus.call(remote, "GetSettings", doing=doing))[0]
            file = await self._bus.get(remote, "Filename", doing=doing)
        except RemoteError as error:
            gone(error)
            return None
        return to_profile(settings, on_disk=file.startswith(STORED))

    async def stage(self, profile: Profile) -> None:
        settings = to_settings(profile, autoconnect=False)
        await self._write(profile.uuid, settings, IN_MEMORY, doing=f"stage the network profile {profile.name}")

    async def unsave(self, profile: Profile) -> None:
        settings, doing = (
            to_settings(profile, autoconnect=False),
            f"take the network profile {profile.name} from the disk",
        )
        known = await self._profile_path(profile.uuid) != NONE
        await self._write(profile.uuid, settings, IN_MEMORY_ONLY if known else IN_MEMORY, doing=doing)

    async def save(self, profile: Profile) -> None:
        await self._write(profile.uuid, to_settings(profile), TO_DISK, doing=f"save the network profile {profile.name}")

    async def _write(self, uuid: str, settings: dict[str, dict[str, Variant]], flags: int, *, doing: str) -> None:
        path = await self._profile_path(uuid)
        remote, method = Remote(SERVICE, path, PROFILE), "Update2"
        if path == NONE:
            remote, method = SETTINGS, "AddConnection2"
        await self._bus.call(remote, method, "a{sa{sv}}ua{sv}", settings, flags, {}, doing=doing)

    async def delete(self, uuid: str) -> None:
        path = await self._profile_path(uuid)
        if path == NONE:
            return
        try:
            await self._bus.call(Remote(SERVICE, path, PROFILE), "Delete", doing=f"delete the network profile {uuid}")
        except RemoteError as error:
            gone(error)

    async def activate(self, uuid: str, interface: str) -> None:
        doing = f"activate the network profile {uuid} on {interface}"
        profile, device = await self._profile_path(uuid), await self._device_path(interface)
        if NONE in (profile, device):
            raise Rejected(f"Cannot {doing}: no such {'profile' if profile == NONE else 'device'}")
        with closing(Attempt(self._bus, device)) as attempt:
            reply = await self._bus.call(MANAGER, "ActivateConnection", "ooo", profile, device, NONE, doing=doing)
            state = await _patiently(
                self._end_state(reply[0], attempt), lambda: f"Cannot {doing}: it is still not active"
            )
        if state != words.ACTIVE:
            raise Rejected(f"Cannot {doing}: {attempt.why()}")

    async def give_back(self, interface: str, *, ours: str, to: str) -> None:
        device = await self.device(interface)
        if device is None or device.state == "unavailable" or device.profile not in (ours, "") or device.profile == to:
            return
        profile, path = await self._profile_path(to), await self._device_path(interface)
        doing = f"give {interface} back to the network profile {to}"
        with closing(Attempt(self._bus, path)) as attempt:
            if profile == NONE:
                await self._deactivate(path)
            else:
                await self._bus.call(MANAGER, "ActivateConnection", "ooo", profile, path, NONE, doing=doing)
            taken = self._taken_up(interface, to if profile != NONE else "", ours, attempt)
            await _patiently(taken, lambda: f"Cannot {doing}: {attempt.why()}")

    async def _taken_up(self, interface: str, profile: str, ours: str, attempt: Attempt) -> None:
        """Returns when the device is being activated by this profile; without one, when ours has let it go."""
        while True:
            attempt.changed.clear()
            device = await self.device(interface)
            if device is None or device.profile == profile or (not profile and device.profile != ours):
                return
            await attempt.changed.wait()

    async def _deactivate(self, device: str) -> None:
        """Unlike Disconnect this lets NetworkManager choose another profile for the device."""
        active = await self._bus.get(Remote(SERVICE, device, DEVICE), "ActiveConnection")
        if active == NONE:
            return
        try:
            await self._bus.call(MANAGER, "DeactivateConnection", "o", active, doing="deactivate a network profile")
        except RemoteError as error:
            if not error.name.endswith(".ConnectionNotActive"):
                raise

    async def disconnect(self, interface: str) -> None:
        path = await self._device_path(interface)
        if path == NONE:
            return
        try:
            await self._bus.call(Remote(SERVICE, path, DEVICE), "Disconnect", doing=f"disconnect {interface}")
        except RemoteError as error:
            if not error.name.endswith(".NotActive"):  # it is so already
                raise

    async def _end_state(self, active: str, attempt: Attempt) -> int:
        """Of an active connection: activated, or deactivated; an object that is gone was deactivated."""
        while True:
            attempt.changed.clear()
            try:
                state: int = await self._bus.get(Remote(SERVICE, active, ACTIVE), "State")
            except RemoteError as error:
                gone(error)
                return words.DEACTIVATED
            if state in (words.ACTIVE, words.DEACTIVATED):
                return state
            await attempt.changed.wait()


async def _patiently(end: Awaitable[T], failure: Callable[[], str]) -> T:
    """Rejected when it does not come in time."""
    try:
        return await asyncio.wait_for(end, PATIENCE)
    except TimeoutError:
        raise Rejected(f"{failure()} after {PATIENCE:g} s") from None
