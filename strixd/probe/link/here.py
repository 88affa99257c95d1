"""This end: lets the other one call, tells it what to do, and says what came of it."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from strixd.probe.link import card
from strixd.probe.link.line import Line
from strixd.probe.link.programs import ANY_ERROR, present, run, words
from strixd.probe.link.streams import ping, pour

PING = 5.0  # seconds that all round trips may take
STREAMS = 8  # as the guide's iperf3 has
CALLS = 10.0  # seconds in which the other end must call for a measurement
ANSWERS = 45.0  # seconds in which it must tell what came of one


class Door:
    """Where the other end calls: on one address, with one token."""

    def __init__(self, address: str, end: float) -> None:
        self.token = secrets.token_hex(16)
        self._end = end
        try:
            self._listener = socket.create_server((address, 0))
        except OSError as error:
            raise OSError(f"cannot listen on {address}: {os.strerror(error.errno or 0)}") from None
        self.address, self.port = self._listener.getsockname()

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def accept(self, use: str, seconds: float, alive: Callable[[], None] = lambda: None) -> Line:
        """The next who calls for this with the right token; others are shown out. `alive` raises when nobody will."""
        end = min(self._end, time.monotonic() + seconds)
        while time.monotonic() < end:
            alive()
            self._listener.settimeout(min(0.5, max(0.001, end - time.monotonic())))
            with contextlib.suppress(OSError):
                if line := self._admitted(self._listener.accept()[0], use):
                    return line
        raise TimeoutError(f"the other end has not called within {seconds:g} s")

    def _admitted(self, connection: socket.socket, use: str) -> Line | None:
        line = Line(connection, self._end)
        with contextlib.suppress(OSError):
            said = line.hear(2.0)
            if hmac.compare_digest(str(said.get("token")), self.token) and said.get("use") == use:
                return line
        connection.close()
        return None


class Measuring:
    """The measurements, over the line to the other end and the door by which it calls."""

    def __init__(self, job: dict[str, Any], door: Door, line: Line) -> None:
        self._job = job
        self._peer = job["peer"]
        self._door = door
        self._line = line
        self._orders = 0
        self._theirs = line.hear(CALLS)

    def one(self, what: str) -> dict[str, Any]:
        """What came of it, or why nothing did. Raises OSError when the line is broken: then nothing will."""
        try:
            return {"ping": self._ping, "stream": self._stream}.get(what, lambda: self._rdma(what))()
        except ANY_ERROR as error:
            self._order("nothing")
            self._answer()
            return {"failed": str(error)}

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._order("end")

    def _ping(self) -> dict[str, Any]:
        with self._telling("echo"):
            line = self._door.accept("echo", CALLS, self._line.alive)
            with line.connection as connection:
                trips = ping(connection, self._job["rounds"], PING)
        return {"tool": "strixd", "trips": [round(trip, 2) for trip in trips]}

    def _stream(self) -> dict[str, Any]:
        if "iperf3" in self._theirs["programs"] and "iperf3" in present():
            return self._by("iperf3", None)
        with self._telling("drain", streams=STREAMS) as told, contextlib.ExitStack() as stack:
            calls = (self._door.accept("drain", CALLS, self._line.alive).connection for _ in range(STREAMS))
            pour([stack.enter_context(each) for each in calls], self._job["stream"])
        return {"tool": "strixd", "bytes": told["bytes"], "seconds": told["seconds"]}

    def _rdma(self, program: str) -> dict[str, Any]:
        own = card.rdma(self._door.address, card.interface(self._door.address))
        if without := self._ends(bool(own), bool(self._theirs["rdma"])):
            return {"lacking": f"no active RDMA port has the address of the fabric on {without}"}
        if without := self._ends(program in present(), program in self._theirs["programs"]):
            return {"lacking": f"no {program} (package perftest) where Ray runs on {without}"}
        return self._by(program, own)

    def _ends(self, here: bool, there: bool) -> str:
        """The names of those ends that have not got it."""
        return " and ".join(name for name, has in ((self._job["node"], here), (self._peer["name"], there)) if not has)

    def _by(self, program: str, rdma: dict[str, Any] | None) -> dict[str, Any]:
        self._order("listen", program=program)
        port = int(self._answer()["port"])
        return {
            "tool": program,
            "output": run(words(program, self._door.address, port, rdma=rdma, peer=self._peer["address"])),
        }

    @contextlib.contextmanager
    def _telling(self, do: str, **more: object) -> Iterator[dict[str, Any]]:
        """What the other end says when it has done this is in the value afterwards."""
        told: dict[str, Any] = {}
        self._order(do, **more)
        yield told
        told.update(self._answer())

    def _order(self, do: str, **more: object) -> None:
        self._orders += 1
        self._line.say({"order": self._orders, "do": do, **more})

    def _answer(self) -> dict[str, Any]:
        """To the newest order; one to an earlier order, which we gave up, is passed over."""
        told = self._line.hear(ANSWERS)
        while told.get("order") != self._orders:
            told = self._line.hear(ANSWERS)
        if "failed" in told:
            raise ValueError(f"there: {told['failed']}")
        return told


def measure(job: dict[str, Any], door: Door, line: Line, say: Callable[[dict[str, Any]], None]) -> None:
    """All that the job names, one after the other. Raises OSError when the other end has gone."""
    with line.connection:
        measuring = Measuring(job, door, line)
        for what in job["measure"]:
            say({"peer": job["peer"]["name"], "what": what, **measuring.one(what)})
        measuring.end()
