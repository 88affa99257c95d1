"""firewalld: zones in force and permanent ones. An interface of no zone is in the default one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from strixd.errors import Rejected
from strixd.ports import Zone
from strixd.sim.gate import Gate

DEFAULT = "public"
PREDEFINED = {
    "public": Zone("public"),
    "trusted": Zone("trusted", target="ACCEPT"),
    "drop": Zone("drop", target="DROP"),
}


class Firewalld:
    """The model of it. `files`: the interfaces that permanent zone files name (somebody else's work)."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self.zones: dict[str, Zone] = dict(PREDEFINED)
        self.runtime: dict[str, str] = {}
        self.files: dict[str, str] = {}

    def bind(self, interface: str, zone: str) -> None:
        """As NetworkManager does at an activation: the profile's zone, or the default one."""
        self.runtime[interface] = zone if zone in self.zones else DEFAULT
        self._changed(f"zone of {interface}")

    def release(self, interface: str) -> None:
        self.runtime.pop(interface, None)
        self._changed(f"zone of {interface}")

    def forget(self, name: str) -> None:
        """A zone goes; its interfaces fall back to the default one."""
        self.zones.pop(name, None)
        self.runtime = {i: (DEFAULT if z == name else z) for i, z in self.runtime.items()}
        self._changed(f"zone {name}")


class SimFirewall:
    """ports.Firewall."""

    def __init__(self, model: Firewalld, gate: Gate) -> None:
        self._firewalld = model
        self._gate = gate

    async def zone_of(self, interface: str) -> str:
        async with self._gate.read("firewall", "zone_of"):
            return self._firewalld.runtime.get(interface, "")

    async def permanent_zone_of(self, interface: str) -> str:
        async with self._gate.read("firewall", "permanent_zone_of"):
            return self._firewalld.files.get(interface, "")

    async def zone(self, name: str) -> Zone | None:
        async with self._gate.read("firewall", "zone"):
            return self._firewalld.zones.get(name)

    async def define_zone(self, zone: Zone) -> None:
        async with self._gate.write("firewall", "define_zone", zone):
            self._firewalld.zones[zone.name] = replace(zone, rules=tuple(sorted(zone.rules)), others=())

    async def remove_zone(self, name: str) -> None:
        async with self._gate.write("firewall", "remove_zone", name):
            self._firewalld.forget(name)

    async def move(self, interface: str, zone: str) -> None:
        async with self._gate.write("firewall", "move", interface, zone):
            if zone and zone not in self._firewalld.zones:
                raise Rejected(f"Cannot move {interface} to zone {zone}: INVALID_ZONE: {zone}")
            if zone:
                self._firewalld.bind(interface, zone)
            else:
                self._firewalld.release(interface)
