"""GET /metrics over HTTP, on a unix socket and on TCP: one request per connection, bounded in size, time and number.

A place where it cannot listen is said once and tried again: nobody's answers depend on the metrics.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from strixd import messages
from strixd.api.access import Access, Peer, peer_of
from strixd.api.exposition import CONTENT_TYPE
from strixd.api.listen import accept, bind, bind_tcp
from strixd.api.server import Places
from strixd.errors import NotPermitted, StrixdError, Unavailable

log = logging.getLogger("strixd")

PLACES: Final = 16
MOST: Final = 8192  # bytes of a request; Prometheus' has about 300
NOBODY: Final = Peer(-1, frozenset())  # whoever comes by TCP, where the kernel names none
_REASONS: Final = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
                   431: "Request Header Fields Too Large", 503: "Service Unavailable"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: for a request to come whole, for its answer to be taken, until a place to listen is tried again."""

    request: float = 5.0
    answer: float = 10.0
    again: float = 10.0


class NotMetrics(Exception):
    """What was asked for instead."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


@dataclass(frozen=True, slots=True)
class Scrape:
    """`page` makes the text. `access`: who may read it over the unix socket, as the status; TCP is open to whoever
    reaches it."""

    page: Callable[[], Awaitable[str]]
    access: Access = field(default_factory=Access)
    pace: Pace = Pace()

    async def on_unix(self, path: str) -> None:
        """For ever."""
        await self._keep(path, partial(bind, path))

    async def on_tcp(self, address: Callable[[], str], changed: Callable[[int], Awaitable[int]]) -> None:
        """For ever, at the address that the file names, "" for none; `changed` waits until it may name another."""
        seen, now = 0, ""
        while True:
            now = address()
            async with asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(self._keep(now, partial(bind_tcp, now))) if now else None
                while address() == now:
                    seen = await changed(seen)
                if listening:
                    listening.cancel()

    async def _keep(self, where: str, make: Callable[[], socket.socket]) -> None:
        listener = await self._listener(make)
        log.info("The metrics are at %s", where)
        with listener:
            await self._serve(listener)

    async def _listener(self, make: Callable[[], socket.socket]) -> socket.socket:
        said = False
        while True:
            try:
                return make()
            except StrixdError as failure:
                if not said:
                    text, extra = "%s; tried again every %.0f s%s", messages.fields("CONDITION", code=failure.code)
                    hint = f" - {failure.hint}" if failure.hint else ""
                    log.warning(text, failure, self.pace.again, hint, extra=extra)
                said = True
            await asyncio.sleep(self.pace.again)

    async def _serve(self, listener: socket.socket) -> None:
        """Every connection is a task in one group, so none outlives the listener."""
        listener.setblocking(False)
        places = Places(PLACES, PLACES)
        async with asyncio.TaskGroup() as tasks:
            while True:
                if (client := await accept(listener)) is not None:
                    client.setblocking(False)
                    tasks.create_task(self._client(client, places))
                await asyncio.sleep(0)  # a burst of connections must not have the loop alone

    async def _client(self, client: socket.socket, places: Places) -> None:
        """One that goes away, or is too slow, is no news: OSError, which TimeoutError is. One too many is not read."""
        peer = peer_of(client) if client.family == socket.AF_UNIX else NOBODY
        with client, suppress(OSError):
            try:
                places.take(peer.uid)
            except Unavailable as full:
                client.send(response(503, f"{full}\n"))
                return
            try:
                await self._answer(client, peer)
            finally:
                places.leave(peer.uid)

    async def _answer(self, client: socket.socket, peer: Peer) -> None:
        try:
            check(await self._head(client))
            if peer is not NOBODY:
                self.access.check(peer, "Metrics", "look")
            reply = response(200, await self.page(), CONTENT_TYPE)
        except NotPermitted as refused:
            reply = response(403, f"{refused}\n{refused.hint}\n")
        except NotMetrics as answer:
            reply = response(answer.status, f"{answer}\n")
        async with asyncio.timeout(self.pace.answer):
            await asyncio.get_running_loop().sock_sendall(client, reply)

    async def _head(self, client: socket.socket) -> bytes:
        """Up to the empty line."""
        head = b""
        async with asyncio.timeout(self.pace.request):
            while b"\r\n\r\n" not in head and b"\n\n" not in head:
                piece = await asyncio.get_running_loop().sock_recv(client, MOST)
                head += piece
                if not piece:
                    raise ConnectionError
                if len(head) > MOST:
                    raise NotMetrics(431, f"a request of more than {MOST} bytes")
        return head


def check(head: bytes) -> None:
    """Raises NotMetrics unless this asks for the metrics."""
    words = head.partition(b"\n")[0].split()
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        raise NotMetrics(400, "not a request of HTTP/1")
    if words[1].partition(b"?")[0] != b"/metrics":
        raise NotMetrics(404, "the metrics are at /metrics")
    if words[0] != b"GET":
        raise NotMetrics(405, "only GET")


def response(status: int, text: str, kind: str = "text/plain; charset=utf-8") -> bytes:
    body = text.encode()
    lines = [f"HTTP/1.1 {status} {_REASONS[status]}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    if status == 405:
        lines.append("Allow: GET")
    return "\r\n".join((*lines, "Connection: close", "", "")).encode() + body
