"""What the readers bring and the judges get: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from strixd.config import Config, Node
from strixd.fabric import Pick
from strixd.host.crossing import Sight
from strixd.resources.mtu import Record

Door = Literal["open", "refused", "forbidden", "silent"]
"""A TCP connection was made; was reset; was answered with an ICMP error; was not answered."""


@dataclass(frozen=True, slots=True)
class Complaints:
    """About cluster.toml, as FILE:LINE: KEY: what is wrong; none when it can be used. `hint`: what mends it, if not an
    editor."""

    lines: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Own:
    """cluster.toml, and which node of it this host is."""

    config: Config
    node: Node

    @property
    def peers(self) -> tuple[Node, ...]:
        return tuple(node for node in self.config.nodes if node != self.node)


@dataclass(frozen=True, slots=True)
class Daemon:
    """`status`: as the method Status gives it, None when nobody answers, and `why` that is."""

    status: Mapping[str, Any] | None
    why: str = ""
    hint: str = ""

    def resource(self, name: str) -> Mapping[str, Any] | None:
        every: list[Mapping[str, Any]] = self.status["resources"] if self.status else []
        return next((each for each in every if each["name"] == name), None)


@dataclass(frozen=True, slots=True)
class Packages:
    """Version by name, of those that are installed."""

    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Graphics:
    """AMD GPUs: `pci`: the addresses of those on the bus; `kfd`: whether /dev/kfd is there; `targets`: what ROCm calls
    them ("gfx1151"); `mes`: the version of the scheduler's firmware, 0 when the kernel does not say."""

    pci: tuple[str, ...] = ()
    kfd: bool = False
    targets: tuple[str, ...] = ()
    mes: int = 0


@dataclass(frozen=True, slots=True)
class Option:
    """A parameter of a module as something sets it: `place` is a file with its line, or the kernel command line."""

    place: str
    module: str
    parameter: str
    value: str


@dataclass(frozen=True, slots=True)
class Modules:
    """What is said to kernel modules. `options` in the order of the places; `barred`: (place, module) of those that are
    not to be loaded; `effective`: module.parameter → value of those that are loaded; `ignored`: the kernel's own words
    about parameters that it does not know."""

    options: tuple[Option, ...] = ()
    barred: tuple[tuple[str, str], ...] = ()
    effective: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cables:
    """The fabric's two links, whichever is in force; `spare` None where cluster.toml names none."""

    first: Pick
    spare: Pick | None = None


@dataclass(frozen=True, slots=True)
class Lowered:
    """`record`: for which failure strixd has taken the MTU down, None for none."""

    record: Record | None


@dataclass(frozen=True, slots=True)
class Crossed:
    """Unfragmented packets of `size` bytes, headers included: what came of them, by the peer's name."""

    size: int
    seen: Mapping[str, Sight]


@dataclass(frozen=True, slots=True)
class Doors:
    """What came of a TCP connection from here: (name of the peer, port, outcome)."""

    tried: tuple[tuple[str, int, Door], ...]


@dataclass(frozen=True, slots=True)
class Clocks:
    """`off`: seconds by which the peer's clock is ahead of ours, None when it does not say."""

    off: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Inside:
    """As seen in the Ray container. `memlock`: KiB, None for unlimited; `devices`: path → "" when it could be opened,
    else the system's words; `shm`, `shm_free`: bytes of /dev/shm."""

    memlock: int | None
    devices: Mapping[str, str]
    shm: int
    shm_free: int


@dataclass(frozen=True, slots=True)
class Denials:
    """Of SELinux about containers in this boot. `enforcing`: None where the kernel has no SELinux."""

    enforcing: bool | None
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Library:
    """A collective library that a rank has loaded. `targets`: those GPU targets of this host that its bytes name;
    `transport`: whether they name the RDMA transport; `compressed`: whether GPU code in it may be, names and all."""

    path: str
    targets: tuple[str, ...]
    transport: bool
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class Libraries:
    """`ranks`: how many processes of a model were looked into; `loaded`: what they have loaded, each file once."""

    ranks: int
    loaded: tuple[Library, ...] = ()


@dataclass(frozen=True, slots=True)
class Digest:
    """Of the image that this node runs, "" while none is known."""

    own: str


@dataclass(frozen=True, slots=True)
class Rooms:
    """Folder → bytes that are free on its file system."""

    free: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Completion:
    """One that was asked for now. `model`: the ordered one, "" for none; `trouble`: why none came, "" when one did."""

    model: str
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Sleeping:
    """What may send this host to sleep. `open`: systemd's sleep targets that are not masked; `idle`, `lid`: logind's
    actions; `has_lid`; `desktop`: the host starts with a graphical session."""

    open: tuple[str, ...]
    idle: str = "ignore"
    lid: str = "suspend"
    has_lid: bool = False
    desktop: bool = False


# What an installation leaves


@dataclass(frozen=True, slots=True)
class System:
    """As /etc/os-release calls itself: ID and VERSION_ID."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Policy:
    """SELinux's. `enforcing`: None where the kernel has none; `modules`: those that are installed."""

    enforcing: bool | None
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Labels:
    """`wrong`: what restorecon would change, in its own words."""

    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Altered:
    """`files`: what differs from the packages, as rpm --verify tells it; also a package that is not installed."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Enabled:
    """Unit → what systemctl is-enabled says of it."""

    states: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BootTool:
    """`entries`: kernel → its arguments, as grubby tells them, but for rescue kernels."""

    entries: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FirstBoot:
    """After an installation by kickstart. `waiting`: it was not ready yet, and for what, "" where that is not told;
    None when it was, or there was no such installation. `image`: the one of the medium still lies there."""

    waiting: str | None
    image: bool = False


@dataclass(frozen=True, slots=True)
class Leavings:
    """Of the installer. `read`: how many of its files were looked into; `secret`: those with a key or token in them."""

    read: int
    secret: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Zone:
    """The time zone, as /etc/localtime names it."""

    name: str


@dataclass(frozen=True, slots=True)
class Authorized:
    """The lines of root's authorized_keys."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """`link`: how often the link was measured from here; `at`: the last time, in seconds since 1970."""

    link: int
    at: float = 0.0
