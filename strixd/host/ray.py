"""Ray, by way of the probe in its container (strixd/probe/): a unix socket on which the probe reports.

The newest connection is the probe; the one before it is dropped. Heartbeats are kept and wake nobody; a report that
says something else does, and so does the end of the connection. This file knows nothing of Ray itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from strixd.ports import Member, RayReport, Wake

logger = logging.getLogger(__name__)

LINE_BYTES = 1 << 20
SILENCE_SECONDS = 30.0  # the probe reports every 10 s, and one of its looks may take 8
STALE_SECONDS = 15.0  # three renewals of a record missed
RECORD_VALUE = 1000  # characters
RESTLESS = ("cpu", "bytes")  # in a record: they change by themselves


class Line(asyncio.Protocol):
    """One connection of a probe: JSON objects, one a line, each way."""

    def __init__(self, ray: RayByProbe) -> None:
        self._ray = ray
        self._text = bytearray()
        self._silence: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.report: RayReport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._listen()
        self._ray.arrived(self)

    def data_received(self, data: bytes) -> None:
        self._text += data
        *lines, rest = self._text.split(b"\n")
        self._text = rest
        if max(map(len, (rest, *lines))) > LINE_BYTES:
            self.drop("a line of more than 1 MiB")
        for line in lines:
            self._take(bytes(line))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._silence:
            self._silence.cancel()
        self._ray.left(self)

    def send(self, record: Mapping[str, str]) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(json.dumps({"record": dict(record)}).encode() + b"\n")
        if self._transport.get_write_buffer_size() > LINE_BYTES:
            self.drop("it does not read")

    def drop(self, why: str) -> None:
        if self._transport is not None and not self._transport.is_closing():
            logger.warning("The probe of the Ray container is dropped: %s", why)
            self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _take(self, line: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        try:
            self._keep(read_report(line))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            self.drop(f"malformed report: {error!r}")

    def _keep(self, report: RayReport) -> None:
        self._listen()
        before, self.report = self.report, report
        if before is None or gist(before) != gist(report):
            self._ray.changed(self)

    def _listen(self) -> None:
        if self._silence:
            self._silence.cancel()
        loop = asyncio.get_running_loop()
        self._silence = loop.call_later(self._ray.silence, self.drop, f"silent for {self._ray.silence:g} s")


class RayByProbe:
    """The port Ray. `path` is the socket; its folder is made, for root alone. A probe that says nothing for `silence`
    seconds is dropped."""

    def __init__(self, path: str, *, silence: float = SILENCE_SECONDS) -> None:
        self.silence = silence
        self._path = Path(path)
        self._line: Line | None = None
        self._record: dict[str, str] = {}
        self._wake: Wake = lambda reason: None

    async def report(self) -> RayReport | None:
        return self._line.report if self._line else None

    async def publish(self, record: Mapping[str, str]) -> None:
        if dict(record) == self._record:
            return
        self._record = dict(record)
        if self._line:
            self._line.send(self._record)

    async def published(self) -> Mapping[str, str]:
        return self._record

    async def watch(self, wake: Wake) -> None:
        """Serves the probe for ever."""
        self._wake = wake
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.parent.chmod(0o700)
        server = await asyncio.get_running_loop().create_unix_server(lambda: Line(self), self._path)
        self._path.chmod(0o600)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            server.close()
            if self._line:
                self._line.close()

    def arrived(self, line: Line) -> None:
        before, self._line = self._line, line
        if before:
            before.close()
        if self._record:
            line.send(self._record)

    def changed(self, line: Line) -> None:
        if line is self._line:
            self._wake("Ray's members changed")

    def left(self, line: Line) -> None:
        if line is self._line:
            self._line = None
            self._wake("the probe of the Ray container has gone")


def gist(report: RayReport) -> RayReport:
    """The report without what changes by itself: its time, what is measured, and the ages until they are too great."""
    return replace(report, at=0.0, members=tuple(map(_calm, report.members)))


def _calm(member: Member) -> Member:
    record = {key: value for key, value in member.record.items() if key not in RESTLESS}
    return replace(member, record=record, age=float(member.age > STALE_SECONDS))


def read_report(line: bytes) -> RayReport:
    """ValueError, LookupError, TypeError, AttributeError, RecursionError or OverflowError: not a report."""
    told: dict[str, Any] = json.loads(line)
    words = {key: str(told.get(key, "")) for key in ("session", "own_session", "version", "error")}
    return RayReport(at=float(told["at"]), members=tuple(map(read_member, told["members"])), **words)


def read_member(told: dict[str, Any]) -> Member:
    """What no strixd writes into a record is left out: another node wrote it, and it gets into messages."""
    record = {str(key): str(value) for key, value in told.get("record", {}).items()}
    return Member(
        name=str(told["name"]),
        address=str(told["address"]),
        alive=bool(told["alive"]),
        gpus=int(told.get("gpus", 0)),
        record={key: value for key, value in record.items() if value.isprintable() and len(value) <= RECORD_VALUE},
        age=float(told.get("age", 0.0)),
    )
