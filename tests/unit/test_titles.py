"""How the processes of a unit are called while one of them hangs whoever reads its memory."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from strixd.host import titles
from strixd.host.titles import Titles
from strixd.resources.drain import ENGINE
from strixd.resources.leftovers import is_rank
from tests.laid_tree import lay

GROUP = "/a.slice/x.service"
CALLED = {
    41: "ray::RayWorkerWrapper.execute_method",
    42: "VLLM::EngineCore_DP0",
    43: "ray::IDLE",
    44: "python3 -m ray.dashboard.agent",
}
SHORT = 15
"""Characters that the kernel keeps (TASK_COMM_LEN)."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(titles, "ANSWER", 0.1)


def laid(root: Path, called: dict[int, str], *, hung: set[int], state: str = "S") -> Titles:
    """A FIFO without a writer: whoever opens it waits."""
    lay(root, "".join(f"proc/{pid}/stat: {pid} ({title[:SHORT]}) {state} 1 1\n" for pid, title in called.items()))
    lay(root, f"cgroup{GROUP}/container/")
    (root / f"cgroup{GROUP}/container/cgroup.procs").write_text("".join(f"{pid}\n" for pid in called))
    for pid, title in called.items():
        line = root / f"proc/{pid}/cmdline"
        os.mkfifo(line) if pid in hung else line.write_text(title.replace(" ", "\0") + "\0")
    return Titles(root / "cgroup", root / "proc")


def _freed(root: Path, hung: set[int]) -> None:
    """The lock is given back; each line is read at the next look, too."""
    for pid in sorted(hung):
        line = root / f"proc/{pid}/cmdline"
        writer = os.open(line, os.O_RDWR)
        line.unlink()
        line.write_text(CALLED[pid])
        os.close(writer)


@pytest.mark.parametrize("hung", [set[int](), {41}, {42}, {44}, {41, 43}, {41, 42, 43, 44}])
def test_a_process_that_hangs_its_reader_is_called_by_its_short_name(tmp_path: Path, hung: set[int]) -> None:
    async def scenario() -> None:
        found = laid(tmp_path, CALLED, hung=hung)
        for _ in range(3):
            seen = dict(zip(CALLED, await found.of(GROUP), strict=True))
            for pid, title in CALLED.items():
                assert seen[pid] in (title, title[:SHORT])
                assert pid not in hung or seen[pid] == title[:SHORT]
            assert [pid for pid, title in seen.items() if is_rank(title)] == [41, 42]
            assert [pid for pid, title in seen.items() if title.startswith(ENGINE)] == [42]
        _freed(tmp_path, hung)
        async with asyncio.timeout(30):
            while await found.of(GROUP) != tuple(CALLED.values()):
                continue

    asyncio.run(scenario())


def test_one_in_which_the_kernel_is_at_work_is_not_read_at_all(tmp_path: Path) -> None:
    found = laid(tmp_path, CALLED, hung=set(CALLED), state="D")
    assert asyncio.run(found.of(GROUP)) == tuple(title[:SHORT] for title in CALLED.values())


@pytest.mark.parametrize("group", ["", "/", "/a.slice/gone.service"])
def test_no_group_has_none(tmp_path: Path, group: str) -> None:
    assert asyncio.run(laid(tmp_path, CALLED, hung=set()).of(group)) == ()


@pytest.mark.parametrize("hangs", ["engine", "other"])
def test_an_interrupt_reaches_the_engine_and_nobody_later(tmp_path: Path, hangs: str) -> None:
    """What is read when the lock is given back, hours later, sends no signal."""
    with ExitStack() as ends:
        engine, other = (ends.enter_context(subprocess.Popen(["sleep", "60"])) for _ in range(2))
        ends.callback(other.kill)
        called = {engine.pid: "VLLM::EngineCore", other.pid: "ray::RayWorkerWrapper"}
        hung = engine.pid if hangs == "engine" else other.pid

        async def scenario() -> None:
            found = laid(tmp_path, called, hung={hung})
            await found.interrupt(GROUP, ENGINE)
            assert engine.wait(10) == -signal.SIGINT
            (tmp_path / f"proc/{hung}/cmdline").write_text("VLLM::EngineCore")
            await asyncio.sleep(0.1)
            assert other.poll() is None

        asyncio.run(scenario())
