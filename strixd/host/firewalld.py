"""firewalld over D-Bus: in which zone an interface is, and one zone of our own, on disk and in force.

The paths of its permanent zones are numbered anew at every reload, so a path is asked for right before its use and
never kept. It has one error name for everything; what went wrong is the prefix of its words ("INVALID_RULE: …").
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from strixd.host.dbus import Remote, Variant
from strixd.ports import Wake, Zone

if TYPE_CHECKING:
    from strixd.host.bus import Bus

SERVICE = "org.fedoraproject.FirewallD1"
ROOT = "/org/fedoraproject/FirewallD1"
MAIN = Remote(SERVICE, ROOT, SERVICE)
RUNTIME = Remote(SERVICE, ROOT, f"{SERVICE}.zone")
CONFIG = Remote(SERVICE, f"{ROOT}/config", f"{SERVICE}.config")
CONFIG_ZONE = f"{SERVICE}.config.zone"
RELOAD = 30.0
"""Seconds for a reload; it takes 0.2 s with the default zones, more with many rules."""
LOOKS, LOOK = 3, 0.1
"""How often, and after how many seconds, to see after a reload whether interfaces are where they were."""

Settings = Mapping[str, Any]
"""A zone's settings as getSettings2 and getZoneSettings2 tell them, unpacked; empty ones are left out."""
_CHANGEABLE = {  # while firewalld runs; the target of a zone only by a reload
    "services": "as",
    "ports": "a(ss)",
    "icmp_blocks": "as",
    "masquerade": "b",
    "forward_ports": "a(ssss)",
    "sources": "as",
    "rules_str": "as",
    "protocols": "as",
    "source_ports": "a(ss)",
    "icmp_block_inversion": "b",
    "forward": "b",
}


