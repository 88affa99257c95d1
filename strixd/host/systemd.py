"""systemd's manager over D-Bus: what a unit does, start, stop to the last process, daemon-reload.

A unit that has ended well is forgotten by systemd with all it knew of its run, exit status and invocation too, unless
somebody holds a reference; so what is watched or was started here is held, for as long as this connection lives.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from strixd.errors import Rejected, Unavailable
from strixd.host import cgroup
from strixd.host.dbus import Remote, RemoteError, Variant
from strixd.host.titles import Titles
from strixd.ports import Bound, Unit, Wake

if TYPE_CHECKING:
    from strixd.host.bus import Bus

log = logging.getLogger(__name__)

SERVICE = "org.freedesktop.systemd1"
ROOT = "/org/freedesktop/systemd1"
MANAGER = Remote(SERVICE, ROOT, f"{SERVICE}.Manager")
UNIT, RUN, SLICE = f"{SERVICE}.Unit", f"{SERVICE}.Service", f"{SERVICE}.Slice"

RELOAD = 30.0
"""Seconds for a daemon-reload: all generators run, Quadlet's among them."""
STOP = 60.0
"""Seconds for an orderly stop; then the whole control group is killed."""
KILL = 5.0
"""Seconds for killed processes to be gone; one that waits for a device can take long to die."""
LOOK = 0.1
"""Seconds between looks at a unit that stops."""
SET = 0.5
"""Seconds by which a clock that was set, and not only kept in step, differs."""
RETRY = 5.0
"""Seconds until systemd is asked again for its signals when it did not answer."""
ENDED = ("inactive", "failed")

TOLD = ("ActiveState", "InvocationID", "LoadState", "NeedDaemonReload", "StateChangeTimestampMonotonic")
"""What to_unit() reads of the interface Unit."""

STATES = {"maintenance": "deactivating", "refreshing": "active"}
"""Values of ActiveState beside the port's, and what they come to here."""


