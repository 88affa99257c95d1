"""Who listens on a TCP port, asked of the kernel by netlink (sock_diag(7)). Only reads.

The owner of a socket is not to be had: /proc/PID/fd of a process with more rights than the daemon is closed to it.
But the kernel tells in which control group the socket was made (since 5.9), and that is systemd's unit.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from strixd.host import cgroup
from strixd.ports import Holder

log = logging.getLogger(__name__)

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
REQUEST_DUMP = 0x301
NLMSG_ERROR, NLMSG_DONE = 2, 3
LISTEN = 1 << 10  # of the states of TCP
SKV6ONLY, CGROUP_ID = 11, 21  # attributes, linux/inet_diag.h
HEADER, FIXED = 16, 72  # bytes: struct nlmsghdr, struct inet_diag_msg
ANSWER = 2.0
"""Seconds for the kernel to answer; it takes 1 ms."""


@dataclass(frozen=True, slots=True)
class Socket:
    """`group`: the number of its control group, which is the inode of its folder; 0 when the kernel does not say."""

    address: str
    port: int
    v6only: bool
    group: int


class KernelListeners:
    """Implements ports.Listeners."""

    async def on(self, port: int) -> tuple[Holder, ...]:
        try:
            return await asyncio.wait_for(asyncio.to_thread(holders, port), 2 * ANSWER)
        except OSError as error:
            log.debug("Cannot see who listens on port %d: %s", port, error)
            return ()


def holders(port: int) -> tuple[Holder, ...]:
    """Raises OSError."""
    found = [each for family in (socket.AF_INET, socket.AF_INET6) for each in _ask(family, port) if each.port == port]
    return tuple(_holder(each, cgroup.group(each.group)) for each in found)


def _holder(found: Socket, group: str) -> Holder:
    processes = cgroup.processes(group) if cgroup.unit(group) else ()
    return Holder(found.address, found.v6only, cgroup.unit(group), processes)


def _ask(family: int, port: int) -> Iterator[Socket]:
    query = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, LISTEN) + struct.pack(">H", port) + bytes(46)
    header = struct.pack("=IHHII", HEADER + len(query), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(ANSWER)
        netlink.send(header + query)
        while True:
            for kind, body in messages(netlink.recv(65536)):
                if kind == NLMSG_DONE:
                    return
                yield read_socket(body)


def messages(packet: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, body). Raises OSError with what the kernel refused."""
    while packet:
        length, kind = struct.unpack_from("=IH", packet)
        body, packet = packet[HEADER:length], packet[_aligned(length) :]
        if kind == NLMSG_ERROR:
            number = -struct.unpack_from("=i", body)[0]
            raise OSError(number, os.strerror(number))
        yield kind, body


def read_socket(body: bytes) -> Socket:
    """From struct inet_diag_msg and its attributes."""
    size = 4 if body[0] == socket.AF_INET else 16
    address = ipaddress.ip_address(body[8 : 8 + size])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    told = dict(_attributes(body[FIXED:]))
    group = int.from_bytes(told.get(CGROUP_ID, b""), sys.byteorder)
    return Socket(str(address), int.from_bytes(body[4:6], "big"), any(told.get(SKV6ONLY, b"")), group)


def _attributes(rest: bytes) -> Iterator[tuple[int, bytes]]:
    while len(rest) >= 4:
        length, kind = struct.unpack_from("=HH", rest)
        yield kind, rest[4:length]
        rest = rest[max(_aligned(length), 4) :]


def _aligned(length: int) -> int:
    return (length + 3) & ~3
