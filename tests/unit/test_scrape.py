"""The door of the metrics: who comes in, how much of the daemon a client can take, and where it listens."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from api_lab import until

from strixd.api.access import Access
from strixd.api.exposition import CONTENT_TYPE
from strixd.api.scrape import MOST, PLACES, Pace, Scrape

PACE = Pace(request=0.3, answer=0.3, again=0.05)
ASK = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
PAGE = "strixd_x 1\n# EOF\n"
SOCKET = "socket"


async def page() -> str:
    return PAGE


@asynccontextmanager
async def running(path: Path, *, access: Access | None = None, text: str = PAGE) -> AsyncIterator[Path]:
    async def told() -> str:
        return text

    scrape = Scrape(told, access or Access(), PACE)
    async with background(scrape.on_unix(str(path / SOCKET))):
        await until((path / SOCKET).exists)
        yield path / SOCKET


@asynccontextmanager
async def background(running: Awaitable[None]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(running)
    try:
        yield
    finally:
        assert not task.done() or task.result()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def ask(path: Path, request: bytes = ASK) -> tuple[str, str]:
    """Head and body."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(request)
    async with asyncio.timeout(5):
        reply = await reader.read()
    writer.close()
    head, _, body = reply.decode().partition("\r\n\r\n")
    return head, body


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(30):
            await scenario()

    asyncio.run(whole())


def test_the_metrics_are_told_whole(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, text="# é\n" + PAGE) as path:
            head, body = await ask(path)
            assert body == "# é\n" + PAGE
            lines = ["HTTP/1.1 200 OK", f"Content-Type: {CONTENT_TYPE}", f"Content-Length: {len(body.encode())}"]
            assert head.split("\r\n") == [*lines, "Connection: close"]
            assert (await ask(path, b"GET /metrics?name=x HTTP/1.0\n\n"))[1] == body

    play(scenario)


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"GET /metrics/../x HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"GET /metrics\r\n\r\n", "400 Bad Request"),
        (b"GET /metrics HTTP/2.0\r\n\r\n", "400 Bad Request"),
        (b"\r\n\r\n", "400 Bad Request"),
        (b"\x16\x03\x01\x02\n\n", "400 Bad Request"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * MOST, "431 Request Header Fields Too Large"),
    ],
)
def test_all_else_is_refused_by_name(tmp_path: Path, request_: bytes, line: str) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as path:
            head, body = await ask(path, request_)
            assert head.startswith(f"HTTP/1.1 {line}\r\n")
            assert PAGE not in body
            assert body.endswith("\n")
            assert (await ask(path))[1] == PAGE

    play(scenario)


def test_who_is_in_no_group_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, access=Access(frozenset(), lambda _: None)) as path:
            head, body = await ask(path)
            assert head.startswith("HTTP/1.1 403 Forbidden\r\n")
            assert "strixd or strixd-observe" in body
            assert "usermod" in body

    play(scenario)


def test_an_observer_is_let_in(tmp_path: Path) -> None:
    async def scenario() -> None:
        groups = {"strixd-observe": os.getgid()}
        async with running(tmp_path, access=Access(frozenset(), groups.get)) as path:
            assert (await ask(path))[1] == PAGE

    play(scenario)


@pytest.mark.parametrize("begun", [b"", b"GET /metrics HTTP/1.1\r\n"])
def test_who_does_not_go_on_is_left(tmp_path: Path, begun: bytes) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as path:
            assert await ask(path, begun) == ("", "")

    play(scenario)


def test_who_does_not_read_is_left(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, text=PAGE * 200_000) as path:
            lazy = [await asyncio.open_unix_connection(path) for _ in range(PLACES)]
            for _, writer in lazy:
                writer.write(ASK)
            await asyncio.sleep(0)
            await _served_again(path)
            for _, writer in lazy:
                writer.close()

    play(scenario)


