"""What strixd needs of the world, and the value types it speaks. No adapter and no policy lives here.

Two adapters provide every port: host/ (the real one) and sim/ (one in-memory node). Every method may raise
Unavailable (the service is not there) or Rejected (it said no), and no other StrixdError. Every method that waits for
a foreign service has a timeout of its own. Times are seconds since the epoch unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Wake = Callable[[str], None]
"""Says "look again", with the reason in a few words. May be called at any rate; it only sets a flag."""


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
    what else in it is not as `define_zone` would have it ("services", "not in force")."""

    name: str
    description: str = ""
    target: str = "default"
    rules: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class Firewall(Protocol):
    """firewalld."""

    async def zone_of(self, interface: str) -> str:
        """The zone in force now, "" for none."""

    async def permanent_zone_of(self, interface: str) -> str:
        """The zone whose permanent file names this interface, "" for none."""

    async def zone(self, name: str) -> Zone | None:
        """The permanent definition, or None."""

    async def define_zone(self, zone: Zone) -> None:
        """Permanent and in force when this returns; the same zone defined before is replaced."""

    async def remove_zone(self, name: str) -> None: ...
    async def move(self, interface: str, zone: str) -> None:
        """Change the zone in force now; "" takes the interface out of its zone (the default one applies)."""


KERNEL_CMDLINE = "/etc/kernel/cmdline"
DEFAULT_GRUB = "/etc/default/grub"
"""What kernels that are installed later copy, and what grub2-mkconfig writes into every entry (GRUB_CMDLINE_LINUX)."""


@dataclass(frozen=True, slots=True)
class BootEntry:
    """A boot loader entry: `options` is its kernel command line, as written."""

    name: str
    options: str
    rescue: bool = False


@dataclass(frozen=True, slots=True)
class Boot:
    """Where kernel arguments are written, and what runs. `tool` is "" where nothing here can change them."""

    tool: str
    running: str
    entries: tuple[BootEntry, ...] = ()
    kernel_cmdline: str | None = None  # KERNEL_CMDLINE; None: no such file
    default_grub: str | None = None  # GRUB_CMDLINE_LINUX in DEFAULT_GRUB; None: no such file


class BootLoader(Protocol):
    """grubby and the files it edits."""

    async def read(self) -> Boot: ...
    async def change(self, options: Mapping[str, str]) -> None:
        """Make the command line at each of these places read exactly so, byte for byte, and leave all else as it is.
        A place is the name of a boot entry, KERNEL_CMDLINE or DEFAULT_GRUB; one that is gone meanwhile is passed over.
        Blanks around a line are no part of it. On disk when this returns."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A systemd unit as its manager has it. `stale`: its file has changed since the manager read it. `since`: when it
    entered this state. `invocation` is "" when it never ran. `status` is the main process's exit status (or signal
    number when `result` is "signal")."""

    name: str
    loaded: bool = False
    active: Literal["active", "activating", "inactive", "failed", "deactivating", "reloading"] = "inactive"
    result: str = ""
    status: int = 0
    invocation: str = ""
    since: float = 0.0
    stale: bool = False


class Units(Protocol):
    """systemd's manager."""

    async def read(self, name: str) -> Unit: ...
    async def start(self, name: str) -> None:
        """Queues the job and returns; what comes of it is read from the unit."""

    async def stop(self, name: str) -> None:
        """Returns when the unit is inactive or failed and no process of it is left."""

    async def reload(self) -> None:
        """daemon-reload: generators run again, unit files are read again."""


class Files(Protocol):
    """Small files and folders of strixd's own."""

    async def read(self, path: str) -> str | None:
        """None when there is no such file."""

    async def write(self, path: str, text: str, *, mode: int = 0o644) -> None:
        """Whole or not at all, with fsync of file and folder; missing folders are made (0755)."""

    async def remove(self, path: str) -> None: ...
    async def present(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the paths that exist, in their order."""


@dataclass(frozen=True, slots=True)
class Member:
    """A node as Ray lists it. `record`: what its strixd says of itself, last renewed `age` seconds ago (every 5 s). A
    killed node and its successor can both be alive in Ray's eyes for 15 s."""

    name: str
    address: str
    alive: bool
    gpus: int = 0
    record: Mapping[str, str] = field(default_factory=dict)
    age: float = 0.0


@dataclass(frozen=True, slots=True)
class RayReport:
    """What the probe in the Ray container last said. `session` is the cluster's, `own_session` this node's
    raylet's: when they differ, this node belongs to a cluster that is gone. `error` is why Ray did not answer."""

    at: float
    session: str = ""
    own_session: str = ""
    version: str = ""  # Ray's
    members: tuple[Member, ...] = ()
    error: str = ""


class Ray(Protocol):
    """The cluster, by way of the probe."""

    async def report(self) -> RayReport | None:
        """The newest report of the running probe; None when no probe is connected."""

    async def publish(self, record: Mapping[str, str]) -> None:
        """What this node's probe keeps in Ray's key-value store about this node from now on, this one and later."""

    async def published(self) -> Mapping[str, str]:
        """What was last given to publish; empty after a start of the daemon."""


@dataclass(frozen=True, slots=True)
class Served:
    """Whom to ask for a completion: the API of one run (`invocation`) of the model unit."""

    url: str  # "http://127.0.0.1:8000"
    model: str
    invocation: str
    api_key_file: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The last looks at a served model. `at`: when a completion last came out, 0 for never in this run;
    `seconds`: how long that took; `failed_at` and `error`: the last look that brought none, if later."""

    at: float = 0.0
    seconds: float = 0.0
    failed_at: float = 0.0
    error: str = ""


class Model(Protocol):
    """vLLM's HTTP API."""

    async def look(self, served: Served | None) -> Answer:
        """What the watcher knows of this run; it goes on asking this one from now on (None: nobody)."""


class Journal(Protocol):
    """journald, reading."""

    async def last(self, unit: str, invocation: str, count: int) -> tuple[str, ...]:
        """The last lines of one run of a unit, oldest first."""


class Hub(Protocol):
    """The site that models come from (Hugging Face, or what HF_ENDPOINT names)."""

    async def refusal(self, model: str) -> str:
        """Why this node may not fetch the model (gated, no such model), in a sentence with the page to open; "" when
        it may, and when the hub cannot be reached, which proves nothing. Remembered for a few minutes."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this host is. `boot` is the kernel's boot id."""

    hostname: str
    boot: str
    macs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """All ports of one node. `now`: seconds since the epoch; `sleep` waits (the simulation has its own time); `watch`
    runs for ever: it subscribes to everything that can change by itself, and says so."""

    identity: Identity
    links: Links
    network: Network
    firewall: Firewall
    boot: BootLoader
    units: Units
    files: Files
    ray: Ray
    model: Model
    journal: Journal
    hub: Hub
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    watch: Callable[[Wake], Coroutine[Any, Any, None]]
