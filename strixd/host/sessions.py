"""Who is logged in over SSH, read from the kernel's table of TCP connections. Pure, but for the reading.

The owner of a socket would take more rights than the daemon has, so a session is a connection to a port of sshd's.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path

ESTABLISHED = "01"
_PORT = re.compile(
    r"^[ \t]*(?:Port[ \t=]+|ListenAddress[ \t=]+(?:\[\S*\]|[^\s:]*):)\"?(\d{1,5})\b", re.MULTILINE | re.IGNORECASE
)


def ssh_ends(root: Path = Path("/")) -> tuple[tuple[str, str], ...]:
    """(peer, own address) of every established IPv4 connection to sshd, once each."""
    ports = own_ports(root)
    tables = [_text(root / "proc/net/tcp"), _text(root / "proc/net/tcp6")]
    return tuple(dict.fromkeys(end for table in tables for end in ends(table, ports)))


def own_ports(root: Path = Path("/")) -> frozenset[int]:
    """On which sshd of this host listens, as far as its files tell."""
    return ssh_ports([_text(file) for file in (root / "etc/ssh").glob("sshd_config*")] + _drop_ins(root))


def ssh_ports(settings: list[str]) -> frozenset[int]:
    """What `Port` and `ListenAddress` say in sshd's files, and 22, which is the default."""
    return frozenset({22, *(int(found) for text in settings for found in _PORT.findall(text))})


def ends(table: str, ports: frozenset[int]) -> Iterator[tuple[str, str]]:
    """From /proc/net/tcp or tcp6; IPv6 connections other than those that carry IPv4 are passed over."""
    for line in table.splitlines()[1:]:
        words = line.split()
        if len(words) < 4 or words[3] != ESTABLISHED:
            continue
        (own, port), (peer, _) = _end(words[1]), _end(words[2])
        if own and peer and port in ports:
            yield peer, own


def _end(text: str) -> tuple[str, int]:
    """Each group of four bytes is in the order of this machine; "" for an address that is not IPv4."""
    number, _, port = text.partition(":")
    groups = [bytes.fromhex(number[at : at + 8])[::-1] for at in range(0, len(number), 8)]
    if len(groups) == 4 and b"".join(groups[:3]) != b"\0" * 10 + b"\xff\xff":
        return "", 0
    return str(ipaddress.IPv4Address(groups[-1])), int(port, 16)


def _drop_ins(root: Path) -> list[str]:
    return [_text(file) for file in (root / "etc/ssh/sshd_config.d").glob("*.conf")]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