def test_no_more_clients_than_there_are_places(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as path:
            idle = [await asyncio.open_unix_connection(path) for _ in range(PLACES)]
            head, body = await ask(path, b"")
            assert head.startswith("HTTP/1.1 503 Service Unavailable")
            assert "connections open" in body
            await _served_again(path)
            for _, writer in idle:
                writer.close()

    play(scenario)


async def _served_again(path: Path) -> None:
    async def served() -> bool:
        with suppress(ConnectionError):  # turned away, and what was asked is not read
            return (await ask(path))[0].startswith("HTTP/1.1 200")
        return False

    await come_true(served)


async def come_true(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(5):
        while not await condition():  # noqa: ASYNC110 - what is waited for happens at the other end
            await asyncio.sleep(0.02)


def test_who_hangs_up_is_no_news(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, text=PAGE * 200_000) as path:
            for request in (b"", b"GET", ASK):
                _, writer = await asyncio.open_unix_connection(path)
                writer.write(request)
                writer.transport.abort()
            assert (await ask(path))[0].startswith("HTTP/1.1 200")

    play(scenario)


class File:
    """What [metrics] listen says, and may say later."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._news = asyncio.Event()
        self._version = 0

    def say(self, address: str) -> None:
        self.address, self._version = address, self._version + 1
        self._news.set()

    async def changed(self, seen: int) -> int:
        while self._version <= seen:
            self._news.clear()
            await self._news.wait()
        return self._version


def free(host: str = "127.0.0.1") -> socket.socket:
    """Holds a port until it is closed."""
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    held.bind((host, 0))
    return held


def port(of: socket.socket) -> int:
    number: int = of.getsockname()[1]
    return number


async def by_tcp(number: int, host: str = "127.0.0.1") -> bytes:
    """b"" where nobody listens."""
    try:
        reader, writer = await asyncio.open_connection(host, number)
        writer.write(ASK)
        reply = await reader.read()
    except ConnectionError:
        return b""
    writer.close()
    return reply


async def reached(number: int, host: str = "127.0.0.1") -> None:
    async def told() -> bool:
        return (await by_tcp(number, host)).endswith(PAGE.encode())

    await come_true(told)


@pytest.mark.parametrize(("host", "spelled"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_by_tcp_anybody_may_read(host: str, spelled: str) -> None:
    async def scenario() -> None:
        with free(host) as held:
            number = port(held)
        file = File(f"{spelled}:{number}")
        scrape = Scrape(page, Access(frozenset(), lambda _: None), PACE)
        async with background(scrape.on_tcp(lambda: file.address, file.changed)):
            await reached(number, host)

    play(scenario)


def test_the_address_of_the_file_is_followed() -> None:
    async def scenario() -> None:
        with free() as one, free() as two:
            numbers = port(one), port(two)
        file = File("")
        async with background(Scrape(page, pace=PACE).on_tcp(lambda: file.address, file.changed)):
            assert [await by_tcp(number) for number in numbers] == [b"", b""]
            file.say(f"127.0.0.1:{numbers[0]}")
            await reached(numbers[0])
            file.say(f"127.0.0.1:{numbers[1]}")
            await reached(numbers[1])
            assert await by_tcp(numbers[0]) == b""
            file.say("")

            async def closed() -> bool:
                return await by_tcp(numbers[1]) == b""

            await come_true(closed)

    play(scenario)


def test_a_taken_port_is_said_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        with free() as held:
            held.listen()
            number = port(held)
            file = File(f"127.0.0.1:{number}")
            task = asyncio.create_task(Scrape(page, pace=PACE).on_tcp(lambda: file.address, file.changed))
            await asyncio.sleep(PACE.again * 4)
        await reached(number)
        task.cancel()
        [said] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert said.startswith(f"Cannot listen on 127.0.0.1:{number}: Address already in use; tried again every")
        assert f"ss -ltnp 'sport = :{number}'" in said

    play(scenario)


def test_a_socket_that_cannot_be_made_ends_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = tmp_path / "later"
        async with background(Scrape(page, pace=PACE).on_unix(str(folder / SOCKET))):
            await asyncio.sleep(PACE.again * 2)
            folder.mkdir()
            await until((folder / SOCKET).exists)
            assert (await ask(folder / SOCKET))[1] == PAGE

    play(scenario)
