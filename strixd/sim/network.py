"""Links and NetworkManager: profiles, devices, activation, and the zone that follows the profile.

As measured on lab hosts (NetworkManager 1.52): a newly booted host has an automatic profile on every link that no
stored profile fits; an activation takes 0.2 s and tells firewalld the profile's zone before it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_interface
from typing import Literal

from strixd.errors import Rejected
from strixd.ports import Device, Link, Profile, Session
from strixd.sim.clock import Clock
from strixd.sim.firewall import Firewalld
from strixd.sim.gate import Gate

State = Literal["disconnected", "activating", "activated", "deactivating", "failed", "unavailable"]
ACTIVATION = 0.185
CARRIER_PATIENCE = 4.0  # NetworkManager lets a device go so long after its carrier
DHCP_PATIENCE = 45.0
TRIES, PAUSE = 4, 300.0  # an automatic profile without DHCP gives up after so many tries, and so long
CALL = 10.0  # seconds until the port gives up on an activation that goes on
FLUSH = 0.1  # a device that was let go keeps its address and MTU for a moment
DUPLICATE_PATIENCE = 32.0
AUTOMATIC_PRIORITY = -999


@dataclass(slots=True)
class Nic:
    """A link and what NetworkManager does with it. `turn` counts activations; a newer one ends the older. `applied`:
    the stored profile as it was when it was activated. `manual`: disconnected by hand, so that nothing is activated
    on it by itself; `tries`: of an automatic profile, in vain. `native_mtu`: without a profile's."""

    link: Link
    native_mtu: int = 1500
    managed: bool = True
    state: State = "disconnected"
    profile: str = ""
    turn: int = 0
    manual: bool = False
    reason: str = ""
    tries: int = 0
    applied: Profile | None = None

    @property
    def name(self) -> str:
        return self.link.name


@dataclass(frozen=True, slots=True)
class Automatic:
    """The profile that NetworkManager makes up for a link. `lease`: the address by DHCP, "" for no answer."""

    uuid: str
    name: str
    interface: str
    lease: str = ""


