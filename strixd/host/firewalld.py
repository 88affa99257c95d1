"""firewalld over D-Bus: in which zone an interface is, and a zone and a policy of our own, on disk and in force.

The paths of its permanent objects are numbered anew at every reload, so a path is asked for right before its use and
never kept. It has one error name for everything; what went wrong is the prefix of its words ("INVALID_RULE: …").
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from strixd.errors import NotSettled
from strixd.host import systemd
from strixd.host.dbus import Remote
from strixd.host.firewalld_words import (
    POLICY,
    ROOT,
    SERVICE,
    ZONE,
    Kind,
    Settings,
    changes,
    kind_of,
    plain,
    to_policy,
    to_settings,
    to_zone,
    unlike,
)
from strixd.host.recent import Recent
from strixd.ports import Policy, Running, Wake, Zone

if TYPE_CHECKING:
    from strixd.host.bus import Bus

UNIT = "firewalld.service"
MAIN = Remote(SERVICE, ROOT, SERVICE)
CONFIG = Remote(SERVICE, f"{ROOT}/config", f"{SERVICE}.config")
BUS = Remote("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
RELOAD = 30.0
"""Seconds for a reload; it takes 0.1 to 0.2 s with the default zones, more with many rules."""
START = 30.0
"""Seconds for its start; it takes 1 s, and much longer on a host that boots."""
LOOKS, LOOK = 3, 0.1
"""How often, and after how many seconds, to see after a reload whether an interface stays where it was put back."""
STATES: Mapping[str, Running] = {"masked": "masked", "not-found": "absent"}
AT_REST: Mapping[str, Running] = {"inactive": "stopped", "deactivating": "stopped", "failed": "failed"}
KINDS = (ZONE, POLICY)
CHANGES = (
    (SERVICE, "Reloaded", "firewalld was reloaded"),
    (ZONE.in_force.interface, "", "a firewall zone changed"),
    (POLICY.in_force.interface, "", "a firewall policy changed"),
    (ZONE.stored, "", "a permanent firewall zone changed"),
    (POLICY.stored, "", "a permanent firewall policy changed"),
    (CONFIG.interface, "ZoneAdded", "a permanent firewall zone was added"),
    (CONFIG.interface, "PolicyAdded", "a permanent firewall policy was added"),
)
"""Interface and signal ("" for all of its), and what that says. All that is read here has one."""
FRESH = 10.0
"""Seconds for which an answer counts while nothing of CHANGES comes. Of every call firewalld asks polkit, and polkit
the bus: the twelve that a pass needs take 45 ms of processor time among the four (seen with 2.3)."""
InForce = Mapping[Kind, Mapping[str, Settings]]
"""What firewalld runs with: settings by name."""


class Firewalld:
    """Implements ports.Firewall."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._recent = Recent(0.0)  # until changes are told

    def watch(self, wake: Wake) -> None:
        """Wakes when firewalld comes, goes or reloads, when an interface changes its zone, or when a zone or a policy
        is redefined."""
        self._recent = recent = Recent(FRESH)

        def changed(reason: str, *_: object) -> None:
            recent.forget()
            wake(reason)

        self._bus.on_connected(partial(changed, "the system bus is there"))
        self._bus.on_owner(SERVICE, partial(changed, "firewalld came or went"))
        for interface, member, what in CHANGES:
            self._bus.subscribe(Remote(SERVICE, "", interface), member, partial(changed, what))

    async def running(self) -> Running:
        doing = "see whether firewalld runs"
        if (await self._bus.call(BUS, "NameHasOwner", "s", SERVICE, doing=doing))[0]:
            return "running"
        where = Remote(systemd.SERVICE, systemd.unit_path(UNIT), systemd.UNIT)
        unit = await self._bus.properties(where, "LoadState", "ActiveState", doing=doing)
        return STATES.get(unit["LoadState"]) or AT_REST.get(unit["ActiveState"], "starting")

    async def start(self) -> None:
        doing = "start firewalld"
        await self._bus.call(systemd.MANAGER, "StartUnit", "ss", UNIT, "replace", doing=doing)
        until = time.monotonic() + START
        while (now := await self.running()) != "running":
            if time.monotonic() > until:
                raise NotSettled(f"Cannot {doing}: it is {now}", hint=f"journalctl -u {UNIT}")
            await asyncio.sleep(LOOK)

    async def zone_of(self, interface: str) -> str:
        return await self._recent.read(("now", interface), lambda: self._zone_of(interface))

    async def _zone_of(self, interface: str) -> str:
        doing = f"read the firewall zone of {interface}"
        zone: str = (await self._bus.call(ZONE.in_force, "getZoneOfInterface", "s", interface, doing=doing))[0]
        return zone

    async def permanent_zone_of(self, interface: str) -> str:
        return await self._recent.read(("stored", interface), lambda: self._permanent_zone_of(interface))

    async def _permanent_zone_of(self, interface: str) -> str:
        """Several names, with spaces between, when several files claim the interface."""
        doing = f"read the permanent firewall zone of {interface}"
        zone: str = (await self._bus.call(CONFIG, "getZoneOfInterface", "s", interface, doing=doing))[0]
        return zone.partition("  (ERROR")[0]

    async def zone(self, name: str) -> Zone | None:
        permanent, now = await self._recent.read((ZONE, name), lambda: self._both(ZONE, name))
        return None if permanent is None else to_zone(name, permanent, now)

    async def policy(self, name: str) -> Policy | None:
        permanent, now = await self._recent.read((POLICY, name), lambda: self._both(POLICY, name))
        return None if permanent is None else to_policy(name, permanent, now)

    async def define(self, *, zone: Zone | None = None, policy: Policy | None = None, moving: str = "") -> None:
        """One reload at most, and only for what firewalld does not run with yet."""
        own = [each for each in (zone, policy) if each is not None]
        for each in own:
            await self._store(each)
        if any([await self._wants_reload(each) for each in own]):
            doing = "put " + " and ".join(map(_named, own)) + " in force"
            await self._reload({each.name for each in own}, doing, moving)
        else:
            for each in own:
                await self._enforce(each)

    async def remove(self, *, zone: str = "", policy: str = "", moving: str = "") -> None:
        named = [(of, name) for of, name in ((POLICY, policy), (ZONE, zone)) if name]
        for of, name in named:
            doing = f"remove the firewall {of.word} {name}"
            remote = await self._find(of, name, doing)
            if remote is not None:
                await self._change_by(remote, "remove", doing=doing)
        if any([await self._in_force(of, name) is not None for of, name in named]):
            words = " and ".join(f"{of.word} {name}" for of, name in named)
            await self._reload({name for _, name in named}, f"take the firewall {words} out of force", moving)

    async def move(self, interface: str, zone: str) -> None:
        if not zone:
            await self._take_out(interface)
            return
        doing = f"move {interface} to the firewall zone {zone}"
        await self._change_by(ZONE.in_force, "changeZoneOfInterface", "ss", zone, interface, doing=doing)

    async def _take_out(self, interface: str) -> None:
        """To changeZoneOfInterface "" would be the default zone, by name and for good."""
        if await self._zone_of(interface):
            doing = f"take {interface} out of its firewall zone"
            await self._change_by(ZONE.in_force, "removeInterface", "ss", "", interface, doing=doing)

    # What is defined

    async def _store(self, own: Zone | Policy) -> None:
        of, doing = kind_of(own), f"define the {_named(own)}"
        remote = await self._find(of, own.name, doing)
        if remote is None:
            await self._change_by(CONFIG, of.add, "sa{sv}", own.name, to_settings(own), doing=doing)
        else:
            await self._change_by(remote, of.update, "a{sv}", to_settings(own), doing=doing)

    async def _wants_reload(self, own: Zone | Policy) -> bool:
        now = await self._in_force(kind_of(own), own.name)
        return now is None or bool(unlike(kind_of(own), plain(to_settings(own)), now))

    async def _enforce(self, own: Zone | Policy) -> None:
        of = kind_of(own)
        now = await self._settings_in_force(of, own.name)
        await self._change(of, own.name, want=plain(to_settings(own)), now=now)

    async def _both(self, of: Kind, name: str) -> tuple[Settings | None, Settings | None]:
        """On disk, and in force."""
        return await asyncio.gather(self._permanent(of, name), self._in_force(of, name))

    async def _permanent(self, of: Kind, name: str) -> Settings | None:
        doing = f"read the firewall {of.word} {name}"
        remote = await self._find(of, name, doing)
        return None if remote is None else dict((await self._bus.call(remote, of.read, doing=doing))[0])

    async def _find(self, of: Kind, name: str, doing: str) -> Remote | None:
        """Names are asked for first, because firewalld logs an error when somebody asks for what it does not have."""
        if name not in (await self._bus.call(CONFIG, of.stored_names, doing=doing))[0]:
            return None
        path = (await self._bus.call(CONFIG, of.find, "s", name, doing=doing))[0]
        return Remote(SERVICE, path, of.stored)

    # What is in force

    async def _reload(self, ours: set[str], doing: str, moving: str) -> None:
        """A reload drops what is only in force and not on disk. Where that judges packets and is not ours, it is
        put back, so that other interfaces stay where they are. (A rule that was to end at a set time loses it.)"""
        before = await self._judging()
        await self._change_by(MAIN, "reload", within=RELOAD, doing=doing)
        after = await self._settings({of: set(names) for of, names in before.items()})
        for of in KINDS:
            for name in after[of].keys() - ours:
                await self._change(of, name, want=before[of][name], now=after[of][name])
        there = {each: zone for each, zone in _places(before[ZONE]).items() if zone in after[ZONE]}
        there.pop(moving, None)
        await self._keep(dict(there.items() - _places(after[ZONE]).items()))

    async def _keep(self, places: Mapping[str, str]) -> None:
        """Interfaces back into zones that nothing on disk gives them. NetworkManager, told of a reload, puts its own
        into those of their profiles a moment later, where firewalld itself has put them already."""
        for _ in range(LOOKS if places else 0):
            for interface, zone in places.items():
                if await self._zone_of(interface) != zone:
                    await self.move(interface, zone)
            await asyncio.sleep(LOOK)

    async def _change(self, of: Kind, name: str, *, want: Settings, now: Settings) -> None:
        if new := changes(of, want, now):
            doing = f"change the firewall {of.word} {name}"
            await self._change_by(of.in_force, of.set, "sa{sv}", name, new, doing=doing)

    async def _judging(self) -> InForce:
        """The zones that have an interface or a source, the default one, and the policies between them."""
        call, doing = self._bus.call, "see which firewall zones are active"
        zones, default, policies = await asyncio.gather(
            call(ZONE.in_force, "getActiveZones", doing=doing),
            call(MAIN, "getDefaultZone", doing=doing),
            call(POLICY.in_force, "getActivePolicies", doing=doing),
        )
        return await self._settings({ZONE: {*zones[0], default[0]}, POLICY: set(policies[0])})

    async def _settings(self, names: Mapping[Kind, set[str]]) -> InForce:
        """Of those that are there; asked for together, because a reload waits for them."""
        found = await asyncio.gather(*(self._all_in_force(of, names[of]) for of in KINDS))
        return dict(zip(KINDS, found, strict=True))

    async def _all_in_force(self, of: Kind, names: set[str]) -> dict[str, Settings]:
        return {name: await self._settings_in_force(of, name) for name in names & set(await self._names(of))}

    async def _in_force(self, of: Kind, name: str) -> Settings | None:
        return await self._settings_in_force(of, name) if name in await self._names(of) else None

    async def _names(self, of: Kind) -> list[str]:
        names: list[str] = (await self._bus.call(of.in_force, of.names, doing=f"list what {of.word} is in force"))[0]
        return names

    async def _settings_in_force(self, of: Kind, name: str) -> Settings:
        reply = await self._bus.call(of.in_force, of.get, "s", name, doing=f"read the firewall {of.word} {name}")
        return dict(reply[0])

    # Asking

    async def _change_by(self, remote: Remote, method: str, *args: Any, **named: Any) -> None:
        with self._recent.changing():
            await self._bus.call(remote, method, *args, **named)


def _named(own: Zone | Policy) -> str:
    return f"firewall {kind_of(own).word} {own.name}"


def _places(zones: Mapping[str, Settings]) -> dict[str, str]:
    """Each interface with its zone."""
    return {each: zone for zone, settings in zones.items() for each in settings.get("interfaces", ())}
