"""Where the lab keeps everything, and how it names what it makes: by a prefix, so that it can always be found again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PREFIX = os.environ.get("STRIXD_LAB_NAME", "strixd-lab")  # two labs with two names can run side by side
FILES = Path(__file__).parent / "files"
PROJECT = Path(__file__).parent.parent.parent
FABRIC = "enp1s0"  # inside a host: the cable between the hosts
SPARE = "spare0"  # inside a host: a second cable between two hosts, in a lab that has one
MANAGEMENT = "mgmt0"  # inside a host: where an administrator would come in, with the default route
REGISTRY_NAME = "registry.lab"
REGISTRY_ADDRESS = "10.77.0.1"
REGISTRY_PORT = 5000
CABLE_NETNS = f"{PREFIX}-cable"
SPARE_NETNS = f"{PREFIX}-spare"
MANAGEMENT_NETNS = f"{PREFIX}-mgmt"
LOCK = Path(f"/run/{PREFIX}.lock")


def run_folder() -> Path:
    """Everything that belongs to the lab that runs now: disks, sockets, logs. On a disk, not in memory."""
    return Path(os.environ.get("STRIXD_LAB_RUN", f"/var/lib/{PREFIX}"))


def cgroup_mount() -> Path:
    """The machine's cgroup v2 tree: beside the v1 trees on a hybrid machine, else the only one."""
    unified = Path("/sys/fs/cgroup/unified")
    return unified if (unified / "cgroup.procs").exists() else Path("/sys/fs/cgroup")


def cgroup(name: str = "") -> Path:
    return cgroup_mount() / PREFIX / name


@dataclass(frozen=True, slots=True)
class Seat:
    """A host's place in the lab: its name and its number from 1, and what follows from them."""

    name: str
    number: int

    @property
    def folder(self) -> Path:
        return run_folder() / self.name

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def netns(self) -> str:
        return f"{PREFIX}-{self.name}"

    @property
    def cgroup(self) -> Path:
        return cgroup(self.name)

    @property
    def fabric_mac(self) -> str:
        return f"02:fa:b0:00:00:{self.number:02x}"

    @property
    def spare_mac(self) -> str:
        return f"02:5a:4e:00:00:{self.number:02x}"

    @property
    def fabric_address(self) -> str:
        return f"192.168.100.{self.number}"

    @property
    def management_mac(self) -> str:
        return f"02:0a:4d:00:00:{self.number:02x}"

    @property
    def management_address(self) -> str:
        return f"10.77.0.{10 + self.number}"


def seats(names: tuple[str, ...]) -> tuple[Seat, ...]:
    return tuple(Seat(name, number) for number, name in enumerate(names, start=1))
