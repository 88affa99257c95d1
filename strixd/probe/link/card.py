"""What this host has at an address: the interface, its driver, and the RDMA device with the GID that carries it.

Read from sysfs anew each time, by whole names: devices and indices move.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SYS = Path("/sys")
ROCE = "RoCE v2"
_SIOCGIFCONF = 0x8912  # linux/sockios.h
_IFREQ = 40  # bytes of struct ifreq: a label of 16, then a struct sockaddr_in
_MOST = 1000  # addresses of a host


def interface(address: str) -> str:
    """The one that has this IPv4 address, as its first or as another; "" for none."""
    return next((name for name, one in _addresses() if one == address), "")


def _addresses() -> Iterator[tuple[str, str]]:
    """All IPv4 addresses, each with its interface. A label is the interface's name, or that and a colon and more."""
    room = array.array("B", bytes(_MOST * _IFREQ))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_one:
        told = fcntl.ioctl(any_one, _SIOCGIFCONF, struct.pack("iP", len(room), room.buffer_info()[0]))
    (size, _) = struct.unpack("iP", told)
    for at in range(0, size, _IFREQ):
        label = room[at : at + 16].tobytes().partition(b"\0")[0].decode()
        yield label.partition(":")[0], socket.inet_ntoa(room[at + 20 : at + 24].tobytes())


def driver(name: str, sys: Path = SYS) -> str:
    """ "" for an interface without a device, or for none."""
    with contextlib.suppress(OSError):
        return (sys / "class/net" / name / "device/driver").readlink().name if name else ""
    return ""


def rdma(address: str, name: str, sys: Path = SYS) -> dict[str, Any] | None:
    """{"device", "port", "gid"} of the active port by which RDMA leaves from this address of the interface `name`. Of
    RoCE v2 it is the one with a GID of it; InfiniBand, whose IPoIB is the interface, needs none."""
    wanted, own = ipaddress.ip_address(f"::ffff:{address}"), sys / "class/net" / name
    for port in _active(sys):
        for index in _indices(port, wanted, name):
            return _told(port, index)
    bound = (port for port in _active(sys) if name and (own / "device").resolve() == _device(port))
    return next((_told(port, None) for port in bound if _infiniband(port, own)), None)


def _device(port: Path) -> Path:
    return (port.parent.parent / "device").resolve()


def _told(port: Path, gid: int | None) -> dict[str, Any]:
    return {"device": port.parent.parent.name, "port": int(port.name), "gid": gid}


def _infiniband(port: Path, interface: Path) -> bool:
    """dev_port counts from 0, ports from 1."""
    dev_port = _text(interface / "dev_port") or "-1"
    return _text(port / "link_layer") == "InfiniBand" and int(port.name) == int(dev_port, 0) + 1


def _active(sys: Path) -> list[Path]:
    """Of channel adapters alone: those of iWARP ("4: RNIC") have GIDs, too. Those of hardware come first."""
    ports = [port for port in (sys / "class/infiniband").glob("*/ports/*") if _text(port / "state").endswith("ACTIVE")]
    able = (port for port in ports if _text(port.parent.parent / "node_type").endswith(": CA"))
    return sorted(able, key=lambda port: (not (port.parent.parent / "device").exists(), port))


def _indices(port: Path, wanted: ipaddress.IPv6Address | ipaddress.IPv4Address, name: str) -> Iterator[int]:
    about = port / "gid_attrs"
    for path in sorted((port / "gids").glob("*"), key=lambda path: int(path.name)):
        ours = _text(about / "ndevs" / path.name) in ("", name) and _text(about / "types" / path.name) == ROCE
        with contextlib.suppress(ValueError):
            if ours and ipaddress.ip_address(_text(path)) == wanted:
                yield int(path.name)


def _text(path: Path) -> str:
    """ "" where it cannot be read: an empty place in the table says so by an error."""
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""
