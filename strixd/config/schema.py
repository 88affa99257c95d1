"""What may be written in cluster.toml: every section, key, type and default, and what follows from one of them.

A key is its field's name with dashes. Only what other modules need in another form than it is written has a property
here; what the host must look like is derived in desired.py.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from strixd.config import checks, machine
from strixd.config.checks import MIB, between, shaped
from strixd.kernelpolicy import PAGE, Policy

FEWEST_NODES, MOST_NODES = 2, 64

Port = Annotated[int, between(1, 65535)]
Size = Annotated[str, checks.size]
Interface = Annotated[str, checks.interface]
ClusterName = Annotated[str, shaped("[a-z0-9-]{1,32}", 'must be 1 to 32 of a-z, 0-9 and "-"')]
Driver = Annotated[str, shaped("[A-Za-z0-9_-]{1,55}", "is not the name of a kernel driver")]


@dataclass(frozen=True, slots=True)
class Cluster:
    name: ClusterName
    ray_port: Port = 6379


@dataclass(frozen=True, slots=True)
class Fabric:
    kind: Literal["auto", "roce", "infiniband", "thunderbolt", "ethernet"] = "auto"
    mtu: Annotated[int, between(1280, 65535)] = 9000  # wanted; kept only when proven to cross
    zone: Literal["trusted", "strixd", "auto"] = "auto"
    firewall: bool = True
    allow_tcp: bool = True
    dscp: Annotated[int, between(0, 63)] = 0
    management: tuple[Interface, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    iommu: Literal["pt", "off", "leave"] = "pt"
    gtt: Size = "124GiB"
    gttsize: bool = True
    pci_realloc: bool = True
    pcie_aspm: Literal["off", "leave"] = "off"
    arguments: tuple[Annotated[str, checks.kernel_argument], ...] = ()
    reboot: Literal["never", "auto"] = "never"

    @property
    def gtt_mib(self) -> int:
        """For amdgpu.gttsize."""
        return checks.size_in_bytes(self.gtt) // MIB

    @property
    def gtt_pages(self) -> int:
        """For ttm.pages_limit."""
        return checks.size_in_bytes(self.gtt) // PAGE

    @property
    def policy(self) -> Policy:
        return Policy(
            iommu=self.iommu,
            gtt_pages=self.gtt_pages,
            gttsize_mib=self.gtt_mib if self.gttsize else 0,
            pci_realloc=self.pci_realloc,
            pcie_aspm=self.pcie_aspm,
            arguments=self.arguments,
            reboot=self.reboot,
        )


@dataclass(frozen=True, slots=True)
class Image:
    reference: Annotated[str, checks.image_reference] = "docker.io/kyuz0/vllm-therock-gfx1151:latest"
    devices: tuple[Annotated[str, checks.absolute_path], ...] = ("/dev/kfd", "/dev/dri", "/dev/infiniband")
    environment: Mapping[Annotated[str, checks.variable], Annotated[str, checks.plain_text]] = field(
        default_factory=dict
    )
    pull: Literal["missing", "newer", "never"] = "missing"


@dataclass(frozen=True, slots=True)
class Model:
    eager: bool = True
    tensor_parallel: Annotated[int, between(0, 4096)] = 0  # 0: Config.tensor_parallel says how many
    port: Port = 8000
    listen: Annotated[str, checks.ip_address] = "127.0.0.1"
    arguments: tuple[Annotated[str, checks.vllm_argument], ...] = ()
    memory_reserve: Size = "8GiB"
    drain: Annotated[int, between(0, 3600)] = 60  # seconds that requests have to end; 0 for a vLLM before 0.18
    folder: Annotated[str, checks.absolute_path] = "/var/lib/strixd/models"

    @property
    def memory_reserve_bytes(self) -> int:
        return checks.size_in_bytes(self.memory_reserve)


@dataclass(frozen=True, slots=True)
class Metrics:
    listen: Annotated[str, checks.socket_address] = ""


@dataclass(frozen=True, slots=True)
class Install:
    """What only an installation by kickstart needs (strixd/media)."""

    ssh_keys: tuple[Annotated[str, machine.ssh_key], ...] = ()  # of root, the one way in
    time_zone: Annotated[str, machine.time_zone] = "Etc/UTC"
    keyboard: Annotated[str, shaped("[a-z]{2,8}(-[a-z0-9]{1,16})?", 'is no keyboard layout such as "us" or "de"')] = (
        "us"
    )
    repository: Annotated[str, machine.repository] = ""  # "": the medium's own packages, else Fedora's mirrors


@dataclass(frozen=True, slots=True)
class Node:
    """One host. Exactly one of interface, mac and driver is not empty and says which card is the fabric's; at most one
    of the spares is, and says which is taken while that one has no carrier. An installation finds the machine by `mac`
    or `serial`, and may erase `disk` alone where that is given."""

    name: Annotated[str, checks.host_name]
    role: Literal["head", "worker"]
    address: Annotated[str, checks.node_address]
    interface: Interface = ""
    mac: Annotated[str, checks.mac] = ""
    driver: Driver = ""
    spare_interface: Interface = ""
    spare_mac: Annotated[str, checks.mac] = ""
    spare_driver: Driver = ""
    gpus: Annotated[int, between(1, 64)] = 1
    serial: Annotated[str, machine.serial] = ""
    disk: Annotated[str, machine.disk] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mac", checks.plain_mac(self.mac))
        object.__setattr__(self, "spare_mac", checks.plain_mac(self.spare_mac))

    @property
    def ip(self) -> ipaddress.IPv4Interface:
        """Address and network in one."""
        return ipaddress.IPv4Interface(self.address)


@dataclass(frozen=True, slots=True)
class Config:
    """The whole file; two that ask for the same are equal."""

    cluster: Cluster
    nodes: tuple[Node, ...] = field(metadata={"key": "node"})
    fabric: Fabric = Fabric()
    kernel: Kernel = Kernel()
    image: Image = Image()
    model: Model = Model()
    metrics: Metrics = Metrics()
    install: Install = Install()

    @property
    def head(self) -> Node:
        return next(node for node in self.nodes if node.role == "head")

    @property
    def tensor_parallel(self) -> int:
        """The effective size: what the file says, else one rank per node."""
        return self.model.tensor_parallel or len(self.nodes)
