"""Network interfaces as the kernel has them: netlink and sysfs. Only reads.

pyroute2 costs 75 ms and 16 MiB, so it is imported at the first read. Its newer versions cannot be used on a thread
whose event loop runs, and after an error a netlink socket is in doubt: each read is one short trip of a worker thread
with a socket of its own. The kernel answers under one lock (rtnl), which a driver that hangs may hold: no second thread
waits for it. Events need no parsing ("look again" is all they say) and come by a plain netlink socket.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from strixd.errors import Unavailable
from strixd.host.one_thread import OneThread
from strixd.host.recent import Recent
from strixd.host.sessions import own_ports, ssh_ends
from strixd.ports import Counters, Link, Session, Wake

T = TypeVar("T")

RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE = 0x1, 0x10, 0x40
MAIN_TABLE = 254
ATTEMPTS = 3
"""A dump that a change interrupts is an error to pyroute2; the next one is whole."""
FRESH = 0.2
"""Seconds for which a reading counts; a read takes 4 ms of CPU, and a pass needs it four times."""
COUNTED = (
    *(f"statistics/{name}" for name in ("rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped")),
    "carrier_changes",
)
"""The files of an interface's folder, in the order of Counters."""
ANSWER = 5.0
"""Seconds for the kernel to answer; it takes 2 ms."""
HINT = "journalctl -k -n 50: a driver hangs"


class KernelLinks:
    """Implements ports.Links."""

    def __init__(self, sysfs: Path = Path("/sys")) -> None:
        self._sysfs = sysfs
        self._thread = OneThread("the kernel", ANSWER, HINT)
        self._recent = Recent(FRESH)
        self.forget = self._recent.forget

    async def read(self) -> tuple[Link, ...]:
        """Several resources ask within one pass."""
        return await self._recent.read("links", self._found_now)

    async def _found_now(self) -> tuple[Link, ...]:
        return await self._ask(self._read, "read the network links")

    async def counters(self, interface: str) -> Counters | None:
        """From sysfs: the kernel gives these from memory, and so without a thread."""
        try:
            return counters(self._sysfs / "class/net" / interface)
        except (OSError, ValueError) as error:
            raise Unavailable(f"Cannot read the counters of {interface}: {error}") from None

    async def sessions(self) -> tuple[Session, ...]:
        return await self._ask(self._sessions, "read the SSH sessions")

    async def ssh_ports(self) -> tuple[int, ...]:
        return tuple(sorted(own_ports()))

    async def _ask(self, read: Callable[[], T], doing: str) -> T:
        await asyncio.to_thread(_load)
        try:
            return await self._thread.run(read, doing)
        except OSError as error:
            raise Unavailable(f"Cannot {doing}: {error.strerror or error}") from None

    def _sessions(self) -> tuple[Session, ...]:
        """In a worker thread. Raises OSError."""
        ends = ssh_ends()
        if not ends:
            return ()
        from pyroute2 import IPRoute

        with IPRoute() as netlink:
            names = {link["index"]: link.get_attr("IFLA_IFNAME") for link in netlink.get_links()}
            return tuple(Session(peer, own, names.get(_way(netlink, peer), "")) for peer, own in ends)

    def _read(self) -> tuple[Link, ...]:
        """In a worker thread. Raises OSError."""
        from pyroute2 import IPRoute
        from pyroute2.netlink.exceptions import NetlinkDumpInterrupted, NetlinkError

        failure = OSError("no attempt was made")
        for _ in range(ATTEMPTS):
            try:
                with IPRoute() as netlink:
                    return links(_links(netlink), _addresses(netlink), _default_routes(netlink), drivers(self._sysfs))
            except NetlinkDumpInterrupted as error:
                failure = OSError(str(error))
            except NetlinkError as error:
                failure = OSError(error.code, str(error.args[-1]))
        raise failure


def _load() -> None:
    """pyroute2, if it is not loaded yet: on a machine that is busy starting this takes longer than ANSWER."""
    import pyroute2  # noqa: F401