class NetworkManager:
    """The model of it. `duplicates`: addresses that another host holds; `sessions`: SSH's, as (peer, own address)."""

    def __init__(self, clock: Clock, firewalld: Firewalld, changed: Callable[[str], None]) -> None:
        self._clock = clock
        self._firewalld = firewalld
        self._changed = changed
        self.nics: dict[str, Nic] = {}
        self.stored: dict[str, Profile] = {}
        self.automatic: dict[str, Automatic] = {}
        self.duplicates: set[str] = set()
        self.sessions: set[tuple[str, str]] = set()

    def add(self, link: Link, *, automatic: Automatic | None = None, state: State = "activated") -> Nic:
        """A link as found after boot, occupied by its automatic profile."""
        nic = self.nics[link.name] = Nic(link, link.mtu)
        if automatic:
            self.automatic[automatic.uuid] = automatic
            nic.profile, nic.state = automatic.uuid, state
            self._firewalld.bind(link.name, "")
        return nic

    def name(self, uuid: str) -> str:
        stored = self.stored.get(uuid)
        if stored:
            return stored.name
        return self.automatic[uuid].name if uuid in self.automatic else ""

    def begin(self, uuid: str, interface: str) -> Nic:
        """Starts an activation; it goes on whatever becomes of the one who asked."""
        nic = self.nics.get(interface)
        if not self.name(uuid):
            raise Rejected(f"Cannot activate {uuid} on {interface}: no such connection")
        if nic is None or not nic.managed:
            raise Rejected(f"Cannot activate {self.name(uuid)} on {interface}: no suitable device")
        if not nic.link.carrier:
            raise Rejected(f"Cannot activate {self.name(uuid)} on {interface}: device is not available (no carrier)")
        nic.turn += 1
        nic.profile, nic.state, nic.manual, nic.reason = uuid, "activating", False, ""
        self._address(nic, (), nic.native_mtu)
        stored = self.stored.get(uuid)
        self._firewalld.bind(nic.name, stored.zone if stored else "")
        turn = nic.turn
        self._clock.after(ACTIVATION, lambda: self._finish(nic, turn))
        self._changed(f"device {interface}")
        return nic

    def _finish(self, nic: Nic, turn: int) -> None:
        if nic.turn != turn or nic.state != "activating":
            return
        profile, automatic = self.stored.get(nic.profile), self.automatic.get(nic.profile)
        if automatic and not automatic.lease:
            self._clock.after(DHCP_PATIENCE, lambda: self._fail(nic, turn, "no address by DHCP"))
        elif profile and profile.address in self.duplicates:
            nic.reason = f"{profile.address} is used by another host"
            self._clock.after(DUPLICATE_PATIENCE, lambda: self._fail(nic, turn, nic.reason))
        else:
            address = profile.address if profile else automatic.lease if automatic else ""
            nic.state, nic.applied, nic.tries = "activated", profile, 0
            self._address(nic, (address,) if address else (), (profile.mtu if profile else 0) or nic.native_mtu)
            self._changed(f"device {nic.name}")

    def _address(self, nic: Nic, addresses: tuple[str, ...], mtu: int) -> None:
        nic.link = replace(nic.link, addresses=addresses, mtu=mtu)

    def _fail(self, nic: Nic, turn: int, reason: str) -> None:
        """A failed device tries the best profile again; an automatic one gives up after a while, and for a while."""
        if nic.turn != turn:
            return
        nic.reason = reason
        nic.tries += 1
        if nic.tries < TRIES:
            self.release(nic, "failed")
            self._clock.after(1.0, lambda: self.autoconnect(nic))
        else:
            self.release(nic, "disconnected")
            self._clock.after(PAUSE, lambda: self._again(nic))

    def _again(self, nic: Nic) -> None:
        nic.tries = 0
        self.autoconnect(nic)

    def release(self, nic: Nic, state: State) -> None:
        nic.turn += 1
        nic.profile, nic.state, nic.applied = "", state, None
        self._firewalld.release(nic.name)
        turn = nic.turn
        self._clock.after(FLUSH, lambda: self._flush(nic, turn))
        self._changed(f"device {nic.name}")

    def _flush(self, nic: Nic, turn: int) -> None:
        if nic.turn == turn:
            self._address(nic, (), nic.native_mtu)
            self._changed(f"device {nic.name}")

    def autoconnect(self, nic: Nic) -> None:
        idle = nic.state in ("disconnected", "failed", "unavailable") and nic.managed and not nic.manual
        fitting = [p for p in self.stored.values() if fits(p, nic.link)]
        if not (idle and nic.link.carrier):
            return
        if fitting:
            self.begin(max(fitting, key=lambda profile: profile.autoconnect_priority).uuid, nic.name)
        elif nic.tries < TRIES and (made := self._made(nic.name)):
            self.begin(made.uuid, nic.name)

    def _made(self, interface: str) -> Automatic | None:
        return next((a for a in self.automatic.values() if a.interface == interface), None)

    def save(self, profile: Profile) -> None:
        """An idle device takes it at once; one that has it takes a changed zone at once, if nothing else changed."""
        self.stored[profile.uuid] = replace(profile, others=())
        for nic in self.nics.values():
            applied = nic.applied
            if applied and applied.uuid == profile.uuid and replace(applied, zone=profile.zone) == profile:
                self._firewalld.bind(nic.name, profile.zone)
            self.autoconnect(nic)

    def way(self, peer: str) -> str:
        """The interface by which packets to this address leave: the one in its network, else the default route's."""
        links = [nic.link for nic in self.nics.values() if nic.link.carrier]
        near = [each.name for each in links if any(ip_address(peer) in ip_interface(a).network for a in each.addresses)]
        far = [each.name for each in links if each.default_route]
        return (near or far or [""])[0]

    def give_up(self, interface: str) -> None:
        """As some minutes after a boot without DHCP: no profile has the device, and a stored one would get it."""
        nic = self.nics[interface]
        nic.profile, nic.state, nic.tries = "", "disconnected", TRIES
        self._firewalld.release(interface)

    def carrier(self, interface: str, *, present: bool) -> None:
        """The cable goes in or out. Without it the device is let go after 4 s."""
        nic = self.nics[interface]
        nic.link = replace(nic.link, carrier=present)
        self._changed(f"carrier of {interface}")
        if present:
            self.autoconnect(nic)
        else:
            self._clock.after(CARRIER_PATIENCE, lambda: self._let_go(nic))

    def _let_go(self, nic: Nic) -> None:
        if not nic.link.carrier and nic.state != "unavailable":
            self.release(nic, "unavailable")

    def boot(self) -> None:
        """As after a reboot: what is not on disk is forgotten, and links that a stored profile fits get no other."""
        for nic in self.nics.values():
            if any(fits(profile, nic.link) for profile in self.stored.values()):
                self.automatic = {k: a for k, a in self.automatic.items() if a.interface != nic.name}
            nic.manual = False
            self.release(nic, "disconnected" if nic.link.carrier else "unavailable")
            self.autoconnect(nic)


