"""The probe as a process of its own, over a stand-in for Ray; the port Ray of the daemon is at the other end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from strixd import probe
from strixd.host.ray import RayByProbe
from strixd.ports import RayReport
from strixd.probe import members

MAIN = Path(probe.__path__[0]) / "__main__.py"
FAKE = Path(__file__).with_name("fake_ray")
HALO1 = {"name": "halo1", "address": "192.0.2.1", "since": 1}
HALO2 = {"name": "halo2", "address": "192.0.2.2", "since": 2}


class Bench:
    """One node: its command, its stand-in for Ray, the socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "probe" / "socket"
        self.state = folder / "cluster.json"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.cluster()

    def cluster(self, *nodes: dict[str, Any], **more: str) -> None:
        written = self.state.with_suffix(".new")
        written.write_text(json.dumps({"session": "session_1", "nodes": nodes, **more}))
        written.replace(self.state)

    def join(self, session: str) -> None:
        link = self.folder / "session_latest"
        link.unlink(missing_ok=True)
        link.symlink_to(self.folder / session)

    def command(self, script: str, *words: str) -> list[str]:
        where = (f"--node-ip-address=127.0.0.1 --port={self.port} --temp-dir={self.folder}").split()
        return [sys.executable, "-c", script, *where, "--labels=strixd-node=halo1,x=y", *words]

    @contextmanager
    def run(self, command: list[str], **environment: str) -> Iterator[subprocess.Popen[str]]:
        environment = {**os.environ, "PYTHONPATH": str(FAKE), "FAKE_RAY": str(self.state), **environment}
        whole = [sys.executable, str(MAIN), "--socket", str(self.socket), "--", *command]
        with subprocess.Popen(whole, env=environment, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def status(self, command: list[str], **environment: str) -> tuple[int, str]:
        with self.run(command, **environment) as process:
            return process.wait(ENDS), process.stderr.read() if process.stderr else ""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.listener.close()


ENDS = 20.0
"""Seconds in which what was asked to end has ended on a busy machine; by itself it would last a minute."""
STAY = "import time; time.sleep(60)"
SAY = "import pathlib, sys, time; pathlib.Path(sys.argv[-1]).touch(); time.sleep(60)"


def until(seen: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# The wrapper


@pytest.mark.parametrize(
    ("script", "status"),
    [("raise SystemExit(7)", 7), ("pass", 0), ("import os; os.kill(os.getpid(), 9)", 137)],
)
def test_the_status_is_the_commands(bench: Bench, script: str, status: int) -> None:
    assert bench.status(bench.command(script, "--head"))[0] == status


def test_a_command_that_does_not_exist(bench: Bench) -> None:
    status, words = bench.status(["/nowhere/ray", "start", "--head"])
    assert (status, words) == (127, "strixd-probe: Cannot start /nowhere/ray: No such file or directory\n")


@pytest.mark.parametrize(
    ("library", "status"),
    [(b"", 64), (b"no such word", 64), (b"\0RAY_AUTH_TOKEN_PATH\0", 0)],
    ids=["empty", "old", "new"],
)
def test_a_ray_without_tokens_is_refused_with_the_key(bench: Bench, library: bytes, status: int) -> None:
    package = bench.folder / "image" / "ray"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "_raylet.so").write_bytes(library)
    where = str(package.parent)
    ended, words = bench.status(bench.command("pass", "--head"), PYTHONPATH=where, RAY_AUTH_MODE="token")
    assert ended == status
    assert words.count("\n") == (status == 64), words
    assert ("knows no token authentication" in words) == (status == 64)
    assert bench.status(bench.command("pass", "--head"), PYTHONPATH=where)[0] == 0, "without the key nothing is asked"


def test_an_image_without_ray_is_refused_with_the_key(bench: Bench) -> None:
    status, words = bench.status(bench.command("pass", "--head"), PYTHONPATH="", RAY_AUTH_MODE="token")
    assert status == 64
    assert "has no Ray" in words


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_forwarded(bench: Bench, number: signal.Signals) -> None:
    script = "import signal, sys; signal.signal(2, signal.SIG_DFL)\n" + SAY
    with bench.run(bench.command(script, "--head", str(bench.folder / "up"))) as process:
        until((bench.folder / "up").exists)
        process.send_signal(number)
        assert process.wait(ENDS) == 128 + number


def wrapping(call: str) -> list[str]:
    return [sys.executable, "-c", f"import sys; from strixd.probe import wrapper; {call}"]


def test_a_deaf_command_is_killed(bench: Bench) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SAY
    command = [sys.executable, "-c", deaf, "--head", str(bench.folder / "up")]
    call = f"sys.exit(wrapper.supervise({command!r}, [sys.executable, '-c', {STAY!r}], stop_seconds=0.2))"
    with subprocess.Popen(wrapping(call)) as process:
        until((bench.folder / "up").exists)
        process.terminate()
        assert process.wait(ENDS) == 143


def test_a_look_that_dies_is_started_again(bench: Bench) -> None:
    count = bench.folder / "count"
    look = [sys.executable, "-c", f"open({str(count)!r}, 'a').write('x')"]
    count.touch()
    twice = f"import os, time\nwhile os.stat({str(count)!r}).st_size < 2: time.sleep(0.05)"
    command = [sys.executable, "-c", twice, "--head"]
    call = f"sys.exit(wrapper.supervise({command!r}, {look!r}))"
    assert subprocess.run(wrapping(call), timeout=60).returncode == 0


def test_a_worker_is_started_when_its_head_listens(bench: Bench) -> None:
    up = bench.folder / "up"
    bench.listener.close()
    with bench.run(bench.command(SAY, f"--address=127.0.0.1:{bench.port}", str(up))) as process:
        time.sleep(1.5)
        assert not up.exists()
        with socket.create_server(("127.0.0.1", bench.port)):
            until(up.exists)
        process.terminate()
        assert process.wait(ENDS) == 143


def has_begun(process: int) -> bool:
    """The wrapper has started the look, which it does after it has taken the signals to itself."""
    return bool(Path(f"/proc/{process}/task/{process}/children").read_text().strip())


def test_a_worker_that_waits_hears_sigterm(bench: Bench) -> None:
    bench.listener.close()
    with bench.run(bench.command(SAY, f"--address=127.0.0.1:{bench.port}", str(bench.folder / "up"))) as process:
        until(lambda: has_begun(process.pid))
        process.terminate()
        assert process.wait(ENDS) == 143
    assert not (bench.folder / "up").exists()


def test_the_session_of_an_older_container_is_forgotten(bench: Bench) -> None:
    bench.join("session_0")
    with bench.run(bench.command(STAY, "--head")):
        until(lambda: not (bench.folder / "session_latest").is_symlink())


# The look


Script = Callable[[RayByProbe, Callable[[Callable[[RayReport], bool]], Any]], Any]


def play(bench: Bench, script: Script) -> None:
    """Runs the script beside the served port; `seen` waits for a report of a kind."""

    async def main() -> None:
        ray, changed = RayByProbe(str(bench.socket)), asyncio.Event()

        async def seen(wanted: Callable[[RayReport], bool]) -> RayReport:
            async with asyncio.timeout(10):
                while not (report := await ray.report()) or not wanted(report):
                    changed.clear()
                    await changed.wait()
                return report

        watching = asyncio.create_task(ray.watch(lambda reason: changed.set()))
        await script(ray, seen)
        watching.cancel()

    with bench.run(bench.command(STAY, "--head")):
        asyncio.run(main())


def test_members_records_and_sessions(bench: Bench) -> None:
    async def script(ray: RayByProbe, seen: Any) -> None:
        await ray.publish({"digest": "sha256:1"})
        report = await seen(lambda r: not r.own_session)
        assert (report.session, report.version, report.members, report.error) == ("session_1", "2.60.0", (), "")
        bench.join("session_1")
        bench.cluster(HALO1, HALO2)
        report = await seen(lambda r: bool(r.own_session) and any(m.record for m in r.members))
        assert report.own_session == "session_1"
        assert [(m.name, m.address, m.alive, m.gpus) for m in report.members] == [
            ("halo1", "192.0.2.1", True, 1),
            ("halo2", "192.0.2.2", True, 1),
        ]
        record = dict(report.members[0].record)
        assert record.pop("digest") == "sha256:1"
        assert record.keys() == {"ranks", "cpu", "bytes", "gpu"}
        assert record["ranks"].isdigit()
        kept = json.loads((bench.folder / "kv" / "halo1").read_text())
        assert kept["digest"] == "sha256:1"
        assert abs(kept["at"] - time.time()) < 10
        bench.cluster({**HALO1, "since": 9}, session="session_2", cluster="another")
        report = await seen(lambda r: r.session == "session_2")
        assert report.own_session == "session_1", "this raylet belongs to a cluster that is gone"

    play(bench, script)


def test_another_key_is_said_as_such(bench: Bench) -> None:
    async def script(ray: RayByProbe, seen: Any) -> None:
        report = await seen(lambda r: bool(r.error))
        assert report.error == f"the head at 127.0.0.1:{bench.port} has another cluster key"
        assert (report.session, report.members) == ("", ())
        bench.cluster(refuse="Timed out while waiting for GCS\nmore")
        report = await seen(lambda r: "key" not in r.error)
        assert report.error.endswith("is not there yet: Timed out while waiting for GCS")
        bench.cluster(HALO1)
        assert (await seen(lambda r: bool(r.members))).error == ""

    bench.cluster(refuse="key")
    play(bench, script)


def test_nobody_listens(bench: Bench) -> None:
    async def script(ray: RayByProbe, seen: Any) -> None:
        report = await seen(lambda r: bool(r.error))
        assert report.error == f"the head at 127.0.0.1:{bench.port} is not there yet: Connection refused"

    bench.listener.close()
    play(bench, script)


def test_the_look_finds_a_restarted_daemon(bench: Bench) -> None:
    async def once() -> None:
        ray, changed = RayByProbe(str(bench.socket)), asyncio.Event()
        watching = asyncio.create_task(ray.watch(lambda reason: changed.set()))
        async with asyncio.timeout(10):
            await changed.wait()
        assert await ray.report()
        watching.cancel()

    with bench.run(bench.command(STAY, "--head")):
        asyncio.run(once())
        asyncio.run(once())


def test_the_look_ends_with_its_wrapper(bench: Bench) -> None:
    def looks() -> list[str]:
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = file.read_text()
            except OSError:
                continue
            if "--look=" in words and str(bench.folder) in words:
                found.append(words)
        return found

    with bench.run(bench.command("import time; time.sleep(3)", "--head")) as process:
        until(looks)
        process.kill()
        process.wait()
        until(lambda: not looks())


# Pure parts


def test_of_the_dead_one_is_shown_where_none_lives() -> None:
    def node(name: str, *, alive: bool, gpus: int) -> dict[str, Any]:
        return {"name": name, "address": "a", "alive": alive, "gpus": gpus}

    old, young, other = (node("b", alive=False, gpus=1), node("b", alive=False, gpus=2), node("a", alive=True, gpus=3))
    assert members.current([old, young, other]) == [other, young]
    twin = node("b", alive=True, gpus=4)
    assert members.current([old, twin, young, other]) == [other, twin]
    assert members.current([twin, node("b", alive=True, gpus=5)]) == [twin, node("b", alive=True, gpus=5)]


def test_a_record_that_is_none() -> None:
    wrong = (
        b"",
        b"[1]",
        b"\xff",
        b'{"a": ' + b"[" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": "' + b"b" * 65536 + b'"}',
    )
    assert [members.read_record(text) for text in wrong] == [{}] * len(wrong)
    assert members.read_record(b'{"a": "b"}') == {"a": "b"}


def test_ages_and_what_is_measured_change_a_report_once() -> None:
    def report(age: float, **record: str) -> dict[str, Any]:
        return {"members": [{"age": age, "record": record}]}

    assert members.gist(report(1, cpu="1", bytes="1")) == members.gist(report(14, cpu="2", bytes="2"))
    assert members.gist(report(14)) != members.gist(report(16))
    assert members.gist(report(1, ranks="1")) != members.gist(report(1, ranks="0"))