class LinkEvents:
    """The kernel's own word that a link, an address or a route changed. Lost events (ENOBUFS) are an event too."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.setblocking(False)
        self._socket.bind((0, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE))
        asyncio.get_running_loop().add_reader(self._socket, self._drain)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _drain(self) -> None:
        self._wake(drained(self._socket.recv))


def drained(receive: Callable[[int], bytes]) -> str:
    """Takes what has come, many at most (the rest is read in the loop's next turn), and says why to look again: once,
    however much it was."""
    try:
        for _ in range(256):
            receive(65536)
    except BlockingIOError:
        pass
    except OSError:
        return "the kernel's network events overflowed"
    return "a network link changed"


def links(
    found: Iterable[Mapping[str, Any]],
    addresses: Mapping[int, tuple[str, ...]],
    default_routes: frozenset[int],
    drivers: Mapping[str, str],
) -> tuple[Link, ...]:
    """From what the kernel's dumps say, by name; the loopback interface is none of ours."""
    made = (
        Link(
            name=link["name"],
            mac=link["mac"],
            driver=drivers.get(link["name"], ""),
            carrier=link["carrier"],
            mtu=link["mtu"],
            max_mtu=link["max_mtu"],
            addresses=addresses.get(link["index"], ()),
            default_route=link["index"] in default_routes,
        )
        for link in found
        if link["name"] != "lo"
    )
    return tuple(sorted(made, key=lambda link: link.name))


def drivers(sysfs: Path) -> dict[str, str]:
    """Interface to kernel driver ("ice", "thunderbolt-net"); virtual interfaces have none. One may go meanwhile."""
    found: dict[str, str] = {}
    for link in (sysfs / "class/net").glob("*/device/driver"):
        if link.is_symlink():
            found[link.parent.parent.name] = link.resolve().name
    return found


def counters(folder: Path) -> Counters | None:
    """From an interface's folder (ABI/testing/sysfs-class-net and sysfs-class-net-statistics), which may go meanwhile.
    Raises OSError, ValueError."""
    try:
        return Counters(*(int((folder / name).read_text()) for name in COUNTED))
    except FileNotFoundError:
        return None


def _links(netlink: Any) -> list[dict[str, Any]]:
    return [
        {
            "index": message["index"],
            "name": message.get_attr("IFLA_IFNAME"),
            "mac": (message.get_attr("IFLA_ADDRESS") or "").lower(),
            "carrier": bool(message.get_attr("IFLA_CARRIER")),
            "mtu": message.get_attr("IFLA_MTU") or 0,
            "max_mtu": message.get_attr("IFLA_MAX_MTU") or 0,
        }
        for message in netlink.get_links()
    ]


def _addresses(netlink: Any) -> dict[int, tuple[str, ...]]:
    """IPv4, with prefix; of a point-to-point link the own end."""
    found: dict[int, tuple[str, ...]] = {}
    for message in netlink.get_addr(family=socket.AF_INET):
        address = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
        found[message["index"]] = (*found.get(message["index"], ()), f"{address}/{message['prefixlen']}")
    return found


def _way(netlink: Any, peer: str) -> int:
    """Index of the interface by which packets to this address leave, 0 for none."""
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        return int(netlink.route("get", dst=peer)[0].get_attr("RTA_OIF") or 0)
    except NetlinkError:
        return 0


def _default_routes(netlink: Any) -> frozenset[int]:
    """Indexes of the interfaces by which a default route (IPv4 or IPv6) of the main table leaves, all ways of a
    multipath one included."""
    found: set[int] = set()
    for family in (socket.AF_INET, socket.AF_INET6):
        for route in netlink.get_routes(family=family, table=MAIN_TABLE):
            if route["dst_len"] == 0:
                ways = route.get_attr("RTA_MULTIPATH") or ()
                found |= {way["oif"] for way in ways} | {route.get_attr("RTA_OIF") or 0}
    return frozenset(found)
