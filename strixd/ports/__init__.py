"""What strixd needs of the world, and the value types it speaks. No adapter and no policy lives here.

Two adapters provide every port: host/ (the real one) and sim/ (one in-memory node). Every method may raise
Unavailable (the service is not there) or Rejected (it said no), and no other StrixdError. Every method that waits for
a foreign service has a timeout of its own. Times are seconds since the epoch unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from strixd.ports.boot import DEFAULT_GRUB, KERNEL_CMDLINE, Boot, BootEntry, BootLoader, Effects, Gpu, Kernel, Power
from strixd.ports.hardware import Card, Firmware, Gid, Hardware, Pci, RdmaCm, RdmaPort
from strixd.ports.network import (
    STAGED,
    Counters,
    Crossing,
    Crossings,
    Device,
    Firewall,
    Link,
    Links,
    Network,
    Policy,
    Profile,
    Running,
    Session,
    Way,
    Zone,
)
from strixd.ports.serving import Answer, Holder, Hub, Listeners, Member, Model, Progress, Ray, RayReport, Served, Work
from strixd.ports.units import NO_BOUND, Bound, Files, Journal, Unit, Units

__all__ = [
    "DEFAULT_GRUB",
    "KERNEL_CMDLINE",
    "NO_BOUND",
    "STAGED",
    "Answer",
    "Boot",
    "BootEntry",
    "BootLoader",
    "Bound",
    "Card",
    "Counters",
    "Crossing",
    "Crossings",
    "Device",
    "Effects",
    "Files",
    "Firewall",
    "Firmware",
    "Gid",
    "Gpu",
    "Hardware",
    "Holder",
    "Host",
    "Hub",
    "Identity",
    "Journal",
    "Kernel",
    "Link",
    "Links",
    "Listeners",
    "Member",
    "Model",
    "Network",
    "Pci",
    "Policy",
    "Power",
    "Profile",
    "Progress",
    "Ray",
    "RayReport",
    "RdmaCm",
    "RdmaPort",
    "Running",
    "Served",
    "Session",
    "Unit",
    "Units",
    "Wake",
    "Way",
    "Work",
    "Zone",
]

Wake = Callable[[str], None]
"""Says "look again", with the reason in a few words. May be called at any rate; it only sets a flag."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this host is. `boot` is the kernel's boot id."""

    hostname: str
    boot: str
    macs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """All ports of one node. `now`: seconds since the epoch, by a clock that may be set; `steady`: seconds by one that
    nobody sets, the same for all that ask in this boot; `sleep` waits (the simulation has its own time); `watch` runs
    for ever: it subscribes to everything that can change by itself, and says so."""

    identity: Identity
    links: Links
    hardware: Hardware
    rdma_cm: RdmaCm
    crossings: Crossings
    network: Network
    firewall: Firewall
    boot: BootLoader
    kernel: Kernel
    power: Power
    units: Units
    files: Files
    ray: Ray
    model: Model
    work: Work
    journal: Journal
    hub: Hub
    listeners: Listeners
    now: Callable[[], float]
    steady: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    watch: Callable[[Wake], Coroutine[Any, Any, None]]
