"""The processes of the workload as the kernel has them: states, times, memory, and where each thread stands.

What may hang comes last: a title lies in the memory of the process, whose lock a stuck one may hold.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from strixd.host import cgroup

SLICE = "/strixd.slice/strixd-workload.slice"
PROC = Path("/proc")
THREADS = 400
"""Of a process whose stacks are read; Ray's have hundreds that all wait for the same."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Stat:
    """Of /proc/PID/stat (proc_pid_stat(5)). CPU time in seconds, memory in bytes."""

    name: str
    state: str
    parent: int
    cpu: float
    threads: int
    resident: int


def stat(folder: Path) -> Stat:
    """Raises OSError, also when the process has gone, and ValueError."""
    name, _, rest = (folder / "stat").read_text(errors="replace").partition("(")[2].rpartition(")")
    field = rest.split()
    if len(field) < 22:
        raise ValueError(f"cannot read {folder}/stat")
    cpu = (int(field[11]) + int(field[12])) / _TICKS
    return Stat(name, field[0], int(field[1]), cpu, int(field[17]), int(field[21]) * _PAGE)


def pids(group: str = SLICE, root: Path = cgroup.ROOT) -> list[str]:
    return cgroup.members(root / group.strip("/"))


def processes(group: str = SLICE, root: Path = cgroup.ROOT, proc: Path = PROC) -> Iterator[str]:
    """The lines of processes.txt."""
    known = pids(group, root)
    yield f"{len(known)} processes in {group}"
    for pid in known:
        yield from _process(proc / pid)
    yield ""
    yield "titles:"
    for pid in known:
        yield f"{pid} {_read(proc / pid / 'cmdline').replace(chr(0), ' ').strip()}"


def _process(folder: Path) -> Iterator[str]:
    try:
        found = stat(folder)
    except (OSError, ValueError) as error:
        yield f"{folder.name}: {error}"
        return
    group = _read(folder / "cgroup").strip().rpartition(SLICE)[2]
    memory = f"{found.resident / 2**20:.0f} MiB"
    yield ""
    yield (
        f"{folder.name} ({found.name}) {found.state}, parent {found.parent}, {found.cpu:.1f} s of CPU, {memory}, "
        f"{found.threads} threads, in {group or '/'}"
    )
    yield from _stacks(folder)


def _stacks(folder: Path) -> Iterator[str]:
    """Threads that stand at the same place share one stack."""
    alike: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    threads = sorted(_threads(folder), key=int)
    for thread in threads[:THREADS]:
        place = folder / "task" / thread
        alike[_state(place), _read(place / "wchan").strip(), _stack(place)].append(thread)
    for (state, channel, stack), same in alike.items():
        names = sorted({_read(folder / "task" / thread / "comm").strip() for thread in same})
        more = f" and {len(same) - 8} more" if len(same) > 8 else ""
        yield f"  threads {' '.join(same[:8])}{more} ({', '.join(names[:4])}) {state}, waiting in {channel or '-'}"
        yield from (f"    {frame}" for frame in stack.splitlines())
    if len(threads) > THREADS:
        yield f"  {len(threads) - THREADS} more threads were not looked at"


def _threads(folder: Path) -> list[str]:
    try:
        return [path.name for path in (folder / "task").iterdir()]
    except OSError:
        return []


def _state(place: Path) -> str:
    try:
        return stat(place).state
    except (OSError, ValueError):
        return "gone"


def _stack(place: Path) -> str:
    try:
        return (place / "stack").read_text(errors="replace") or "no kernel stack: it runs"
    except OSError as error:
        return f"no kernel stack: {error.strerror}"


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