def fits(profile: Profile, link: Link) -> bool:
    if profile.interface:
        return profile.interface == link.name
    return not profile.mac or profile.mac == link.mac


class SimNetwork:
    """ports.Network."""

    def __init__(self, model: NetworkManager, gate: Gate, clock: Clock) -> None:
        self._nm = model
        self._gate = gate
        self._clock = clock

    async def profile(self, uuid: str) -> Profile | None:
        async with self._gate.read("network", "profile"):
            return self._nm.stored.get(uuid)

    async def device(self, interface: str) -> Device | None:
        async with self._gate.read("network", "device"):
            nic = self._nm.nics.get(interface)
            if nic is None:
                return None
            return Device(nic.name, nic.managed, nic.state, nic.profile, self._nm.name(nic.profile))

    async def save(self, profile: Profile) -> None:
        async with self._gate.write("network", "save", profile):
            self._nm.save(profile)

    async def delete(self, uuid: str) -> None:
        async with self._gate.write("network", "delete", uuid):
            self._nm.stored.pop(uuid, None)
            for nic in [nic for nic in self._nm.nics.values() if nic.profile == uuid]:
                self._nm.release(nic, "disconnected")
                self._nm.autoconnect(nic)

    async def activate(self, uuid: str, interface: str) -> None:
        async with self._gate.write("network", "activate", uuid, interface):
            nic = self._nm.begin(uuid, interface)
            nic.tries = 0
            turn, deadline = nic.turn, self._clock.now() + CALL
            while nic.turn == turn and nic.state == "activating" and not nic.reason:
                if self._clock.now() > deadline:
                    raise Rejected(f"Cannot activate {uuid} on {interface}: it is still not active after {CALL:g} s")
                await self._clock.sleep(0.02)
            if nic.turn != turn or nic.state != "activated":
                raise Rejected(f"Cannot activate {uuid} on {interface}: {nic.reason or 'superseded'}")

    async def disconnect(self, interface: str) -> None:
        async with self._gate.write("network", "disconnect", interface):
            nic = self._nm.nics.get(interface)
            if nic and nic.profile:
                nic.manual = True
                self._nm.release(nic, "disconnected")


class SimLinks:
    """ports.Links."""

    def __init__(self, model: NetworkManager, gate: Gate) -> None:
        self._nm = model
        self._gate = gate

    async def read(self) -> tuple[Link, ...]:
        async with self._gate.read("links", "read"):
            return tuple(nic.link for nic in self._nm.nics.values())

    async def sessions(self) -> tuple[Session, ...]:
        async with self._gate.read("links", "sessions"):
            return tuple(Session(peer, own, self._nm.way(peer)) for peer, own in self._nm.sessions)
