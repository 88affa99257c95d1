"""NetworkManager's objects over D-Bus: their names, where they are, what a device does. Reading only."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strixd.host import nm_words as words
from strixd.host.dbus import Remote, RemoteError, Signal
from strixd.ports import Device

if TYPE_CHECKING:
    from strixd.host.bus import Bus

SERVICE = "org.freedesktop.NetworkManager"
ROOT = "/org/freedesktop/NetworkManager"
MANAGER = Remote(SERVICE, ROOT, SERVICE)
SETTINGS = Remote(SERVICE, f"{ROOT}/Settings", f"{SERVICE}.Settings")
PROFILE, DEVICE, ACTIVE = f"{SERVICE}.Settings.Connection", f"{SERVICE}.Device", f"{SERVICE}.Connection.Active"
CHECKPOINT = f"{SERVICE}.Checkpoint"
NONE = "/"
PATIENCE = 10.0
"""Seconds for an activation; it takes 0.2 s. NetworkManager itself would go on for 32 s over a duplicate address."""
_GONE = frozenset(
    f"org.freedesktop.DBus.Error.{name}" for name in ("UnknownObject", "UnknownMethod", "UnknownInterface")
)


class Objects:
    """Where things are, and what is there now."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def device(self, interface: str) -> Device | None:
        path = await self._device_path(interface)
        if path == NONE:
            return None
        doing = f"read the network device {interface}"
        try:
            where = Remote(SERVICE, path, DEVICE)
            device = await self._bus.properties(where, "ActiveConnection", "Managed", "State", doing=doing)
        except RemoteError as error:
            gone(error)
            return None
        uuid, name = await self._active_profile(device["ActiveConnection"])
        return Device(interface, bool(device["Managed"]), words.state(device["State"]), uuid, name)

    async def _active_profile(self, active: str) -> tuple[str, str]:
        """(uuid, name), both "" when nothing is active any more."""
        if active == NONE:
            return "", ""
        try:
            reply = await self._bus.properties(Remote(SERVICE, active, ACTIVE), "Uuid", "Id")
        except RemoteError as error:
            gone(error)
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


class Attempt:
    """Something under way on a device: what it and the active connections say of themselves meanwhile."""

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


def gone(error: RemoteError) -> None:
    """An object may go between two calls; every other refusal is one."""
    if error.name not in _GONE:
        raise error
