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


@dataclass(frozen=True, slots=True)
class Session:
    """An established SSH connection to this host: `peer` and the own `address` (IPv4, without prefix), and the
    interface by which packets to the peer leave now, "" for none."""

    peer: str
    address: str
    interface: str


@dataclass(frozen=True, slots=True)
class Counters:
    """What the kernel has counted of an interface since it is there; a reading that is lower is a new count."""

    rx_bytes: int = 0
    tx_bytes: int = 0
    rx_errors: int = 0
    tx_errors: int = 0
    rx_dropped: int = 0
    tx_dropped: int = 0
    carrier_changes: int = 0


class Links(Protocol):
    async def read(self) -> tuple[Link, ...]: ...
    async def counters(self, interface: str) -> Counters | None:
        """As of now; None when there is no such interface."""

    async def sessions(self) -> tuple[Session, ...]: ...
    async def ssh_ports(self) -> tuple[int, ...]:
        """The TCP ports by which people come in over SSH, sorted; 22 is always one."""


STAGED = ("connection.autoconnect", "not on disk")
"""`Profile.others` of a profile that `stage` wrote."""


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


class Checkpoints(Protocol):
    """NetworkManager's transactions: what a checkpoint does not hear confirmed in time is taken back by NetworkManager
    itself, whatever became of strixd. It covers one device and the profile that is active on it; a profile that is new
    stays stored, and what was done to firewalld or by ip(8) is not undone. NetworkManager forgets its checkpoints when
    it is restarted, and takes nothing back then."""

    async def checkpoint(self, interface: str) -> str:
        """Begins one; Rejected when the device is in one already, whoever's it is."""

    async def checkpoints(self, interface: str) -> tuple[str, ...]:
        """The open ones that cover this interface alone and whose time may be ours."""

    async def extend(self, checkpoint: str) -> None:
        """Its time begins again; Rejected when it is not there any more."""

    async def confirm(self, checkpoint: str) -> None:
        """The change stays, also when NetworkManager has forgotten the checkpoint. Rejected when it ran out before:
        then the change is taken back already."""

    async def roll_back(self, checkpoint: str) -> None:
        """Returns when the device is as it was, or on its way there since 10 s. Nothing happens when it ran out
        before; Rejected when it is forgotten."""


@dataclass(frozen=True, slots=True)
class Way:
    """What shall be proven: packets of `size` bytes (IPv4, header included), in one piece, from the address `source` of
    `interface` to each of `peers` and back. `asked`: when a person last asked; what was seen before is no proof."""

    interface: str
    source: str
    peers: tuple[str, ...]
    size: int
    asked: float = 0.0


@dataclass(frozen=True, slots=True)
class Crossing:
    """What is known of the way to one peer. unproven: it does not answer, or not long enough to judge (`why`, in words
    that follow its name; `at` when it last was known, 0 for never); crosses: last seen `at`; failed: so since `at`:
    small packets came back all the time, and large ones are lost in this `direction` ("there" where in both)."""

    peer: str
    state: Literal["unproven", "crosses", "failed"] = "unproven"
    at: float = 0.0
    direction: Literal["", "there", "back"] = ""
    why: str = "has not been asked yet"


class Crossings(Protocol):
    """ICMP echo over the fabric."""

    async def look(self, way: Way | None) -> tuple[Crossing, ...]:
        """What the watcher knows of this way, peer by peer in their order; it goes on asking about this one from now on
        (None: about none)."""


class Network(Checkpoints, Protocol):
    """NetworkManager."""

    async def profile(self, uuid: str) -> Profile | None: ...
    async def device(self, interface: str) -> Device | None: ...
    async def stage(self, profile: Profile) -> None:
        """Add the profile, or make the one with this uuid be so, in memory only: it is never activated by itself. The
        next boot forgets it, or finds again what `save` wrote earlier."""

    async def unsave(self, profile: Profile) -> None:
        """The same, and nothing of it is on disk any more."""

    async def save(self, profile: Profile) -> None:
        """Add the profile, or make the one with this uuid be exactly so. On disk when this returns."""

    async def delete(self, uuid: str) -> None:
        """Forget the profile, in memory and on disk; nothing happens when there is none."""

    async def activate(self, uuid: str, interface: str) -> None:
        """Returns when the device is activated by it; Rejected with the device's reason when it cannot."""

    async def give_back(self, interface: str, *, ours: str, to: str) -> None:
        """Let the profile `to` have the device again, instead of `ours`. Returns when it is being activated: that may
        take long, or come to nothing, as it would have done before. Where there is no such profile any more, `ours`
        lets the device go, and NetworkManager chooses. Nothing happens when a third one has it, or when none can."""

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


Running = Literal["running", "starting", "stopped", "failed", "masked", "absent"]
"""A service that can be asked, or why it cannot be."""


class Firewall(Protocol):
    """firewalld."""

    async def running(self) -> Running:
        """Whether firewalld can be asked at all; everything below is Unavailable otherwise."""

    async def start(self) -> None:
        """Returns when it can be asked; NotSettled when that does not come."""

    async def zone_of(self, interface: str) -> str:
        """The zone in force now, "" for none."""

    async def permanent_zone_of(self, interface: str) -> str:
        """The zone whose permanent file names this interface, "" for none."""

    async def zone(self, name: str) -> Zone | None:
        """The permanent definition, or None."""

    async def policy(self, name: str) -> Policy | None:
        """The permanent definition, or None."""

    async def define(self, *, zone: Zone | None = None, policy: Policy | None = None, moving: str = "") -> None:
        """Permanent and in force when this returns, together; the same ones defined before are replaced. firewalld
        refuses a policy that has the name of a zone. `moving`: an interface whose zone another is changing now; all
        others stay where they are."""

    async def remove(self, *, zone: str = "", policy: str = "", moving: str = "") -> None:
        """Nothing happens for what is not there. `moving` as above."""

    async def move(self, interface: str, zone: str) -> None:
        """Change the zone in force now; "" takes the interface out of its zone (the default one applies)."""
