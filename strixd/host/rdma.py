"""RDMA ports in sysfs, and which network interface each belongs to. Only reads; a file that is not there is unknown.

By exact names alone: `usb4_rdma` is not `usb4_rdma0`. A port of RoCE names its interface in its table of GIDs
(gid_attrs/ndevs); where none is named yet, and for InfiniBand, it is the interface of the same device, and of its
ports the one that the interface's dev_port counts (ABI/stable/sysfs-class-infiniband, ABI/testing/sysfs-class-net).
`node_type` tells iWARP ("4: RNIC") from the rest ("1: CA"): what a card's table of GIDs says of its kind does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path

from strixd.ports.hardware import Gid, RdmaPort, Transport

UNUSED = ("", "0000:0000:0000:0000:0000:0000:0000:0000")
MTUS = (4096, 2048, 1024, 512, 256)
HEADERS = 96
"""Bytes around the payload of a RoCE packet, at most (iboe_get_mtu of include/rdma/ib_addr.h)."""
INFINIBAND = "class/infiniband"


def text(path: Path) -> str:
    """A file's only line, "" when it is not there, empty, or the kernel refuses (an entry that is not in use)."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def number(path: Path) -> int | None:
    try:
        return int(text(path))
    except ValueError:
        return None


def ports(sys: Path, interface: str) -> tuple[RdmaPort, ...]:
    """Those bound to this interface; those of hardware first, then by name."""
    devices = sorted(_listed(sys / INFINIBAND), key=lambda each: (not (each / "device").exists(), each.name))
    found = (_port(sys, device, folder, interface) for device in devices for folder in _numbered(device / "ports"))
    return tuple(port for port in found if port)


def states(sys: Path) -> tuple[str, ...]:
    """What all ports are doing, quickly read: when it differs, something has happened of which nobody tells."""
    folders = (folder for device in _listed(sys / INFINIBAND) for folder in _numbered(device / "ports"))
    return tuple(f"{folder} {text(folder / 'state')} {text(folder / 'phys_state')}" for folder in folders)


def _port(sys: Path, device: Path, folder: Path, interface: str) -> RdmaPort | None:
    gids = tuple(_gids(folder))
    named = {gid.interface for gid in gids if gid.interface}
    if interface not in named and (named or not _of_one_device(sys, device, folder, interface)):
        return None
    layer, link = text(folder / "link_layer"), sys / "class/net" / interface
    return RdmaPort(
        device.name,
        int(folder.name),
        transport=_transport(text(device / "node_type"), layer),
        state=text(folder / "state").partition(": ")[2],
        physical=text(folder / "phys_state").partition(": ")[2],
        layer=layer,
        rate=leading(text(folder / "rate")),
        mtu=payload(number(link / "mtu") or 0) if layer == "Ethernet" else 0,
        gids=gids,
        firmware=text(device / "fw_ver"),
    )


def payload(mtu: int) -> int:
    """The RDMA MTU that a link's own allows, 0 for none: the kernel takes the largest that fits."""
    return next((each for each in MTUS if each + HEADERS <= mtu), 0)


def _transport(kind: str, layer: str) -> Transport:
    if kind.endswith("RNIC"):
        return "iWARP"
    if not kind.endswith("CA"):
        return ""
    return "RoCE" if layer == "Ethernet" else "InfiniBand" if layer == "InfiniBand" else ""


def _of_one_device(sys: Path, device: Path, folder: Path, interface: str) -> bool:
    """The port and the interface are of the same device; of several ports the one that the interface counts itself."""
    if not (device / "device/net" / interface).exists():
        return False
    place = number(sys / "class/net" / interface / "dev_port")
    return len(_numbered(device / "ports")) == 1 or folder.name == str((place or 0) + 1)


def _gids(folder: Path) -> Iterator[Gid]:
    """Entries that are in use: there are holes."""
    for entry in _numbered(folder / "gids"):
        address = text(entry)
        if address not in UNUSED:
            attributes = folder / "gid_attrs"
            kind, interface = text(attributes / "types" / entry.name), text(attributes / "ndevs" / entry.name)
            yield Gid(int(entry.name), kind, _ipv4(address), interface)


def _ipv4(address: str) -> str:
    """::ffff:a.b.c.d → a.b.c.d"""
    try:
        return str(IPv6Address(address).ipv4_mapped or "")
    except ValueError:
        return ""


def leading(words: str) -> float:
    """ "100 Gb/sec (4X EDR)" → 100.0"""
    try:
        return float(words.split(" ")[0])
    except ValueError:
        return 0.0


def _listed(folder: Path) -> list[Path]:
    """One may go meanwhile, with all that is in it."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _numbered(folder: Path) -> list[Path]:
    return sorted((each for each in _listed(folder) if each.name.isdecimal()), key=lambda each: int(each.name))
