"""firewalld: zones in force and permanent ones, and policies. An interface of no zone is in the default one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from strixd.errors import Rejected
from strixd.ports import Policy, Running, Zone
from strixd.sim.gate import Gate

DEFAULT = "public"
PREDEFINED = {
    "public": Zone("public"),
    "trusted": Zone("trusted", target="ACCEPT"),
    "drop": Zone("drop", target="DROP"),
}


class Firewalld:
    """The model of it. `files`: the interfaces that permanent zone files name (somebody else's work). `state`: whether
    it runs."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self.zones: dict[str, Zone] = dict(PREDEFINED)
        self.runtime: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.policies: dict[str, Policy] = {}
        self.state: Running = "running"

    def fail(self) -> None:
        self.state = "failed"
        self._changed("firewalld")

    def bind(self, interface: str, zone: str) -> None:
        """As NetworkManager does at an activation: the profile's zone, or the default one."""
        self.runtime[interface] = zone if zone in self.zones else DEFAULT
        self._changed(f"zone of {interface}")

    def release(self, interface: str) -> None:
        self.runtime.pop(interface, None)
        self._changed(f"zone of {interface}")

    def define(self, zone: Zone | None, policy: Policy | None) -> None:
        """They may not share a name, whichever came first."""
        for own, others in ((zone, self.policies), (policy, self.zones)):
            if own and own.name in others:
                raise Rejected(f"Cannot define {own.name}: NAME_CONFLICT: a zone and a policy of one name")
        if zone:
            self.zones[zone.name] = replace(zone, rules=tuple(sorted(zone.rules)), others=())
        if policy:
            self.policies[policy.name] = replace(policy, rules=tuple(sorted(policy.rules)), others=())
        self._changed("zones and policies")

    def forget(self, zone: str, policy: str) -> None:
        """The interfaces of a zone that goes fall back to the default one."""
        self.policies.pop(policy, None)
        self.zones.pop(zone, None)
        self.runtime = {i: (DEFAULT if z == zone else z) for i, z in self.runtime.items()}
        self._changed("zones and policies")


class SimFirewall:
    """ports.Firewall."""

    def __init__(self, model: Firewalld, gate: Gate) -> None:
        self._firewalld = model
        self._gate = gate

    async def running(self) -> Running:
        async with self._gate.read("firewall", "running"):
            return self._firewalld.state

    async def start(self) -> None:
        async with self._gate.write("firewall", "start"):
            self._firewalld.state = "running"

    async def zone_of(self, interface: str) -> str:
        async with self._gate.read("firewall", "zone_of"):
            return self._firewalld.runtime.get(interface, "")

    async def permanent_zone_of(self, interface: str) -> str:
        async with self._gate.read("firewall", "permanent_zone_of"):
            return self._firewalld.files.get(interface, "")

    async def zone(self, name: str) -> Zone | None:
        async with self._gate.read("firewall", "zone"):
            return self._firewalld.zones.get(name)

    async def policy(self, name: str) -> Policy | None:
        async with self._gate.read("firewall", "policy"):
            return self._firewalld.policies.get(name)

    async def define(self, *, zone: Zone | None = None, policy: Policy | None = None, moving: str = "") -> None:
        async with self._gate.write("firewall", "define", zone, policy):
            self._firewalld.define(zone, policy)

    async def remove(self, *, zone: str = "", policy: str = "", moving: str = "") -> None:
        async with self._gate.write("firewall", "remove", zone, policy):
            self._firewalld.forget(zone, policy)

    async def move(self, interface: str, zone: str) -> None:
        async with self._gate.write("firewall", "move", interface, zone):
            if zone and zone not in self._firewalld.zones:
                raise Rejected(f"Cannot move {interface} to zone {zone}: INVALID_ZONE: {zone}")
            if zone:
                self._firewalld.bind(interface, zone)
            else:
                self._firewalld.release(interface)
