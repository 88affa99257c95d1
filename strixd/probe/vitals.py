"""What is measured inside the container: the living ranks, CPU time, bytes on the disk, GPU memory that is not free
again; and the shared memory that a model left behind.

A rank's end is told by the kernel (a pidfd), so nobody waits for the next look to learn of it; and it is told only when
the last thread has ended, so one that is stopped, or stuck in a driver, lives, and a zombie does not.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path

FOLDERS = (Path("/models"), Path("/cache"))
SHARES = ("mem_info_gtt_used", "mem_info_vram_used")
WALK_SECONDS = 0.02  # spent on the folders at each renewal; a walk goes on at the next one
LEFT_BEHIND = ("psm_*", "nccl*", "torch_*", "sem.*")  # of Python, NCCL and RCCL, PyTorch, POSIX
RAYS_OWN = ("sem.obj", "sem.hdr")  # of its object store (ray/object_manager/common.cc); plasma itself has no name here


def is_rank(title: str) -> bool:
    """As vLLM's processes call themselves: RayWorkerWrapper or RayWorkerProc of Ray's actors, VLLM::EngineCore. Ray's
    own agents are "ray::…" too (DashboardAgent, RuntimeEnvAgent, IDLE; Ray 2.60, seen)."""
    return title.startswith(("ray::RayWorker", "VLLM::"))


def is_server(words: list[str]) -> bool:
    """`vllm serve …`, as a script of Python's or by itself."""
    return any(word.rpartition("/")[2] == "vllm" for word in words[:3])


class Processes:
    """Those of a model in this PID namespace, which the server's container shares on the head."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self.ranks: dict[int, int] = {}  # process → descriptor that becomes readable at its end
        self.server_since = math.inf  # since when a server is there, in seconds since the epoch; endless without one

    def count(self) -> int:
        """The living ranks. One that is on its way out has no title any more: it stays until it has ended."""
        found = {int(path.name): words(path) for path in self._proc.iterdir() if path.name.isdigit()}
        servers = [began(self._proc / str(process)) for process, line in found.items() if is_server(line)]
        self.server_since = min(servers, default=math.inf)
        for process in [each for each in self.ranks if each not in found or self._over(each, found[each][0])]:
            os.close(self.ranks.pop(process))
        for process in [each for each in found if is_rank(found[each][0]) and each not in self.ranks]:
            self._hold(process)
        return len(self.ranks)

    def model(self) -> bool:
        """Whether anything of a model is here now."""
        return self.count() > 0 or self.server_since < math.inf

    def _hold(self, process: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.ranks[process] = os.pidfd_open(process)
            if self._over(process, ""):
                os.close(self.ranks.pop(process))

    def _over(self, process: int, title: str) -> bool:
        """It has ended, or is something else by now."""
        return bool(select.select([self.ranks[process]], [], [], 0)[0]) or (bool(title) and not is_rank(title))


def words(process: Path) -> list[str]:
    """The command line of a process, or its short name alone where it has none any more or the kernel is at work in it:
    reading the command line would wait for that (state D, proc_pid_stat(5)). "" when it is gone."""
    with contextlib.suppress(OSError):
        name, _, state = (process / "stat").read_text(errors="replace").partition("(")[2].rpartition(") ")
        line = "" if state.startswith("D") else (process / "cmdline").read_bytes().decode(errors="replace")
        return [word.strip() for word in (line or name).split("\0")]
    return [""]


def began(process: Path) -> float:
    """Seconds since the epoch, 0 when it is gone."""
    with contextlib.suppress(OSError, LookupError, ValueError):
        ticks = int((process / "stat").read_text(errors="replace").rpartition(") ")[2].split()[19])  # proc_pid_stat(5)
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    return 0.0


class Folders:
    """What folders take on the disk, walked through a little at a time; links are not followed."""

    def __init__(self, roots: tuple[Path, ...] = FOLDERS) -> None:
        self._roots = roots
        self._walk = sizes(roots)
        self._sum = 0
        self._whole = ""

    def bytes(self, seconds: float = WALK_SECONDS) -> str:
        """By the last whole walk, "" before the first one is over."""
        deadline = time.monotonic() + seconds
        for size in self._walk:
            self._sum += size
            if time.monotonic() > deadline:
                return self._whole
        self._whole, self._sum, self._walk = str(self._sum), 0, sizes(self._roots)
        return self._whole


def sizes(roots: tuple[Path, ...]) -> Iterator[int]:
    """In blocks of 512 bytes (stat(2)), so that a file grows as it comes, whatever its length was set to."""
    for root in roots:
        for folder, _, files in os.walk(root):
            yield 0
            for name in files:
                with contextlib.suppress(OSError):
                    yield (Path(folder) / name).lstat().st_blocks * 512


def cpu_seconds(root: Path = Path("/sys/fs/cgroup")) -> str:
    """Of this process's control group and all below, "" where there is no cpu.stat. In a container the group is the
    root of what is seen, and /proc says "0::/" (cgroup_namespaces(7))."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        groups = Path("/proc/self/cgroup").read_text().splitlines()
        group = next(line.removeprefix("0::/") for line in groups if line.startswith("0::/"))
        used = dict(line.split() for line in (root / group / "cpu.stat").read_text().splitlines())
        return f"{int(used['usage_usec']) / 1e6:.1f}"
    return ""


def sweep(shared: Path, before: float = math.inf) -> None:
    """Removes what a model that was killed left in shared memory: what is older than `before`, in seconds since the
    epoch. Only when no rank is there."""
    found = [path for pattern in LEFT_BEHIND for path in shared.glob(pattern)]
    for path in found:
        with contextlib.suppress(OSError):
            if not path.name.startswith(RAYS_OWN) and path.lstat().st_mtime < before:
                path.unlink()


class GpuMemory:
    """What amdgpu's GPUs hold (mem_info_gtt_used and mem_info_vram_used, in bytes) beyond the least that they held
    while no model ran here: other programs have their share of it, too."""

    def __init__(self, drm: Path = Path("/sys/class/drm")) -> None:
        self._drm = drm
        self._least: int | None = None

    def held(self) -> str:
        """GiB, rounded down: a desktop makes no news. Asked while no rank lives. "" where there is no such GPU."""
        cards = [path for path in self._drm.glob("card*") if path.name[4:].isdigit()]  # "card1-DP-1" is a connector
        used = [
            _number(card / "device" / name) for card in cards for name in SHARES if (card / "device" / name).exists()
        ]
        if not used:
            return ""
        now = sum(used)
        self._least = now if self._least is None else min(self._least, now)
        return str((now - self._least) >> 30)


def _number(path: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return 0


class Vitals:
    """All of it for the look. `shared`: the folder to sweep, "" for none."""

    def __init__(self, shared: str = "") -> None:
        self._shared = shared
        self.processes = Processes()
        self._folders = Folders()
        self._gpus = GpuMemory()

    def ranks(self) -> int:
        """How many live; without any, shared memory is swept. A server that is there keeps what is younger than itself:
        one may end and the next begin between two looks."""
        count = self.processes.count()
        if self._shared and not count:
            sweep(Path(self._shared), before=self.processes.server_since)
        return count

    def held(self) -> str:
        """GiB of GPU memory that the ended model has not given back, "" while one runs or when it is not known."""
        return "" if self.processes.ranks else self._gpus.held()

    def record(self) -> dict[str, str]:
        return {"cpu": cpu_seconds(), "bytes": self._folders.bytes()}
