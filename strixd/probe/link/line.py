"""A connection on which both ends talk in JSON objects, one a line. Nothing here waits for ever."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any

LONGEST = 1 << 20  # bytes of a message
HUNG_UP = "the other end hung up"
SILENCE = 10.0  # seconds in which one who measures must do something


class Line:
    """`end`: when its time is over, by time.monotonic(). Every method raises OSError."""

    def __init__(self, connection: socket.socket, end: float) -> None:
        self.connection = connection
        self._end = end
        self._text = bytearray()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(SILENCE)
        _keep_alive(connection)

    def say(self, message: dict[str, Any]) -> None:
        try:
            self.connection.sendall(json.dumps(message).encode() + b"\n")
        except ConnectionError:
            raise ConnectionResetError(HUNG_UP) from None

    def hear(self, seconds: float = float("inf")) -> dict[str, Any]:
        """The next message; TimeoutError when none comes in so many seconds."""
        end = min(self._end, time.monotonic() + seconds)
        while b"\n" not in self._text:
            self.connection.settimeout(max(0.001, end - time.monotonic()))
            self._take()
        self.connection.settimeout(SILENCE)
        line, _, rest = bytes(self._text).partition(b"\n")
        self._text[:] = rest
        return read(line)

    def alive(self) -> None:
        """Raises when the other end has hung up, and takes nothing."""
        self.connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            if not self.connection.recv(1, socket.MSG_PEEK):
                raise ConnectionResetError(HUNG_UP)
        self.connection.settimeout(SILENCE)

    def _take(self) -> None:
        try:
            came = self.connection.recv(1 << 16)
        except TimeoutError:
            raise TimeoutError("the other end says nothing") from None
        except ConnectionError:
            raise ConnectionResetError(HUNG_UP) from None
        if not came:
            raise ConnectionResetError(HUNG_UP)
        self._text += came
        if len(self._text) > LONGEST:
            raise ConnectionAbortedError("the other end says too much")


def _keep_alive(connection: socket.socket) -> None:
    """A host that has gone is noticed within 20 s, also where nothing is to be said for long."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 3), (socket.TCP_KEEPCNT, 3)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def read(line: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError, RecursionError):
        raise ConnectionAbortedError("the other end talks nonsense") from None


def greet(address: str, port: int, *, token: str, use: str, end: float) -> Line:
    """Calls the end that listens, and says who is there and what this connection is for."""
    line = Line(socket.create_connection((address, port), SILENCE), end)
    line.say({"token": token, "use": use})
    return line
