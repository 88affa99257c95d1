"""The port Ray over a real unix socket, with probes that behave and probes that do not."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from strixd.host.ray import LINE_BYTES, RayByProbe
from strixd.ports import Member

REPORT = {"at": 5.0, "session": "s", "own_session": "s", "version": "2.60.0", "error": "", "members": []}
NODE = {"name": "halo1", "address": "192.0.2.1", "alive": True, "gpus": 1, "record": {"digest": "d"}, "age": 1.0}


class Bench:
    """The served port, and what it woke for."""

    def __init__(self, path: Path, silence: float) -> None:
        self.path = path
        self.ray = RayByProbe(str(path), silence=silence)
        self.wakes: list[str] = []
        self.woken = asyncio.Event()

    def wake(self, reason: str) -> None:
        self.wakes.append(reason)
        self.woken.set()

    async def wakes_again(self) -> str:
        async with asyncio.timeout(5):
            await self.woken.wait()
        self.woken.clear()
        return self.wakes[-1]

    async def probe(self) -> Probe:
        return Probe(*await asyncio.open_unix_connection(self.path))


class Probe:
    """A probe's end of the line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, **changes: Any) -> None:
        await self.write(json.dumps({**REPORT, **changes}).encode() + b"\n")

    async def write(self, text: bytes) -> None:
        self.writer.write(text)
        await self.writer.drain()

    async def record(self) -> Any:
        async with asyncio.timeout(5):
            return json.loads(await self.reader.readline())["record"]

    async def dropped(self) -> bool:
        try:
            async with asyncio.timeout(5):
                return await self.reader.read() == b""
        except ConnectionError:
            return True


@asynccontextmanager
async def served(path: Path, silence: float = 30.0) -> AsyncIterator[Bench]:
    bench = Bench(path, silence)
    watching = asyncio.create_task(bench.ray.watch(bench.wake))
    await asyncio.sleep(0.05)
    try:
        yield bench
    finally:
        watching.cancel()
        async with asyncio.timeout(1):
            await asyncio.wait([watching])


def play(folder: Path, script: Callable[[Bench], Awaitable[None]], silence: float = 30.0) -> None:
    async def main() -> None:
        async with served(folder / "probe" / "socket", silence) as bench:
            await script(bench)

    asyncio.run(main())


