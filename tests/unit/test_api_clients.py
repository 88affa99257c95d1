"""Clients that mean no good, or do not care, cost nobody else anything."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from api_lab import Client, Lab, run, until, well
from recorded_door import RecordedDoor, resource, status

from strixd import errors
from strixd.api import wire
from strixd.api.connection import Limits
from strixd.api.listen import bind
from strixd.api.server import Places, Server


@pytest.mark.parametrize("text", [b"nonsense\0", b"[]\0", b"{}\0", b'{"method":1}\0', b"[" * 200_000 + b"\0",
    b'{"method":"io.strixd.Status","parameters":[]}\0', b'{"method":"io.strixd.Status","more":"yes"}\0',
    b'{"method":"io.strixd.Watch","more":true,"oneway":true}\0'])  # fmt: skip
def test_malformed_calls_are_named_and_the_connection_closed(tmp_path: Path, text: bytes) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            client.writer.write(text)
            reply = await client.reply()
            assert reply["error"] == "io.strixd.Refused"
            assert reply["parameters"]["message"].startswith("Cannot read the ")
            assert await client.closed()
        await well(lab)

    run(tmp_path, scenario)


@pytest.mark.parametrize("end", [b"", b"\0"])
def test_a_call_over_a_mebibyte_is_refused(tmp_path: Path, end: bytes) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            client.writer.write(b'{"method":"' + b"x" * wire.MOST + end)
            reply = await client.reply()
            assert reply["parameters"]["message"] == "Cannot read the message: it is larger than 1048576 bytes"
            assert await client.closed()
        await well(lab)

    run(tmp_path, scenario)


def test_a_large_call_within_the_limit_is_read(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            reply = await client.ask("Status", {"x": "y" * 1_000_000})
            assert reply["error"] == "org.varlink.service.InvalidParameter"

    run(tmp_path, scenario)


def test_large_calls_share_a_pool(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as first, lab.client() as second:
            first.writer.write(b"x" * 100_000)
            await asyncio.sleep(0.1)
            second.writer.write(b"x" * 100_000)
            reply = await second.reply()
            assert reply["parameters"]["message"] == "Cannot read the call: too many large calls at once"
            await well(lab)
        async with lab.client() as third:
            assert "error" in await third.ask("Status", {"x": "y" * 100_000})

    run(tmp_path, scenario, limits=Limits(pool=150_000))


def test_silent_and_halting_clients_lose_their_place(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as silent, lab.client() as halting, lab.client() as idle:
            await idle.ask("Version")
            halting.writer.write(b'{"method":')
            assert await halting.closed()
            assert await silent.closed()
            await asyncio.sleep(0.3)
            assert "parameters" in await idle.ask("Version")  # who has asked once may stay

    run(tmp_path, scenario, limits=Limits(first=0.3, message=0.1))


async def _drip(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)


def test_a_drip_of_bytes_does_not_keep_a_call_open(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            dripping = asyncio.create_task(_drip(client.writer))
            assert await client.closed()
            dripping.cancel()

    run(tmp_path, scenario, limits=Limits(message=0.2))


def test_a_client_that_does_not_read_is_dropped(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        raw = socket.socket(socket.AF_UNIX)
        raw.connect(str(lab.path))
        raw.sendall(wire.encode({"method": "io.strixd.Watch", "more": True}))
        await until(lambda: lab.door.watchers > 0)
        async with asyncio.timeout(10):
            while lab.door.watchers or lab.door.number < 10:
                await lab.door.say(status(resource("ray", "ok", "w" * 50_000)))
                await asyncio.sleep(0.01)
        raw.close()
        await well(lab)

    run(tmp_path, scenario, limits=Limits(write=0.2))


def test_a_flood_of_pipelined_calls_hurts_nobody(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        raw = socket.socket(socket.AF_UNIX)
        raw.connect(str(lab.path))
        raw.setblocking(False)
        flood = wire.encode({"method": "io.strixd.Status"}) * 5000
        with contextlib.suppress(BlockingIOError):
            raw.send(flood)
        async with asyncio.timeout(2):
            await well(lab)
        raw.close()

    run(tmp_path, scenario)


def test_two_hundred_clients_at_once(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(lab.client()) for _ in range(200)]
            watching = await asyncio.gather(*(client.ask("Watch", more=True) for client in clients))
            assert all(reply["continues"] for reply in watching)
            await lab.door.say(replace(status(), phase="degraded"))
            told = await asyncio.gather(*(client.reply() for client in clients))
            assert {reply["parameters"]["status"]["phase"] for reply in told} == {"degraded"}
        await until(lambda: lab.door.watchers == 0)

    run(tmp_path, scenario)


def test_one_user_cannot_take_all_places(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(lab.client()) for _ in range(256)]
            await asyncio.gather(*(client.ask("Version") for client in clients))
            late = await stack.enter_async_context(lab.client())
            reply = await late.reply()
            assert reply["error"] == "io.strixd.Unavailable"
            assert "connections open" in reply["parameters"]["message"]
            assert await late.closed()
        await asyncio.sleep(0.1)
        await well(lab)

    run(tmp_path, scenario)


def test_places_are_shared_out() -> None:
    places, got = Places(), {}
    for uid in (1000, 1001, 1002, 1003, 0):
        got[uid] = 0
        with contextlib.suppress(errors.Unavailable):
            while True:
                places.take(uid)
                got[uid] += 1
    assert got == {1000: 256, 1001: 192, 1002: 96, 1003: 48, 0: 256}
    places.leave(1003)
    places.take(1003)


def test_a_bug_in_a_handler_ends_the_server(tmp_path: Path) -> None:
    async def whole() -> None:
        with bind(str(tmp_path / "socket")) as listener:
            door = RecordedDoor()
            door.bug = ZeroDivisionError("a bug")
            task = asyncio.create_task(Server(door, listener).run())
            async with Client(tmp_path / "socket") as client:
                client.send("Status")
                with pytest.raises(ExceptionGroup) as caught:
                    await asyncio.wait_for(task, 5)
            assert caught.group_contains(ZeroDivisionError)
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(whole())
