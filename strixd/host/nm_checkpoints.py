"""NetworkManager's checkpoints over D-Bus: transactions that outlive the one who began them.

A checkpoint is named here by the service's unique bus name and its object path, ":1.7/org/…/Checkpoint/1": a restarted
NetworkManager has forgotten it, counts from 1 again, and must not be asked about another one of the same number.
"""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from strixd.errors import Rejected
from strixd.host import nm_words as words
from strixd.host.dbus import Remote, RemoteError
from strixd.host.nm_objects import CHECKPOINT, DEVICE, MANAGER, NONE, PATIENCE, ROOT, SERVICE, Attempt, Objects, gone

if TYPE_CHECKING:
    from strixd.host.bus import Bus

TIME = 60.0
"""Seconds until NetworkManager takes back what was not confirmed."""
FLAGS = 0
"""No flag: 2 deletes every profile that is new, also one that somebody else made meanwhile."""
QUIET = 0.3
"""Seconds without a change of state, after which a device that rests has arrived: it starts to move a little after the
call for a rollback has returned."""
MOVING = ("activating", "deactivating")
RESULTS = {1: "the device is gone", 2: "the device is not managed any more", 3: "it could not be restored"}
DBUS = Remote("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
LIST = f"busctl get-property {SERVICE} {ROOT} {SERVICE} Checkpoints"


class Checkpoints(Objects):
    """Implements ports.Checkpoints. `time`: seconds, whole ones."""

    def __init__(self, bus: Bus, *, time: float = TIME) -> None:
        super().__init__(bus)
        self._time = int(time)

    async def checkpoint(self, interface: str) -> str:
        doing = f"begin a checkpoint of {interface}"
        owner, device = await self._owner(), await self._device_path(interface)
        if device == NONE:
            raise Rejected(f"Cannot {doing}: no such device")
        manager = Remote(owner, ROOT, SERVICE)
        try:
            made = await self._bus.call(manager, "CheckpointCreate", "aouu", [device], self._time, FLAGS, doing=doing)
        except RemoteError as error:
            raise Rejected(str(error), hint=f"wait until it has run out; to see what is open: {LIST}") from None
        return owner + str(made[0])

    async def checkpoints(self, interface: str) -> tuple[str, ...]:
        """After `extend` a checkpoint's RollbackTimeout is the time it has had and ours."""
        owner, device = await self._owner(), await self._device_path(interface)
        found = []
        for path in await self._bus.get(MANAGER, "Checkpoints", doing="list the checkpoints of NetworkManager"):
            seen = await self._properties(path)
            if seen.get("Devices") == [device] and self._time <= seen["RollbackTimeout"] <= 2 * self._time:
                found.append(owner + path)
        return tuple(found)

    async def extend(self, checkpoint: str) -> None:
        doing = "extend the checkpoint of NetworkManager"
        path = await self._path_of(checkpoint)
        if not path:
            raise Rejected(f"Cannot {doing}: NetworkManager was restarted, and has forgotten it")
        await self._bus.call(MANAGER, "CheckpointAdjustRollbackTimeout", "ou", path, self._time, doing=doing)

    async def confirm(self, checkpoint: str) -> None:
        path = await self._path_of(checkpoint)
        if path:
            await self._bus.call(MANAGER, "CheckpointDestroy", "o", path, doing="confirm the checkpoint")

    async def roll_back(self, checkpoint: str) -> None:
        doing = "roll the checkpoint back"
        path = await self._path_of(checkpoint)
        if not path:
            raise Rejected(f"Cannot {doing}: NetworkManager was restarted, and has forgotten it")
        devices = (await self._properties(path)).get("Devices")
        if not devices:
            return
        with closing(Attempt(self._bus, devices[0])) as attempt:
            await self._undo(path, doing)
            with suppress(TimeoutError):  # it may have been waiting for an address before, too
                await asyncio.wait_for(self._rest(devices[0], attempt), PATIENCE)

    async def _undo(self, path: str, doing: str) -> None:
        results: dict[str, int] = (await self._bus.call(MANAGER, "CheckpointRollback", "o", path, doing=doing))[0]
        if failed := [RESULTS.get(result, f"result {result}") for result in results.values() if result]:
            raise Rejected(f"Cannot {doing}: {', '.join(failed)}")

    async def _rest(self, device: str, attempt: Attempt) -> None:
        """Returns when the device has stayed in one state, and is not under way to another."""
        while True:
            attempt.changed.clear()
            moving = words.state(await self._bus.get(Remote(SERVICE, device, DEVICE), "State")) in MOVING
            try:
                await asyncio.wait_for(attempt.changed.wait(), None if moving else QUIET)
            except TimeoutError:
                return

    async def _path_of(self, checkpoint: str) -> str:
        """ "" for one of an earlier NetworkManager."""
        owner, slash, path = checkpoint.partition("/")
        return slash + path if owner == await self._owner() else ""

    async def _properties(self, path: str) -> dict[str, Any]:
        """Empty for a checkpoint that is gone."""
        try:
            return await self._bus.properties(Remote(SERVICE, path, CHECKPOINT), "Devices", "RollbackTimeout")
        except RemoteError as error:
            gone(error)
            return {}

    async def _owner(self) -> str:
        """The unique bus name of NetworkManager."""
        owner: str = (await self._bus.call(DBUS, "GetNameOwner", "s", SERVICE, doing="find NetworkManager"))[0]
        return owner
