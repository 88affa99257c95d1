"""The control socket: lets clients in, shares the places out per user, and gives each a task of its own.

server = Server(door, listener)      # a bound, listening unix socket: see listen.py
tasks.create_task(server.run())      # until cancelled; a bug in any handler ends it, and with it the daemon
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from typing import Final

from strixd.api import wire
from strixd.api.access import Access, Peer, peer_of
from strixd.api.connection import Connection, Limits, Pool, Service
from strixd.api.listen import accept
from strixd.engine.door import Door
from strixd.errors import Unavailable

PLACES: Final = 640  # for all users but root; with root's own below the usual limit of 1024 descriptors
PER_USER: Final = 256
_LOG = logging.getLogger(__name__)


class Places:
    """Who has how many connections. Nobody but root may have more than what is left free for all others, so
    that a few greedy users leave room for the next; root has places of its own."""

    def __init__(self, places: int = PLACES, per_user: int = PER_USER) -> None:
        self._places = places
        self._per_user = per_user
        self._taken: Counter[int] = Counter()

    def take(self, uid: int) -> None:
        """Raises Unavailable when this user has had enough."""
        free = self._places - self._taken.total() + self._taken[0]
        allowed = self._per_user if uid == 0 else min(self._per_user, free)
        if self._taken[uid] >= allowed:
            raise Unavailable(f"Cannot answer: uid {uid} has {self._taken[uid]} connections open, no more are given")
        self._taken[uid] += 1

    def leave(self, uid: int) -> None:
        self._taken[uid] -= 1
        if not self._taken[uid]:
            del self._taken[uid]


class Server:
    """Serves `door` on `listener`, which stays the caller's to close."""

    def __init__(
        self, door: Door, listener: socket.socket, *, access: Access | None = None, limits: Limits | None = None
    ) -> None:
        limits = limits or Limits()
        self._listener = listener
        self._service = Service(door, access or Access(), limits, Pool(limits.pool))
        self._places = Places()

    async def run(self) -> None:
        """For ever. Every connection is a task in one group, so none outlives this call."""
        self._listener.setblocking(False)
        async with asyncio.TaskGroup() as tasks:
            while True:
                client = await accept(self._listener)
                if client is not None and (peer := self._admit(client)) is not None:
                    tasks.create_task(self._serve(client, peer))
                await asyncio.sleep(0)  # a burst of connections must not have the loop alone

    def _admit(self, client: socket.socket) -> Peer | None:
        client.setblocking(False)
        peer = peer_of(client)
        try:
            self._places.take(peer.uid)
        except Unavailable as error:
            _turn_away(client, error)
            return None
        return peer

    async def _serve(self, client: socket.socket, peer: Peer) -> None:
        try:
            await Connection(client, peer, self._service).run()
        finally:
            self._places.leave(peer.uid)


def _turn_away(client: socket.socket, error: Unavailable) -> None:
    """An answer to a question not asked yet; a fresh socket's buffer takes it without waiting."""
    with client:
        try:
            client.send(wire.failure(error))
        except OSError:
            _LOG.debug("A client that was turned away had gone already")