class Systemd:
    """Implements ports.Units. `watched`: units whose changes wake and whose ends are remembered from the
    beginning; those that are started here join them."""

    def __init__(self, bus: Bus, watched: tuple[str, ...]) -> None:
        self._bus = bus
        self._titles = Titles()
        self._kept = set(watched)
        self._wake: Wake | None = None
        self._zero = 0.0
        self._held: set[str] = set()
        self._fresh = asyncio.Event()

    async def watch(self, wake: Wake) -> None:
        """Runs for ever. Wakes when a watched unit changes, and when systemd can be asked again."""
        self._bus.on_connected(self._fresh.set)
        self._bus.on_owner(SERVICE, lambda _: self._fresh.set())
        self._wake = wake
        for name in self._kept:
            self._listen(name)
        while True:
            self._fresh.clear()
            if await self._attach():
                wake("systemd answers")
                await self._fresh.wait()
            else:
                await asyncio.sleep(RETRY)

    async def read(self, name: str) -> Unit:
        """Asking for the object of a unit makes systemd load it. All that tells the state comes in one answer; of the
        service only what matters in that state, because all of it would be 350 properties."""
        doing = f"read the unit {name}"
        unit = await self._bus.properties(Remote(SERVICE, unit_path(name), UNIT), *TOLD, doing=doing)
        ended = name.endswith(".service") and unit["StateChangeTimestampMonotonic"] and unit["ActiveState"] in ENDED
        wanted = ("Result", "ExecMainStatus") if ended else ()
        service = Remote(SERVICE, unit_path(name), RUN)
        told = {what: await self._bus.get(service, what, doing=doing) for what in wanted}
        return to_unit(name, unit, told, zero=self._zero_of_steady())

    def _zero_of_steady(self) -> float:
        """When the clock that nobody sets was at 0, by the wall clock as it is set now: the same each time, until that
        is set."""
        zero = time.time() - time.monotonic()
        if abs(zero - self._zero) >= SET:
            self._zero = zero
        return self._zero

    async def start(self, name: str) -> None:
        """Earlier failures are forgotten first, or a start limit would refuse."""
        doing = f"start {name}"
        await self._keep(name)
        with _unless("NoSuchUnit"):
            await self._bus.call(MANAGER, "ResetFailedUnit", "s", name, doing=doing)
        await self._bus.call(MANAGER, "StartUnit", "ss", name, "replace", doing=doing)

    async def stop(self, name: str) -> None:
        """Rejected when processes are left that even SIGKILL does not end."""
        doing = f"stop {name}"
        group = await self._bus.get(Remote(SERVICE, unit_path(name), RUN), "ControlGroup", doing=doing)
        with _unless("NoSuchUnit"):
            await self._bus.call(MANAGER, "StopUnit", "ss", name, "replace", doing=doing)
        if await self._over(name, group, STOP):
            return
        log.warning("%s does not stop; all its processes are killed: %s", name, _names(group))
        with _unless("NoSuchUnit"):
            await self._bus.call(MANAGER, "KillUnit", "ssi", name, "all", int(signal.SIGKILL), doing=doing)
        if not await self._over(name, group, KILL):
            raise Rejected(f"Cannot {doing}: not killed: {_names(group)}", hint=f"systemctl status {name}")

    async def interrupt(self, name: str, title: str) -> None:
        group = await self._bus.get(Remote(SERVICE, unit_path(name), RUN), "ControlGroup", doing=f"look at {name}")
        try:
            await self._titles.interrupt(group, title)
        except OSError as error:
            raise Rejected(
                f"Cannot interrupt {title} of {name}: {error.strerror}", hint=f"systemctl status {name}"
            ) from error

    async def programs(self, name: str) -> tuple[str, ...]:
        group = await self._bus.get(Remote(SERVICE, unit_path(name), RUN), "ControlGroup", doing=f"look at {name}")
        return await self._titles.of(group)

    async def bound(self, name: str) -> Bound:
        remote, doing = Remote(SERVICE, unit_path(name), SLICE), f"read the memory limit of {name}"
        told = await self._bus.get(remote, "MemoryMax", doing=doing)
        group = await self._bus.get(remote, "ControlGroup", doing=doing)
        return Bound(told, cgroup.limit(group), cgroup.reached(group))

    async def limit(self, name: str, most: int) -> None:
        """As `systemctl set-property --runtime`: systemd keeps it below /run/systemd/system.control."""
        values = [("MemoryMax", Variant("t", most)), ("MemorySwapMax", Variant("t", 0))]
        doing = f"limit the memory of {name}"
        await self._bus.call(MANAGER, "SetUnitProperties", "sba(sv)", name, True, values, doing=doing)

    async def reload(self) -> None:
        await self._bus.call(MANAGER, "Reload", within=RELOAD, doing="let systemd read its unit files again")
        await self._hold()
        for name in tuple(self._kept):
            await self._forget(name)

    async def _forget(self, name: str) -> None:
        """A unit whose file is gone would be listed as failed for ever."""
        unit = await self.read(name)
        if not unit.loaded and unit.active == "failed":
            with _unless("NoSuchUnit"):
                await self._bus.call(MANAGER, "ResetFailedUnit", "s", name, doing=f"forget {name}")

    async def _over(self, name: str, group: str, within: float) -> bool:
        """The unit has ended, and then, soon, no process of it is left."""
        return await _until(partial(self._ended, name), within) and await _until(partial(_empty, group), KILL)

    async def _ended(self, name: str) -> bool:
        unit = Remote(SERVICE, unit_path(name), UNIT)
        return await self._bus.get(unit, "ActiveState", doing=f"see whether {name} has stopped") in ENDED

    async def _attach(self) -> bool:
        """Ask for signals, and hold the units: both last as long as this connection to the bus."""
        self._held.clear()
        try:
            with _unless("AlreadySubscribed"):
                await self._bus.call(MANAGER, "Subscribe", doing="follow systemd")
            await self._hold()
        except Unavailable as error:
            log.debug("%s", error)
            return False
        return True

    async def _keep(self, name: str) -> None:
        if name not in self._kept:
            self._kept.add(name)
            self._listen(name)
        await self._hold()

    def _listen(self, name: str) -> None:
        wake = self._wake
        if wake:
            remote = Remote(SERVICE, unit_path(name), UNIT)
            self._bus.on_properties(remote, lambda _: wake(f"{name} changed"))

    async def _hold(self) -> None:
        """Those that systemd knows by now; the workloads' units appear with their files."""
        for name in self._kept - self._held:
            with _unless("NoSuchUnit"):
                await self._bus.call(MANAGER, "RefUnit", "s", name, doing=f"follow {name}")
                self._held.add(name)


def unit_path(name: str) -> str:
    """The object of a unit: every byte that is no ASCII letter or digit as _xx, a leading digit too
    (sd_bus_path_encode(3))."""
    text = "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"_{byte:02x}" for byte in name.encode())
    if text[:1].isdigit():
        text = f"_{ord(text[0]):02x}{text[1:]}"
    return f"{ROOT}/unit/{text}"


def to_unit(name: str, unit: Mapping[str, Any], service: Mapping[str, Any], *, zero: float) -> Unit:
    """From the properties of the interfaces Unit and, as far as they were asked for, Service. Times are in µs. The one
    by the wall clock is as that was set then; so it is that by the clock that nobody sets, whose zero was at `zero`."""
    state, changed = unit["ActiveState"], unit["StateChangeTimestampMonotonic"]
    return Unit(
        name=name,
        loaded=unit["LoadState"] == "loaded",
        active=STATES.get(state, state),
        result=service.get("Result", ""),
        status=service.get("ExecMainStatus", 0),
        invocation=bytes(unit["InvocationID"]).hex(),
        since=zero + changed / 1e6 if changed else 0.0,
        stale=unit["NeedDaemonReload"],
    )


@contextmanager
def _unless(name: str) -> Iterator[None]:
    """This error of systemd's means that there is nothing to do."""
    try:
        yield
    except RemoteError as error:
        if not error.name.endswith(f".{name}"):
            raise


async def _until(true: Callable[[], Awaitable[bool]], within: float) -> bool:
    deadline = time.monotonic() + within
    while not await true():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(LOOK)
    return True


async def _empty(group: str) -> bool:
    return not cgroup.survivors(group)


def _names(group: str) -> str:
    return ", ".join(cgroup.survivors(group)) or "no process, but systemd waits"
