"""What of a host is not a file: links as netlink tells them, peers, strixd's socket, the model's API, room on disks.

All of it is asked as it is, by one question of bounded time each. Tests lay it out, as they lay out files.
"""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
import os
import socket
import struct
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from strixd.cli import client
from strixd.doctor.facts import Door
from strixd.errors import Unavailable
from strixd.host.crossing import Sight, sighted
from strixd.host.firmware import Versions
from strixd.host.link import KernelLinks
from strixd.ports import Firmware, Link, Way

ANSWER = 1.0
"""Seconds for a peer on the same link; it takes less than a millisecond."""
STRIXD = 3.0
COMPLETION = 6.0
"""Seconds for one token; a server that is busy may take longer, and then strixd's own knowledge counts."""
_DAY = 86_400_000
_TIMESTAMP, _TIMESTAMP_REPLY = 13, 14
_FORBIDDEN = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM)


class Surroundings(Protocol):
    def links(self) -> tuple[Link, ...]: ...
    def sight(self, way: Way, peer: str) -> Sight: ...
    def knock(self, address: str, port: int) -> Door: ...
    def clock(self, address: str) -> float | None:
        """Seconds by which the clock there is ahead; None when it does not tell. Raises OSError."""

    def status(self) -> Mapping[str, Any]:
        """Raises StrixdError."""

    def complete(self, url: str, model: str, key: str) -> str:
        """Why no completion came, "" when one did."""

    def free(self, folder: Path) -> int:
        """Bytes. Raises OSError."""

    async def firmware(self, interface: str, driver: str, address: str) -> Firmware:
        """Of a network card; `address`: of the PCI device, "" for none."""


class Real:
    """`path`: strixd's socket."""

    def __init__(self, path: str) -> None:
        self._path = path

    def links(self) -> tuple[Link, ...]:
        return asyncio.run(KernelLinks().read())

    def sight(self, way: Way, peer: str) -> Sight:
        return asyncio.run(sighted(way, peer, ANSWER))

    def knock(self, address: str, port: int) -> Door:
        return knock(address, port)

    def clock(self, address: str) -> float | None:
        return clock(address)

    def status(self) -> Mapping[str, Any]:
        status = client.call(self._path, "Status", patience=STRIXD)["status"]
        if not isinstance(status, dict):
            raise Unavailable(f"Cannot read the status: what listens at {self._path} is not strixd")
        return status

    def complete(self, url: str, model: str, key: str) -> str:
        return complete(url, model, key)

    def free(self, folder: Path) -> int:
        room = os.statvfs(folder)
        return room.f_bavail * room.f_frsize

    async def firmware(self, interface: str, driver: str, address: str) -> Firmware:
        return await Versions().of(interface, driver, address)


def knock(address: str, port: int) -> Door:
    """Whatever answers there is hung up on at once."""
    try:
        with socket.create_connection((address, port), ANSWER):
            return "open"
    except ConnectionRefusedError:
        return "refused"
    except OSError as error:  # a timeout has no number
        return "forbidden" if error.errno in _FORBIDDEN else "silent"


def clock(address: str) -> float | None:
    """By ICMP timestamp (RFC 792), which needs root. Milliseconds since midnight UTC, so a whole day is not seen."""
    number = os.getpid() & 0xFFFF
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.settimeout(ANSWER)
        raw.connect((address, 0))
        sent = _now()
        raw.send(_summed(struct.pack("!BBHHHIII", _TIMESTAMP, 0, 0, number, 1, sent, 0, 0)))
        end = time.monotonic() + ANSWER
        while time.monotonic() < end:
            try:
                told = read_timestamp(raw.recv(1024), number)
            except (TimeoutError, ConnectionError):
                return None
            if told is not None:
                middle = (sent + _now()) / 2
                return ((told - middle + _DAY / 2) % _DAY - _DAY / 2) / 1000
    return None


def read_timestamp(packet: bytes, number: int) -> int | None:
    """What the reply to ours says (with its IP header), None when it is another packet. The highest bit means another
    unit than milliseconds since midnight."""
    icmp = packet[(packet[0] & 15) * 4 :] if packet else b""
    if len(icmp) < 20:
        return None
    kind, _, _, whose, _, _, received, _ = struct.unpack("!BBHHHIII", icmp[:20])
    return received if kind == _TIMESTAMP_REPLY and whose == number and not received >> 31 else None


def _now() -> int:
    return int(time.time() * 1000) % _DAY


def _summed(packet: bytes) -> bytes:
    """With the Internet checksum (RFC 1071) in its place."""
    total = sum(struct.unpack(f"!{len(packet) // 2}H", packet))
    total = (total & 0xFFFF) + (total >> 16)
    total += total >> 16
    return packet[:2] + struct.pack("!H", ~total & 0xFFFF) + packet[4:]


def complete(url: str, model: str, key: str) -> str:
    body = json.dumps({"model": model, "prompt": "1", "max_tokens": 1}).encode()
    head = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(urllib.request.Request(f"{url}/v1/completions", body, head), timeout=COMPLETION) as reply:
            return "" if json.load(reply).get("choices") else "an answer without a completion"
    except TimeoutError:
        return f"no completion within {COMPLETION:g} s"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return str(error)
