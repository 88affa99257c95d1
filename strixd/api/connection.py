"""One client of the control socket: its calls, one at a time, in order.

Whatever a client sends or does not send, it costs its own slot and a bounded buffer for a bounded time. Reading
and writing are done on the bare socket, so that nothing is read ahead of what is being answered. The peer that
goes away is no error; any other surprise is a bug and leaves this module as it is.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, cast

from strixd.api import introspection, wire
from strixd.api.access import Access, Peer
from strixd.api.commands import COMMANDS, Command
from strixd.api.follow import Reply
from strixd.engine.door import Door
from strixd.errors import Refused, StrixdError, Unavailable

CHUNK: Final = 16 * 1024  # bytes read at once
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: `first` until a client has made its first call, `message` from a call's first byte to its last,
    `write` for a reply to be taken. `pool`: bytes of unfinished calls that all clients may have here together."""

    first: float = 60.0
    message: float = 10.0
    write: float = 10.0
    pool: int = 16 << 20


class Pool:
    """Bytes held for all clients together. A call's first CHUNK is always granted: it holds any sane call."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0

    def hold(self, before: int, after: int) -> None:
        """One client's buffer grows or shrinks. Raises Unavailable when there is no room for that."""
        self._held += after - before
        if after > max(before, CHUNK) and self._held > self._most:
            self._held -= after - before
            raise Unavailable("Cannot read the call: too many large calls at once", hint="try again")


class Gone(Exception):
    """The peer is not there any more, or too slow to count as being there."""


@dataclass(frozen=True, slots=True)
class Service:
    """What all connections share."""

    door: Door
    access: Access
    limits: Limits
    pool: Pool


class Connection:
    """Owns the socket from now on."""

    def __init__(self, client: socket.socket, peer: Peer, service: Service) -> None:
        self._socket = client
        self._peer = peer
        self._service = service
        self._limits = service.limits
        self._frames = wire.Frames()
        self._held = 0  # of the pool
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Until the peer goes, or does what nobody does by accident."""
        try:
            await self._calls()
        except Gone:
            _LOG.debug("A client of the control socket has gone (uid %d)", self._peer.uid)
        finally:
            self._service.pool.hold(self._held, 0)
            self._socket.close()

    async def _calls(self) -> None:
        try:
            message = await self._message(self._limits.first)
            while message is not None:
                await self._answer(wire.Call(message))
                await asyncio.sleep(0)  # a client with a thousand calls in one buffer must not have the loop alone
                message = await self._message(None)
        except (Refused, Unavailable) as error:  # no way to tell where the next call begins, or no room for it
            await self._send(wire.failure(error))

    async def _message(self, patience: float | None) -> wire.Message | None:
        """The next one, or None at the end of the stream. `patience`: seconds until it has to begin."""
        end = None if patience is None else self._loop.time() + patience
        begun = False
        while (message := self._frames.take()) is None:
            if len(self._frames) and not begun:
                begun, end = True, self._loop.time() + self._limits.message
            chunk = await self._read(end)
            if not chunk:
                return None
            self._feed(chunk)
        self._hold()
        return message

    async def _read(self, end: float | None) -> bytes:
        try:
            async with asyncio.timeout_at(end):
                return await self._loop.sock_recv(self._socket, CHUNK)
        except OSError as error:  # a TimeoutError is one
            raise Gone from error

    def _feed(self, chunk: bytes) -> None:
        self._frames.feed(chunk)
        self._hold()

    def _hold(self) -> None:
        self._service.pool.hold(self._held, len(self._frames))
        self._held = len(self._frames)

    async def _send(self, message: bytes) -> None:
        try:
            async with asyncio.timeout(self._limits.write):
                await self._loop.sock_sendall(self._socket, message)
        except OSError as error:
            raise Gone from error

    async def _answer(self, call: wire.Call) -> None:
        try:
            await self._dispatch(call)
        except (StrixdError, wire.Fault) as error:
            if call.oneway:
                _LOG.info("Nobody waits for the outcome of %s (uid %d): %s", call.method, self._peer.uid, error)
            else:
                await self._send(wire.failure(error))

    async def _dispatch(self, call: wire.Call) -> None:
        interface, _, method = call.method.rpartition(".")
        if interface not in introspection.INTERFACES:
            raise wire.Fault("InterfaceNotFound", interface=interface)
        if method not in (COMMANDS if interface == wire.INTERFACE else introspection.METHODS):
            raise wire.Fault("MethodNotFound", method=call.method)
        if call.upgrade:  # no method of ours hands the connection over to another protocol
            raise wire.Fault("MethodNotImplemented", method=call.method)
        if interface == wire.INTERFACE:
            await self._command(call, method)
        else:
            reply = introspection.METHODS[method](call.parameters)
            await self._reply(call, reply)

    async def _command(self, call: wire.Call, method: str) -> None:
        command = COMMANDS[method]
        self._service.access.check(self._peer, method, command.need)
        arguments = command.read(call.parameters)
        if command.more == "must" and not call.more:
            raise wire.Fault("ExpectedMore")
        follows = command.follow is not None and not call.oneway and (call.more or command.act is None)
        if command.act is not None:
            reply = await command.act(self._service.door, arguments, command.by(self._peer))
            if command.settle is not None and not follows:
                await command.settle(self._service.door)
            await self._reply(call, reply, continues=follows)
        if follows:
            await self._follow(command, arguments)

    async def _reply(self, call: wire.Call, reply: wire.Message, *, continues: bool = False) -> None:
        if not call.oneway:
            await self._send(wire.reply(reply, continues=continues))

    async def _follow(self, command: Command, arguments: object) -> None:
        """Send replies as they come, listening at the same time, so that nobody is told what nobody hears."""
        assert command.follow is not None
        replies = cast("AsyncGenerator[Reply, None]", command.follow(self._service.door, arguments))
        try:
            async with asyncio.timeout(None) as hearing, aclosing(replies):
                self._loop.add_reader(self._socket, self._overhear, hearing)
                async for reply, continues in replies:
                    await self._send(wire.reply(reply, continues=continues))
        except TimeoutError as error:
            if not hearing.expired():
                raise
            raise Gone from error
        finally:
            self._loop.remove_reader(self._socket)

    def _overhear(self, hearing: asyncio.Timeout) -> None:
        """Something came while replies go out: the next calls, kept for later, or the end."""
        try:
            chunk = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk or len(self._frames) + len(chunk) > wire.MOST or not self._room(chunk):
            self._loop.remove_reader(self._socket)
            hearing.reschedule(self._loop.time())

    def _room(self, chunk: bytes) -> bool:
        try:
            self._feed(chunk)
        except Unavailable:
            return False
        return True
