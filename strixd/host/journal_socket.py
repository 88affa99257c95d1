"""journald's native protocol: one datagram per line of the log, fields as NAME=value, or by length when a value has
several lines; what is too large for a datagram goes as a sealed memory file (systemd.io/JOURNAL_NATIVE_PROTOCOL).
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Iterable
from typing import Final

SOCKET: Final = "/run/systemd/journal/socket"
PATIENCE = 0.2
"""Seconds that a journal which does not read may hold up the loop, once; then lines are lost until it reads again."""
BUFFER = 8 << 20
"""Bytes asked for as send buffer, as systemd's own client does; the kernel may grant less."""
SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
"""journald takes a memory file from an unprivileged sender only when nobody can change it any more."""


class JournalSocket:
    """Sends datagrams; a line that cannot be sent goes to standard error and is counted."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        self._lost = 0

    def send(self, content: bytes) -> None:
        self._socket.settimeout(0.0 if self._lost else PATIENCE)
        try:
            self._send(content)
        except OSError as error:
            if not self._lost:
                sys.stderr.write(f"Cannot write to the journal: {error.strerror or error}\n")
            self._lost += 1
            return
        lost, self._lost = self._lost, 0
        if lost:
            text = f"{lost} lines of the log were lost while the journal did not read"
            self.send(datagram((("MESSAGE", text), ("PRIORITY", "4"), ("SYSLOG_IDENTIFIER", "strixd"))))

    def close(self) -> None:
        self._socket.close()

    def _send(self, content: bytes) -> None:
        try:
            self._socket.sendto(content, self._path)
        except OSError as error:
            if error.errno not in (errno.EMSGSIZE, errno.ENOBUFS):
                raise
            self._send_file(content)

    def _send_file(self, content: bytes) -> None:
        file = os.memfd_create("journal-entry", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        try:
            with open(file, "wb", closefd=False) as out:
                out.write(content)
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS)
            handed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))]
            self._socket.sendmsg([], handed, 0, self._path)
        finally:
            os.close(file)


def datagram(fields: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(_field(name, value) for name, value in fields)


def _field(name: str, value: str) -> bytes:
    """A value with a line break: the name, a line break, the length (64 bits, little endian), the value."""
    content = value.encode("utf-8", "backslashreplace")  # a lone surrogate is all that UTF-8 cannot say
    if b"\n" not in content:
        return name.encode() + b"=" + content + b"\n"
    return name.encode() + b"\n" + struct.pack("<Q", len(content)) + content + b"\n"
