"""Who is at the other end of the socket, and what they may ask. Which method needs what stands in commands.py.

The kernel noted the peer's user and groups when it connected: what a process drops or gains later does not count.
"""

from __future__ import annotations

import errno
import grp
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from strixd.errors import NotPermitted

Need = Literal["open", "look", "change"]
CHANGERS: Final = "strixd"
OBSERVERS: Final = "strixd-observe"
_SO_PEERGROUPS: Final = 59  # Linux, x86 and ARM; Python's socket module has no name for it
_CREDENTIALS: Final = struct.Struct("iII")  # struct ucred: pid, uid, gid
_GID: Final = struct.calcsize("I")
_LONGEST_OPTION: Final = 1024  # bytes; socket.getsockopt refuses to ask for more


@dataclass(frozen=True, slots=True)
class Peer:
    """`groups` has the primary group and all supplementary ones."""

    uid: int
    groups: frozenset[int]


def peer_of(connection: socket.socket) -> Peer:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, gid = _CREDENTIALS.unpack(raw)
    return Peer(uid, frozenset({gid, *_groups(connection)}))


def _groups(connection: socket.socket) -> tuple[int, ...]:
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _LONGEST_OPTION)
    except OSError as error:
        if error.errno != errno.ERANGE:
            raise
        raw = _long_option(connection)
    return struct.unpack(f"{len(raw) // _GID}I", raw)


def _long_option(connection: socket.socket) -> bytes:
    """More than 256 groups: the kernel allows 65,536, and only the C function takes a buffer of that size."""
    import ctypes  # a MiB of the daemon's memory, for a peer that hardly ever comes

    buffer = ctypes.create_string_buffer(65536 * _GID)
    length = ctypes.c_uint32(len(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    asked = connection.fileno(), socket.SOL_SOCKET, _SO_PEERGROUPS
    if libc.getsockopt(*asked, buffer, ctypes.byref(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return buffer.raw[: length.value]


def _group_id(name: str) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def _masters() -> frozenset[int]:
    """root, and whoever runs the daemon: a simulated node belongs to the user who started it."""
    return frozenset({0, os.geteuid()})


@dataclass(frozen=True, slots=True)
class Access:
    """The rule. `group_id` looks a group up by name, on every question: groups come and go."""

    masters: frozenset[int] = field(default_factory=_masters)
    group_id: Callable[[str], int | None] = _group_id

    def check(self, peer: Peer, method: str, need: Need) -> None:
        """Raises NotPermitted."""
        if need == "open" or peer.uid in self.masters or self._in(peer, CHANGERS):
            return
        if need == "look" and self._in(peer, OBSERVERS):
            return
        groups = CHANGERS if need == "change" else f"{CHANGERS} or {OBSERVERS}"
        wanted = CHANGERS if need == "change" else OBSERVERS
        raise NotPermitted(
            f"Cannot call {method}: it takes root or membership in the group {groups}, and uid {peer.uid} has neither",
            hint=f"sudo usermod --append --groups {wanted} USER, then log in again",
        )

    def _in(self, peer: Peer, name: str) -> bool:
        group = self.group_id(name)
        return group is not None and group in peer.groups
