"""TCP by Python alone: a ping-pong of one byte, and as many bytes as go through.

The kernel does the work: a message of 1 MiB is one call, in which other threads run.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from strixd.probe.link.line import HUNG_UP

BLOCK = 1 << 20  # bytes; one of these per connection is all the memory that it takes
WARM = 200  # round trips that are not counted: windows, caches and clocks of processors settle


def ping(line: socket.socket, rounds: int, seconds: float) -> list[float]:
    """Round trips in µs: so many, or fewer when time is up, at least one."""
    end = time.monotonic() + seconds
    _trips(line, WARM, end)
    return _trips(line, rounds, end)


def _trips(line: socket.socket, rounds: int, end: float) -> list[float]:
    trips: list[float] = []
    while not trips or (len(trips) < rounds and time.monotonic() < end):
        began = time.perf_counter_ns()
        line.sendall(b".")
        if not line.recv(1):
            raise ConnectionResetError(HUNG_UP)
        trips.append((time.perf_counter_ns() - began) / 1000)
    return trips


def echo(line: socket.socket) -> None:
    """Gives each byte back, until the other end has no more."""
    while came := line.recv(1):
        line.sendall(came)


def pour(lines: Sequence[socket.socket], seconds: float) -> None:
    """Sends over all of them for so long, or until one fails, and closes their way there."""
    end, block, over = time.monotonic() + seconds, bytes(BLOCK), threading.Event()

    def one(line: socket.socket) -> None:
        while time.monotonic() < end and not over.is_set():
            line.sendall(block)
        line.shutdown(socket.SHUT_WR)

    with ThreadPoolExecutor(len(lines)) as pool:
        try:
            list(pool.map(one, lines))
        finally:
            over.set()


def drain(lines: Sequence[socket.socket]) -> tuple[int, float]:
    """Bytes that came over all of them until each had no more, and the seconds that it took."""
    began = time.monotonic()
    with ThreadPoolExecutor(len(lines)) as pool:
        return sum(pool.map(_drained, lines)), time.monotonic() - began


def _drained(line: socket.socket) -> int:
    block, total = bytearray(BLOCK), 0
    while came := line.recv_into(block):
        total += came
    return total
