"""Links, NetworkManager and firewalld: the fabric as this host has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Link:
    """A network interface as the kernel has it. MTUs in bytes; `max_mtu` 0 means that the kernel states none."""

    name: str
    mac: str
    driver: str = ""
    carrier: bool = False
    mtu: int = 1500
    max_mtu: int = 0
    addresses: tuple[str, ...] = ()  # IPv4, with prefix
    default_route: bool = False  # a default route leaves by it


class Links(Protocol):
    async def read(self) -> tuple[Link, ...]: ...


@dataclass(frozen=True, slots=True)
class Profile:
    """A stored NetworkManager profile, in the settings that strixd speaks of. MAC lower case; MTU in bytes.
    `others`, only ever read: what else in it is not as `save` would write it ("ipv4.gateway", "not on disk")."""

    uuid: str
    name: str
    interface: str = ""  # bound to this name, or
    mac: str = ""  # bound to this card
    address: str = ""  # IPv4 with prefix; no gateway, no DNS
    mtu: int = 0
    zone: str = ""
    autoconnect_priority: int = 0
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """What NetworkManager does with one interface. `profile` is the uuid of the active profile, or ""."""

    interface: str
    managed: bool
    state: Literal["disconnected", "activating", "activated", "deactivating", "failed", "unavailable"]
    profile: str = ""
    profile_name: str = ""


class Network(Protocol):
    """NetworkManager."""

    async def profile(self, uuid: str) -> Profile | None: ...
    async def device(self, interface: str) -> Device | None: ...
    async def save(self, profile: Profile) -> None:
        """Add the profile, or make the one with this uuid be exactly so. On disk when this returns."""

    async def delete(self, uuid: str) -> None:
        """Forget the profile; nothing happens when there is none."""

    async def activate(self, uuid: str, interface: str) -> None:
        """Returns when the device is activated by it; Rejected with the device's reason when it cannot."""

    async def disconnect(self, interface: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Zone:
    """A firewalld zone of our own. `rules` are rich rules, sorted, as firewalld spells them. `others`, only ever read:
    what else in it is not as `define` would have it ("services", "not in force")."""

    name: str
    description: str = ""
    target: str = "default"
    rules: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """A firewalld policy of our own, for what comes in from anywhere to this host, looked at before any zone; what none
    of its rules fits goes on to the zones. `rules` and `others` as in Zone."""

    name: str
    description: str = ""
    rules: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


Running = Literal["running", "starting", "stopped", "masked", "absent"]
"""A service that can be asked, or why it cannot be."""


class Firewall(Protocol):
    """firewalld."""

    async def running(self) -> Running:
        """Whether firewalld can be asked at all; everything below is Unavailable otherwise."""

    async def zone_of(self, interface: str) -> str:
        """The zone in force now, "" for none."""

    async def permanent_zone_of(self, interface: str) -> str:
        """The zone whose permanent file names this interface, "" for none."""

    async def zone(self, name: str) -> Zone | None:
        """The permanent definition, or None."""

    async def policy(self, name: str) -> Policy | None:
        """The permanent definition, or None."""

    async def define(self, *, zone: Zone | None = None, policy: Policy | None = None) -> None:
        """Permanent and in force when this returns, together; the same ones defined before are replaced. firewalld
        refuses a policy that has the name of a zone."""

    async def remove(self, *, zone: str = "", policy: str = "") -> None:
        """Nothing happens for what is not there."""

    async def move(self, interface: str, zone: str) -> None:
        """Change the zone in force now; "" takes the interface out of its zone (the default one applies)."""
