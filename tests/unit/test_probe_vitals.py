"""What the probe measures: over laid folders, and over processes of our own that call themselves ranks."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strixd.probe.vitals import Folders, GpuMemory, Processes, began, cpu_seconds, is_rank, is_server, sweep
from strixd.resources import leftovers

TITLES = {
    "ray::RayWorkerProc.run": True,
    "ray::RayWorkerWrapper.execute_method": True,
    "ray::RayWorkerP": True,
    "VLLM::EngineCore": True,
    "ray::IDLE": False,
    "ray::DashboardAgent": False,
    "ray::RuntimeEnvAgent": False,
    "raylet": False,
    "": False,
}


@pytest.mark.parametrize(("title", "rank"), TITLES.items())
def test_what_is_a_rank(title: str, rank: bool) -> None:
    assert is_rank(title) == leftovers.is_rank(title) == rank


def test_what_is_a_server() -> None:
    assert is_server(["/opt/venv/bin/python", "/opt/venv/bin/vllm", "serve", "m"])
    assert is_server(["vllm", "serve"])
    assert not is_server(["/opt/vllm/bin/python", "-u", "/opt/vllm/lib/ray/log_monitor.py", "vllm"])


@contextmanager
def rank(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that calls itself a rank, alone in a /proc of its own."""
    program = "import time; print(flush=True); time.sleep(60)"  # what still starts may be where its title is not asked
    command = ["ray::RayWorkerProc.run", "-c", program]
    sleep = subprocess.Popen(command, executable=sys.executable, stdout=subprocess.PIPE)
    assert sleep.stdout
    (folder / str(sleep.pid)).symlink_to(f"/proc/{sleep.pid}")
    try:
        assert sleep.stdout.read(1)
        yield sleep
    finally:
        sleep.kill()
        sleep.wait()
        sleep.stdout.close()


def until_over(processes: Processes) -> None:
    deadline = time.monotonic() + 5
    while processes.count():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_stopped_rank_lives_and_a_zombie_does_not(tmp_path: Path) -> None:
    with rank(tmp_path) as process:
        processes = Processes(tmp_path)
        assert processes.count() == 1
        assert processes.model()
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        assert processes.count() == 1
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
        assert processes.count() == Processes(tmp_path).count() == 0


def test_the_end_of_a_rank_is_told_by_its_descriptor(tmp_path: Path) -> None:
    with rank(tmp_path) as process:
        processes = Processes(tmp_path)
        processes.count()
        (descriptor,) = processes.ranks.values()
        process.kill()
        process.wait()
        until_over(processes)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_what_calls_itself_something_else_is_no_rank_any_more(tmp_path: Path) -> None:
    (tmp_path / "laid").mkdir()
    with rank(tmp_path) as process:
        processes = Processes(tmp_path)
        assert processes.count() == 1
        here = tmp_path / str(process.pid)
        here.unlink()
        here.mkdir()
        (here / "stat").write_text(f"{process.pid} (ray::RayWorkerP) S 1")
        (here / "cmdline").write_bytes(b"")
        assert processes.count() == 1, "without a title it is on its way out, and still there"
        (here / "cmdline").write_bytes(b"ray::IDLE\0\0")
        assert processes.count() == 0


def test_one_that_the_kernel_holds_is_known_by_its_name_and_not_asked(tmp_path: Path) -> None:
    here = tmp_path / str(os.getpid())
    here.mkdir()
    (here / "stat").write_text("1 (ray::RayWorkerP) D 1 1")
    (here / "cmdline").mkdir()  # reading it would be an error
    assert Processes(tmp_path).count() == 1


def test_bytes_come_after_a_whole_walk_however_short_its_pieces(tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / str(number % 3)
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.bin").write_bytes(b"x" * 5000)
    (tmp_path / "link").symlink_to("/usr")
    folders = Folders((tmp_path, tmp_path / "absent"))
    assert folders.bytes(0.0) == ""
    pieces = 1
    while not (whole := folders.bytes(0.0)):
        pieces += 1
    assert int(whole) == sum(path.lstat().st_blocks * 512 for path in tmp_path.rglob("*") if not path.is_dir())
    assert pieces > 20
    (tmp_path / "more").write_bytes(b"x" * 100_000)
    assert int(Folders((tmp_path,)).bytes(10.0)) >= int(whole) + 100_000


def test_cpu_time_of_the_group(tmp_path: Path) -> None:
    assert cpu_seconds(tmp_path) == ""
    group = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    folder = tmp_path / group.removeprefix("0::/")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.stat").write_text("usage_usec 59217971\nuser_usec 39802042\nsystem_usec 19415928\n")
    assert cpu_seconds(tmp_path) == "59.2"


def test_only_what_a_model_left_behind_is_swept(tmp_path: Path) -> None:
    """The names are those seen in a container's /dev/shm, and those of Ray's source."""
    left = ("psm_7f53433d", "sem.mp-x1", "nccl-Ab12", "torch_12_34")
    others = ("sem.obj7f", "sem.hdr7f", "plasma7f", "ray_x", "other")
    for name in (*left, *others):
        (tmp_path / name).touch()
    (tmp_path / "psm_folder").mkdir()
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*others, "psm_folder"}


def test_what_is_older_than_the_server_that_is_there_is_swept(tmp_path: Path) -> None:
    """The server before it may have ended between two looks."""
    for name, age in (("psm_old", 3600.0), ("psm_new", 0.0)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    sweep(tmp_path, before=began(Path(f"/proc/{os.getpid()}")))
    assert [path.name for path in tmp_path.iterdir()] == ["psm_new"]


def test_since_when_a_server_is_there(tmp_path: Path) -> None:
    assert Processes(tmp_path).server_since == math.inf
    assert not Processes(tmp_path).model()
    now = time.time()
    with subprocess.Popen(["bash", "-c", "exec -a vllm sleep 60"]) as server:
        (tmp_path / str(server.pid)).symlink_to(f"/proc/{server.pid}")
        processes = Processes(tmp_path)
        while processes.count() or processes.server_since == math.inf:  # until it calls itself so
            assert time.time() < now + 20
            time.sleep(0.01)
        assert now - 1 < processes.server_since < time.time() + 1
        assert processes.model()
        server.kill()
    assert began(tmp_path / "gone") == 0.0


def test_gpu_memory_beyond_the_least_that_was_held_without_a_model(tmp_path: Path) -> None:
    card, connector = tmp_path / "card1" / "device", tmp_path / "card1-DP-1" / "device"
    gpus = GpuMemory(tmp_path)
    assert gpus.held() == "", "no such GPU"
    card.mkdir(parents=True)
    connector.parent.mkdir()
    connector.symlink_to(card)

    def use(gtt: int, vram: int) -> str:
        (card / "mem_info_gtt_used").write_text(f"{gtt << 20}\n")
        (card / "mem_info_vram_used").write_text(f"{vram << 20}\n")
        (card / "mem_info_vis_vram_used").write_text(f"{vram << 20}\n")
        (card / "mem_info_gtt_total").write_text(f"{124 << 30}\n")
        return gpus.held()

    assert use(700, 400) == "0", "a desktop's"
    assert use(60 << 10, 400) == "59"
    assert use(900, 500) == "0"
    assert use(100, 100) == "0"
    assert use(2100, 100) == "1", "the least counts"
