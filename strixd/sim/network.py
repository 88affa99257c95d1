"""Links and NetworkManager: profiles, devices, activation, and the zone that follows the profile.

As measured on lab hosts (NetworkManager 1.52): a newly booted host has an automatic profile on every link that no
stored profile fits; an activation takes 0.2 s and tells firewalld the profile's zone before it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from strixd.errors import Rejected
from strixd.ports import STAGED, Link, Profile
from strixd.sim.clock import Clock
from strixd.sim.firewall import Firewalld

State = Literal["disconnected", "activating", "activated", "deactivating", "failed", "unavailable"]
ACTIVATION = 0.185
CARRIER_PATIENCE = 4.0  # NetworkManager lets a device go so long after its carrier
DHCP_PATIENCE = 45.0
TRIES, PAUSE = 4, 300.0  # an automatic profile without DHCP gives up after so many tries, and so long
FLUSH = 0.1  # a device that was let go keeps its address and MTU for a moment
DUPLICATE_PATIENCE = 32.0
AUTOMATIC_PRIORITY = -999


@dataclass(slots=True)
class Nic:
    """A link and what NetworkManager does with it. `turn` counts activations; a newer one ends the older. `applied`:
    the stored profile as it was when it was activated. `manual`: disconnected by hand, so that nothing is activated
    on it by itself; `refused`: a profile that was taken from it by hand, and is not activated on it by itself; `tries`:
    of an automatic profile, in vain. `native_mtu`: without a profile's."""

    link: Link
    native_mtu: int = 1500
    managed: bool = True
    state: State = "disconnected"
    profile: str = ""
    turn: int = 0
    manual: bool = False
    refused: str = ""
    reason: str = ""
    tries: int = 0
    carrier_changes: int = 0
    applied: Profile | None = None

    @property
    def name(self) -> str:
        return self.link.name


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a device was like: `turn` tells whether it has been activated since. `stored` and `shadowed`: the profile
    that was active, as it was known and as it was on disk. `ends`: the time at which it runs out."""

    interface: str
    timeout: float
    ends: float
    profile: str
    state: State
    turn: int
    stored: Profile | None
    shadowed: Profile | None


@dataclass(frozen=True, slots=True)
class Automatic:
    """The profile that NetworkManager makes up for a link. `lease`: the address by DHCP, "" for no answer."""

    uuid: str
    name: str
    interface: str
    lease: str = ""


class NetworkManager:
    """The model of it. `stored`: the profiles that it knows, `shadowed`: what is on disk of those that are only staged;
    `duplicates`: addresses that another host holds; `starts`: how often it was started; `sessions`: SSH's, as
    (peer, own address)."""

    def __init__(self, clock: Clock, firewalld: Firewalld, changed: Callable[[str], None]) -> None:
        self._clock = clock
        self._firewalld = firewalld
        self._changed = changed
        self.nics: dict[str, Nic] = {}
        self.stored: dict[str, Profile] = {}
        self.shadowed: dict[str, Profile] = {}
        self.automatic: dict[str, Automatic] = {}
        self.duplicates: set[str] = set()
        self.checkpoints: dict[str, Checkpoint] = {}
        self.starts = 1
        self.sessions: set[tuple[str, str]] = set()
        self.ssh_ports: tuple[int, ...] = (22,)

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
        for other in self.nics.values():
            if other is not nic and other.profile == uuid:  # a profile has one device
                self.release(other, "disconnected" if other.link.carrier else "unavailable")
        nic.turn += 1
        nic.profile, nic.state, nic.manual, nic.refused, nic.reason = uuid, "activating", False, "", ""
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
            nic.state, nic.applied, nic.tries = "activated", profile and replace(profile, others=()), 0
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
        fitting = [p for p in self.stored.values() if fits(p, nic.link) and _by_itself(p) and p.uuid != nic.refused]
        if not (idle and nic.link.carrier):
            return
        if fitting:
            self.begin(max(fitting, key=lambda profile: profile.autoconnect_priority).uuid, nic.name)
        elif nic.tries < TRIES and (made := self._made(nic.name)):
            self.begin(made.uuid, nic.name)

    def _made(self, interface: str) -> Automatic | None:
        return next((a for a in self.automatic.values() if a.interface == interface), None)

    def stage(self, profile: Profile) -> None:
        """In memory only; what is on disk stays there, hidden."""
        earlier = self.stored.get(profile.uuid)
        if earlier and "not on disk" not in earlier.others:
            self.shadowed[profile.uuid] = earlier
        self._store(replace(profile, others=STAGED))

    def save(self, profile: Profile) -> None:
        self.shadowed.pop(profile.uuid, None)
        self._store(replace(profile, others=()))

    def _store(self, profile: Profile) -> None:
        """An idle device takes it at once; one that has it takes a changed zone at once, if nothing else changed."""
        self.stored[profile.uuid] = profile
        now = replace(profile, others=())
        for nic in self.nics.values():
            applied = nic.applied
            if applied and applied != now and replace(applied, zone=now.zone) == now:
                nic.applied = now
                self._firewalld.bind(nic.name, now.zone)
            self.autoconnect(nic)

    def restore(self, stored: Profile, shadowed: Profile | None) -> None:
        """A profile is known and on disk again as it was."""
        if shadowed:
            self.shadowed[stored.uuid] = shadowed
        else:
            self.shadowed.pop(stored.uuid, None)
        self._store(stored)

    def delete(self, uuid: str) -> None:
        """A profile goes, in memory and on disk, and a device that has it is free."""
        self.stored.pop(uuid, None)
        self.shadowed.pop(uuid, None)
        for nic in [nic for nic in self.nics.values() if nic.profile == uuid]:
            self.release(nic, "disconnected")
            self.autoconnect(nic)

    def deactivate(self, nic: Nic) -> None:
        """Take its profile from a device; another one may be activated on it by itself."""
        nic.refused = nic.profile
        self.release(nic, "disconnected")
        self.autoconnect(nic)

    def give_up(self, interface: str) -> None:
        """As some minutes after a boot without DHCP: no profile has the device, and a stored one would get it."""
        nic = self.nics[interface]
        nic.profile, nic.state, nic.tries = "", "disconnected", TRIES
        self._firewalld.release(interface)

    def carrier(self, interface: str, *, present: bool) -> None:
        """The cable goes in or out. Without it the device is let go after 4 s."""
        nic = self.nics[interface]
        nic.carrier_changes += nic.link.carrier != present
        nic.link = replace(nic.link, carrier=present)
        self._changed(f"carrier of {interface}")
        if present:
            self.autoconnect(nic)
        else:
            self._clock.after(CARRIER_PATIENCE, lambda: self._let_go(nic))

    def _let_go(self, nic: Nic) -> None:
        if not nic.link.carrier and nic.state != "unavailable":
            self.release(nic, "unavailable")

    def restart(self) -> None:
        """What is in force stays so, also what is only staged; checkpoints are forgotten, not rolled back."""
        self.checkpoints.clear()
        self.starts += 1
        self._changed("NetworkManager came or went")

    def boot(self) -> None:
        """As after a reboot: what is not on disk is forgotten, and links that a stored profile fits get no other."""
        self.restart()
        self.stored = {k: p for k, p in self.stored.items() if "not on disk" not in p.others} | self.shadowed
        self.shadowed = {}
        for nic in self.nics.values():
            if any(fits(profile, nic.link) for profile in self.stored.values()):
                self.automatic = {k: a for k, a in self.automatic.items() if a.interface != nic.name}
            nic.manual, nic.refused = False, ""
            self.release(nic, "disconnected" if nic.link.carrier else "unavailable")
            self.autoconnect(nic)


def _by_itself(profile: Profile) -> bool:
    return "connection.autoconnect" not in profile.others


def fits(profile: Profile, link: Link) -> bool:
    if profile.interface:
        return profile.interface == link.name
    return not profile.mac or profile.mac == link.mac