class Firewalld:
    """Implements ports.Firewall."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def watch(self, wake: Wake) -> None:
        """Wakes when firewalld comes, goes or reloads, when an interface changes its zone or a zone is redefined."""
        on = self._bus.subscribe
        self._bus.on_connected(lambda: wake("the system bus is there"))
        self._bus.on_owner(SERVICE, lambda _: wake("firewalld came or went"))
        on(Remote(SERVICE, "", SERVICE), "Reloaded", lambda _: wake("firewalld was reloaded"))
        on(Remote(SERVICE, "", RUNTIME.interface), "", lambda _: wake("a firewall zone changed"))
        on(Remote(SERVICE, "", CONFIG_ZONE), "", lambda _: wake("a permanent firewall zone changed"))
        on(Remote(SERVICE, "", CONFIG.interface), "ZoneAdded", lambda _: wake("a permanent firewall zone was added"))

    async def zone_of(self, interface: str) -> str:
        doing = f"read the firewall zone of {interface}"
        zone: str = (await self._bus.call(RUNTIME, "getZoneOfInterface", "s", interface, doing=doing))[0]
        return zone

    async def permanent_zone_of(self, interface: str) -> str:
        """Several names, with spaces between, when several files claim the interface."""
        doing = f"read the permanent firewall zone of {interface}"
        zone: str = (await self._bus.call(CONFIG, "getZoneOfInterface", "s", interface, doing=doing))[0]
        return zone.partition("  (ERROR")[0]

    async def zone(self, name: str) -> Zone | None:
        permanent = await self._permanent(name)
        if permanent is None:
            return None
        return _zone(name, permanent, await self._in_force(name))

    async def define_zone(self, zone: Zone) -> None:
        doing = f"define the firewall zone {zone.name}"
        remote = await self._config_zone(zone.name)
        if remote is None:
            await self._bus.call(CONFIG, "addZone2", "sa{sv}", zone.name, to_settings(zone), doing=doing)
        else:
            await self._bus.call(remote, "update2", "a{sv}", to_settings(zone), doing=doing)
        await self._enforce(zone, doing)

    async def remove_zone(self, name: str) -> None:
        doing = f"remove the firewall zone {name}"
        remote = await self._config_zone(name)
        if remote is not None:
            await self._bus.call(remote, "remove", doing=doing)
        if await self._in_force(name) is not None:
            await self._reload(name, doing)

    async def move(self, interface: str, zone: str) -> None:
        if not zone:
            await self._take_out(interface)
            return
        doing = f"move {interface} to the firewall zone {zone}"
        await self._bus.call(RUNTIME, "changeZoneOfInterface", "ss", zone, interface, doing=doing)

    async def _take_out(self, interface: str) -> None:
        """To changeZoneOfInterface "" would be the default zone, by name and for good."""
        if await self.zone_of(interface):
            doing = f"take {interface} out of its firewall zone"
            await self._bus.call(RUNTIME, "removeInterface", "ss", "", interface, doing=doing)

    async def _enforce(self, zone: Zone, doing: str) -> None:
        """A reload only for a zone or a target that firewalld does not run with yet."""
        now = await self._in_force(zone.name)
        if now is None or now.get("target") != zone.target:
            await self._reload(zone.name, doing)
        else:
            await self._change(zone.name, _plain(to_settings(zone)), now, doing)

    async def _reload(self, name: str, doing: str) -> None:
        """A reload drops what is only in force and not on disk: of every zone but `name` it is put back, so that other
        interfaces stay where they are. (A rule that was to end at a set time loses that time.)"""
        before = await self._zones_in_force()
        await self._bus.call(MAIN, "reload", within=RELOAD, doing=doing)
        after = await self._zones_in_force()
        for zone in before.keys() & after.keys() - {name}:
            await self._change(zone, before[zone], after[zone], doing)
        places = {each: zone for zone in before.keys() & after.keys() for each in before[zone].get("interfaces", ())}
        for _ in range(LOOKS):
            await self._place(places)
            await asyncio.sleep(LOOK)

    async def _place(self, places: Mapping[str, str]) -> None:
        """Interfaces into their zones; NetworkManager, told of a reload, puts its own into those of its profiles."""
        for interface, zone in places.items():
            if await self.zone_of(interface) != zone:
                await self.move(interface, zone)

    async def _change(self, name: str, want: Settings, now: Settings, doing: str) -> None:
        """Of what is in force; the interfaces stay."""
        changes = {key: Variant(_CHANGEABLE[key], want.get(key, _none(key))) for key in differences(want, now)}
        if changes:
            await self._bus.call(RUNTIME, "setZoneSettings2", "sa{sv}", name, changes, doing=doing)

    async def _zones_in_force(self) -> dict[str, Settings]:
        return {name: await self._settings_in_force(name) for name in await self._names(RUNTIME, "getZones")}

    async def _in_force(self, name: str) -> Settings | None:
        return await self._settings_in_force(name) if name in await self._names(RUNTIME, "getZones") else None

    async def _settings_in_force(self, name: str) -> Settings:
        reply = await self._bus.call(RUNTIME, "getZoneSettings2", "s", name, doing=f"read the firewall zone {name}")
        return dict(reply[0])

    async def _permanent(self, name: str) -> Settings | None:
        remote = await self._config_zone(name)
        if remote is None:
            return None
        return dict((await self._bus.call(remote, "getSettings2", doing=f"read the firewall zone {name}"))[0])

    async def _config_zone(self, name: str) -> Remote | None:
        if name not in await self._names(CONFIG, "getZoneNames"):
            return None
        path = (await self._bus.call(CONFIG, "getZoneByName", "s", name, doing=f"find the firewall zone {name}"))[0]
        return Remote(SERVICE, path, CONFIG_ZONE)

    async def _names(self, remote: Remote, method: str) -> list[str]:
        """Asked for first, because firewalld logs an error whenever somebody asks for a zone that it does not have."""
        names: list[str] = (await self._bus.call(remote, method, doing="list the firewall zones"))[0]
        return names


def to_settings(zone: Zone) -> dict[str, Variant]:
    """Everything is named, because a setting that update2 is not given stays as it was."""
    texts = {"version": "", "short": zone.name, "description": zone.description, "target": zone.target}
    lists = {key: Variant(kind, _none(key)) for key, kind in _CHANGEABLE.items()} | {"interfaces": Variant("as", [])}
    return (
        {key: Variant("s", text) for key, text in texts.items()}
        | lists
        | {"rules_str": Variant("as", list(zone.rules))}
    )


def differences(one: Settings, other: Settings) -> list[str]:
    """Keys, changeable while firewalld runs, in which the two differ; the order within a list means nothing."""
    return [key for key in _CHANGEABLE if _ordered(one.get(key, _none(key))) != _ordered(other.get(key, _none(key)))]


def _zone(name: str, permanent: Settings, in_force: Settings | None) -> Zone:
    own = Zone(
        name, permanent.get("description", ""), permanent["target"], tuple(sorted(permanent.get("rules_str", ())))
    )
    others = differences(permanent, _plain(to_settings(own)))
    others += ["short"] if permanent.get("short", "") != name else []
    others += ["interfaces"] if permanent.get("interfaces") else []
    if in_force is None:
        others.append("not in force")
    else:
        others += [f"{key} in force" for key in differences(permanent, in_force)]
        others += ["target in force"] if in_force.get("target") != own.target else []
    return Zone(own.name, own.description, own.target, own.rules, tuple(others))


def _plain(settings: Mapping[str, Variant]) -> Settings:
    return {key: variant.value for key, variant in settings.items()}


def _none(key: str) -> object:
    return False if _CHANGEABLE[key] == "b" else []


def _ordered(value: object) -> object:
    return (
        sorted(tuple(item) if isinstance(item, list) else item for item in value) if isinstance(value, list) else value
    )
