"""A door served on a real unix socket, and a client that says exactly what it is told to say."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from recorded_door import RecordedDoor
from varlink_idl import Interface, parse

from strixd import __version__
from strixd.api import wire
from strixd.api.introspection import description
from strixd.api.listen import bind
from strixd.api.server import Server

Scenario = Callable[["Lab"], Coroutine[Any, Any, None]]


class Client:
    """A client that says exactly what it is told to say."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def __aenter__(self) -> Client:
        self.reader, self.writer = await asyncio.open_unix_connection(self.path, limit=4 << 20)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def send(self, method: str, parameters: object = None, **flags: object) -> None:
        name = method if "." in method else f"io.strixd.{method}"
        self.writer.write(wire.encode({"method": name, "parameters": parameters or {}, **flags}))

    async def reply(self) -> dict[str, Any]:
        async with asyncio.timeout(5):
            text = await self.reader.readuntil(b"\0")
        message: dict[str, Any] = json.loads(text[:-1])
        return message

    async def ask(self, method: str, parameters: object = None, **flags: object) -> dict[str, Any]:
        self.send(method, parameters, **flags)
        return await self.reply()

    async def closed(self, within: float = 5) -> bool:
        async with asyncio.timeout(within):
            with contextlib.suppress(ConnectionError):
                return await self.reader.read() == b""
        return True


class Lab:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.door = RecordedDoor()

    def client(self) -> Client:
        return Client(self.path)


@contextlib.asynccontextmanager
async def serving(path: Path, **options: Any) -> AsyncIterator[Lab]:
    lab = Lab(path)
    with bind(str(path)) as listener:
        task = asyncio.create_task(Server(lab.door, listener, **options).run())
        try:
            yield lab
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def run(path: Path, scenario: Scenario, **options: Any) -> None:
    async def whole() -> None:
        async with asyncio.timeout(30), serving(path / "socket", **options) as lab:
            await scenario(lab)
            assert len(asyncio.all_tasks()) < 300

    asyncio.run(whole())


def idl(interface: str) -> Interface:
    return parse(description(interface))


async def well(lab: Lab) -> None:
    async with lab.client() as client:
        assert (await client.ask("Version"))["parameters"]["version"] == __version__


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for is a plain count
            await asyncio.sleep(0.01)
