"""A network card and its RDMA ports: what the hardware of a link really is and does. What could not be read is None, 0
or "": that is unknown, and never taken for well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Transport = Literal["RoCE", "iWARP", "InfiniBand", ""]


@dataclass(frozen=True, slots=True)
class Gid:
    """An entry of a port's table that is in use. `kind`: "RoCE v2" or "IB/RoCE v1", as the kernel spells it; `ip`: the
    IPv4 address that it carries, or ""; `interface`: the link that it belongs to."""

    index: int
    kind: str = ""
    ip: str = ""
    interface: str = ""


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """A port of an RDMA device. `state` and `physical` in the kernel's words ("ACTIVE", "LinkUp", "Polling"); `layer`:
    "Ethernet" or "InfiniBand"; `rate` in Gb/s; `mtu`: the RDMA payload in bytes that the link's own MTU allows."""

    device: str
    number: int
    transport: Transport = ""
    state: str = ""
    physical: str = ""
    layer: str = ""
    rate: float = 0.0
    mtu: int = 0
    gids: tuple[Gid, ...] = ()
    firmware: str = ""

    def __str__(self) -> str:
        return f"{self.device} port {self.number}"


@dataclass(frozen=True, slots=True)
class Pci:
    """A card's place. `speed` in GT/s and `width` in lanes: as negotiated, and the most that the card can."""

    address: str
    speed: float = 0.0
    width: int = 0
    max_speed: float = 0.0
    max_width: int = 0


@dataclass(frozen=True, slots=True)
class Firmware:
    """What the card's driver says of what it runs. `package` of an E810: its DDP package; `safe_mode`: it has none, and
    so no RDMA."""

    version: str = ""
    package: str = ""
    safe_mode: bool | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """The hardware of one network interface. `speed` in Gb/s, of Thunderbolt that of both lanes together; `changes`:
    how often the carrier came or went since the interface is there; `lost`: how often it went, or an RDMA port under
    it, within the last WINDOW seconds, as far back as anybody looked; `ports`: those of RDMA devices that are bound to
    this very interface; `since`: from when on all that decides has been as it is now, in seconds since the epoch."""

    interface: str
    driver: str = ""
    carrier: bool | None = None
    speed: float = 0.0
    mtu: int = 0
    changes: int | None = None
    lost: int = 0
    pci: Pci | None = None
    thunderbolt: bool = False
    ports: tuple[RdmaPort, ...] = ()
    firmware: Firmware = Firmware()
    since: float = 0.0


WINDOW = 600.0
"""Seconds over which losses of the carrier are counted."""


class RdmaCm(Protocol):
    """configfs of the kernel's rdma_cm: what it gives connections whose program asks for nothing else."""

    async def tos(self, device: str, number: int) -> int:
        """The type of service in the IP header of RoCE v2 over this port; 0 where nobody has asked for any.
        Unavailable, with what to do about it, when configfs or rdma_cm is not there or does not answer."""

    async def set_tos(self, device: str, number: int, tos: int) -> None:
        """For connections from now on, until the device goes; 0 as if nobody had asked."""


class Hardware(Protocol):
    """sysfs, and what drivers tell by ethtool and devlink."""

    async def card(self, interface: str) -> Card | None:
        """As of now; None when there is no such interface. Unavailable when the kernel does not answer in time."""
