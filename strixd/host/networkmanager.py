"""NetworkManager over D-Bus: one profile of ours, and what the devices do. Foreign profiles are read, never edited.

Reading asks and writes nothing. An activation is followed by its signals, and its end is read from the objects.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strixd.errors import Rejected
from strixd.host import nm_words as words
from strixd.host.dbus import Remote, RemoteError, Signal
from strixd.host.nm_settings import to_profile, to_settings
from strixd.ports import Device, Profile, Wake

if TYPE_CHECKING:
    from strixd.host.bus import Bus

SERVICE = "org.freedesktop.NetworkManager"
ROOT = "/org/freedesktop/NetworkManager"
MANAGER = Remote(SERVICE, ROOT, SERVICE)
SETTINGS = Remote(SERVICE, f"{ROOT}/Settings", f"{SERVICE}.Settings")
PROFILE, DEVICE, ACTIVE = f"{SERVICE}.Settings.Connection", f"{SERVICE}.Device", f"{SERVICE}.Connection.Active"

TO_DISK = 0x1
"""NM_SETTINGS_ADD_CONNECTION2_FLAG_TO_DISK and NM_SETTINGS_UPDATE2_FLAG_TO_DISK."""
STORED = "/etc/NetworkManager/system-connections/"
"""Where a profile is that survives a reboot; /run and "" do not."""
ACTIVATION = 10.0
"""Seconds for an activation; it takes 0.2 s. NetworkManager itself would go on for 32 s over a duplicate address."""
NONE = "/"
GONE = frozenset(
    f"org.freedesktop.DBus.Error.{name}" for name in ("UnknownObject", "UnknownMethod", "UnknownInterface")
)


class NetworkManager:
    """Implements ports.Network."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

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
            _gone(error)
            return None
        return to_profile(settings, on_disk=file.startswith(STORED))

    async def device(self, interface: str) -> Device | None:
        path = await self._device_path(interface)
        if path == NONE:
            return None
        doing = f"read the network device {interface}"
        try:
            device = await self._bus.get_all(Remote(SERVICE, path, DEVICE), doing=doing)
        except RemoteError as error:
            _gone(error)
            return None
        uuid, name = await self._active_profile(device["ActiveConnection"])
        return Device(interface, bool(device["Managed"]), words.state(device["State"]), uuid, name)

    async def save(self, profile: Profile) -> None:
        doing = f"save the network profile {profile.name}"
        settings = to_settings(profile)
        path = await self._profile_path(profile.uuid)
        if path == NONE:
            await self._bus.call(SETTINGS, "AddConnection2", "a{sa{sv}}ua{sv}", settings, TO_DISK, {}, doing=doing)
        else:
            remote = Remote(SERVICE, path, PROFILE)
            await self._bus.call(remote, "Update2", "a{sa{sv}}ua{sv}", settings, TO_DISK, {}, doing=doing)

    async def delete(self, uuid: str) -> None:
        path = await self._profile_path(uuid)
        if path == NONE:
            return
        try:
            await self._bus.call(Remote(SERVICE, path, PROFILE), "Delete", doing=f"delete the network profile {uuid}")
        except RemoteError as error:
            _gone(error)

    async def activate(self, uuid: str, interface: str) -> None:
        doing = f"activate the network profile {uuid} on {interface}"
        profile, device = await self._profile_path(uuid), await self._device_path(interface)
        if NONE in (profile, device):
            raise Rejected(f"Cannot {doing}: no such {'profile' if profile == NONE else 'device'}")
        attempt = _Attempt(self._bus, device)
        try:
            reply = await self._bus.call(MANAGER, "ActivateConnection", "ooo", profile, device, NONE, doing=doing)
            state = await asyncio.wait_for(self._end_state(reply[0], attempt), ACTIVATION)
        except TimeoutError:
            raise Rejected(f"Cannot {doing}: it is still not active after {ACTIVATION:g} s") from None
        finally:
            attempt.close()
        if state != words.ACTIVE:
            raise Rejected(f"Cannot {doing}: {attempt.why()}")

    async def disconnect(self, interface: str) -> None:
        path = await self._device_path(interface)
        if path == NONE:
            return
        try:
            await self._bus.call(Remote(SERVICE, path, DEVICE), "Disconnect", doing=f"disconnect {interface}")
        except RemoteError as error:
            if not error.name.endswith(".NotActive"):  # it is so already
                raise

    async def _end_state(self, active: str, attempt: _Attempt) -> int:
        """Of an active connection: activated, or deactivated; an object that is gone was deactivated."""
        while True:
            attempt.changed.clear()
            try:
                state: int = await self._bus.get(Remote(SERVICE, active, ACTIVE), "State")
            except RemoteError as error:
                _gone(error)
                return words.DEACTIVATED
            if state in (words.ACTIVE, words.DEACTIVATED):
                return state
            await attempt.changed.wait()

    async def _active_profile(self, active: str) -> tuple[str, str]:
        """(uuid, name), both "" when nothing is active any more."""
        if active == NONE:
            return "", ""
        try:
            reply = await self._bus.get_all(Remote(SERVICE, active, ACTIVE))
        except RemoteError as error:
            _gone(error)
            return "", ""
        return reply["Uuid"], reply["Id"]

    async def _profile_path(self, uuid: str) -> str:
        return await self._path(SETTINGS, "GetConnectionByUuid", uuid, unknown=".InvalidConnection")

    async def _device_path(self, interface: str) -> str:
        return await self._path(MANAGER, "GetDeviceByIpIface", interface, unknown=".UnknownDevice")

    async def _path(self, remote: Remote, method: str, key: str, *, unknown: str) -> str:
        """The object path, "/" when there is none."""
        try:
            path: str = (await self._bus.call(remote, method, "s", key, doing=f"look for {key} in NetworkManager"))[0]
        except RemoteError as error:
            if not error.name.endswith(unknown):
                raise
            return NONE
        return path


class _Attempt:
    """An activation under way: what the device and the active connections say of themselves meanwhile."""

    def __init__(self, bus: Bus, device: str) -> None:
        self.changed = asyncio.Event()
        self._reasons: list[str] = []
        self._signals = (
            bus.subscribe(Remote(SERVICE, device, DEVICE), "StateChanged", self._device_changed),
            bus.subscribe(Remote(SERVICE, "", ACTIVE), "StateChanged", lambda _: self.changed.set()),
        )

    def _device_changed(self, signal: Signal) -> None:
        new, _, reason = signal.args
        if new == words.FAILED and words.reason(reason):
            self._reasons.append(words.reason(reason))
        self.changed.set()

    def why(self) -> str:
        return ", ".join(self._reasons) or "NetworkManager gave it up without a reason"

    def close(self) -> None:
        for signal in self._signals:
            signal.cancel()


def _gone(error: RemoteError) -> None:
    """An object may go between two calls; every other refusal is one."""
    if error.name not in GONE:
        raise error