def test_the_socket_is_roots_alone(tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        assert stat.S_IMODE(bench.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(bench.path.parent.stat().st_mode) == 0o700
        assert await bench.ray.report() is None

    play(tmp_path, script)
    play(tmp_path, script)  # over the socket that was left


def test_a_report_is_kept_and_wakes_once(tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        probe = await bench.probe()
        await probe.say(members=[NODE])
        await bench.wakes_again()
        report = await bench.ray.report()
        assert report
        assert (report.at, report.session, report.version) == (5.0, "s", "2.60.0")
        assert report.members == (Member("halo1", "192.0.2.1", True, 1, {"digest": "d"}, 1.0),)
        await probe.say(at=6.0, members=[{**NODE, "age": 3.0}])
        await probe.say(at=7.0, members=[{**NODE, "alive": False}])
        await bench.wakes_again()
        report = await bench.ray.report()
        assert report
        assert (report.at, report.members[0].alive) == (7.0, False)
        assert len(bench.wakes) == 2

    play(tmp_path, script)


def test_a_stale_record_wakes_once(tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        probe = await bench.probe()
        for age in (1.0, 14.0, 16.0, 26.0):
            await probe.say(members=[{**NODE, "age": age}])
        await probe.say(error="no more")
        while not (report := await bench.ray.report()) or not report.error:
            await bench.wakes_again()
        assert len(bench.wakes) == 3

    play(tmp_path, script)


def test_what_is_measured_is_kept_and_wakes_nobody_but_a_rank_does(tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        probe = await bench.probe()
        for cpu, ranks in (("1.0", "1"), ("2.0", "1"), ("3.0", "0")):
            await probe.say(members=[{**NODE, "record": {"cpu": cpu, "bytes": cpu, "ranks": ranks}}])
        while not (report := await bench.ray.report()) or report.members[0].record["ranks"] != "0":
            await bench.wakes_again()
        assert report.members[0].record["cpu"] == "3.0"
        assert len(bench.wakes) == 2

    play(tmp_path, script)


def test_a_report_in_pieces(tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        probe = await bench.probe()
        text = json.dumps({**REPORT, "error": "ü" * 100_000}, ensure_ascii=False).encode() + b"\n"
        for at in range(0, len(text), 70_001):
            await probe.write(text[at : at + 70_001])
            await asyncio.sleep(0.001)
        await bench.wakes_again()
        report = await bench.ray.report()
        assert report
        assert report.error == "ü" * 100_000

    play(tmp_path, script)


def test_without_a_probe_there_is_no_report(tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        probe = await bench.probe()
        await probe.say()
        await bench.wakes_again()
        probe.writer.close()
        assert await bench.wakes_again() == "the probe of the Ray container has gone"
        assert await bench.ray.report() is None

    play(tmp_path, script)


def test_the_newest_probe_counts(tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        old = await bench.probe()
        await old.say(session="old")
        await bench.wakes_again()
        new = await bench.probe()
        assert await old.dropped()
        assert await bench.ray.report() is None
        await new.say(session="new")
        await bench.wakes_again()
        report = await bench.ray.report()
        assert report
        assert report.session == "new"

    play(tmp_path, script)


def test_a_record_reaches_the_probe_now_and_later(tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        assert await bench.ray.published() == {}
        await bench.ray.publish({"a": "1"})
        first = await bench.probe()
        assert await first.record() == {"a": "1"}
        await bench.ray.publish({"a": "1"})
        await bench.ray.publish({"a": "2"})
        assert await first.record() == {"a": "2"}, "the same record is not sent twice"
        assert await (await bench.probe()).record() == {"a": "2"}
        assert await bench.ray.published() == {"a": "2"}

    play(tmp_path, script)


WRONG = {
    "not JSON": b"hello\n",
    "not an object": b"[1, 2]\n",
    "no members": b'{"at": 1}\n',
    "no time": b'{"members": []}\n',
    "a member without a name": b'{"at": 1, "members": [{}]}\n',
    "a member that is a word": b'{"at": 1, "members": ["halo1"]}\n',
    "an endless number": b'{"at": 1, "members": [{"name": "halo1", "address": "", "alive": true, "gpus": Infinity}]}\n',
    "a great number": b'{"at": ' + b"9" * 400 + b', "members": []}\n',
    "not text": b"\xff\xfe\n",
    "too deep": b"[" * 200_000 + b"\n",
    "too long": b"x" * (LINE_BYTES + 1),
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_nonsense_is_dropped_with_a_line(tmp_path: Path, text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def script(bench: Bench) -> None:
        probe = await bench.probe()
        probe.writer.write(text)
        assert await probe.dropped()
        assert await bench.ray.report() is None
        good = await bench.probe()
        await good.say()
        while not await bench.ray.report():
            await bench.wakes_again()

    with caplog.at_level(logging.WARNING):
        play(tmp_path, script)
    assert len(caplog.records) == 1
    assert "The probe of the Ray container is dropped" in caplog.text


def test_what_another_node_says_is_short_and_on_one_line(tmp_path: Path) -> None:
    record = {"digest": "d", "version": "1\n\x1b[2J", "rdma": "x" * 1001, "ranks": 2}

    async def script(bench: Bench) -> None:
        probe = await bench.probe()
        await probe.say(members=[{**NODE, "record": record}])
        await bench.wakes_again()
        report = await bench.ray.report()
        assert report
        assert report.members[0].record == {"digest": "d", "ranks": "2"}

    play(tmp_path, script)


def test_a_silent_probe_is_no_probe(tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        probe = await bench.probe()
        await probe.say()
        await bench.wakes_again()
        assert await probe.dropped()
        await bench.wakes_again()
        assert await bench.ray.report() is None

    play(tmp_path, script, silence=0.2)


def test_a_probe_that_does_not_read_is_dropped(tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        probe = await bench.probe()
        await probe.say()
        await bench.wakes_again()
        for number in range(30):
            await bench.ray.publish({"record": str(number) * 100_000})
        await bench.wakes_again()
        assert await bench.ray.report() is None

    play(tmp_path, script)


def test_the_end_waits_for_nobody(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "probe" / "socket") as bench:
            probe = await bench.probe()
            await probe.say()
            await bench.wakes_again()
        assert await probe.dropped()

    asyncio.run(asyncio.wait_for(main(), 3))
