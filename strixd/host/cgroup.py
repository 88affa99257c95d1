"""The processes of a unit, and its memory limit, from the kernel: the control group under /sys/fs/cgroup.

A container has groups of its own below its unit's, so the whole tree counts. systemd is not asked: what it believes
gone may still hold the GPU.
"""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

from strixd.ports import NO_BOUND

ROOT = Path("/sys/fs/cgroup")


def survivors(group: str, root: Path = ROOT) -> tuple[str, ...]:
    """The living processes in the group and below, as "1234 (python3)"; none when there is no such group.

    `group` is as in systemd's ControlGroup, "/strixd.slice/…"; "" is no group, not the root of all."""
    folder = root / group.strip("/")
    if not group.strip("/") or not _populated(folder):
        return ()
    return tuple(f"{pid} ({_name(pid)})" for pid in members(folder)) or ("unnamed",)


def titles(group: str, root: Path = ROOT) -> tuple[str, ...]:
    """Their command lines, which some programs use to say what they do ("ray::IDLE")."""
    found = members(root / group.strip("/")) if group.strip("/") else []
    return tuple(filter(None, map(_title, found)))


def interrupt(group: str, title: str, root: Path = ROOT) -> None:
    """SIGINT to those whose command line begins with `title`. The number is pinned before the title is read, so that
    the signal reaches no later process of that number."""
    for pid in members(root / group.strip("/")) if group.strip("/") else []:
        with suppress(ProcessLookupError):
            pinned = os.pidfd_open(int(pid))
            try:
                if _title(pid).startswith(title):
                    signal.pidfd_send_signal(pinned, signal.SIGINT)
            finally:
                os.close(pinned)


def _title(pid: str) -> str:
    """By its short name when it has no command line any more, or the kernel is at work in it (state D): reading the
    command line would wait for that."""
    folder = Path("/proc") / pid
    name, _, state = _read(folder / "stat").partition("(")[2].rpartition(") ")
    line = "" if state.startswith("D") else _read(folder / "cmdline")
    return line.replace("\0", " ").strip() or name


def group(number: int, root: Path = ROOT) -> str:
    """The group with this number, as in systemd's ControlGroup; "" when it is gone. A group's number is its folder's
    inode."""
    for folder, _, _ in os.walk(root):
        if _inode(folder) == number:
            return folder.removeprefix(str(root))
    return ""


def unit(group: str) -> str:
    """The system's unit that the group is or belongs to; "" for none. Below a unit may be groups of containers, and
    units of a user's own systemd."""
    return next((part for part in group.split("/") if part.endswith((".service", ".scope", ".socket"))), "")


def processes(group: str, root: Path = ROOT) -> tuple[tuple[int, str], ...]:
    """Number and name of the living processes in this very group."""
    pids = _read(root / group.strip("/") / "cgroup.procs").split()
    return tuple((int(pid), _name(pid)) for pid in sorted(pids, key=int))


def _inode(folder: str) -> int:
    try:
        return Path(folder).stat().st_ino
    except OSError:
        return 0


def limit(group: str, root: Path = ROOT) -> int | None:
    """memory.max in bytes; NO_BOUND for "max", or where the group has no memory controller; None without a group."""
    folder = root / group.strip("/")
    if not group.strip("/") or not folder.is_dir():
        return None
    said = _read(folder / "memory.max").strip()
    return int(said) if said.isdecimal() else NO_BOUND


def reached(group: str, root: Path = ROOT) -> int:
    """How often this group's own limit left the kernel nothing but to kill (cgroup-v2.rst, memory.events)."""
    found = re.search(r"^oom (\d+)$", _read(root / group.strip("/") / "memory.events.local"), re.M)
    return int(found[1]) if found else 0


def members(folder: Path) -> list[str]:
    """Process ids in a group's folder and below, sorted."""
    found = {pid for procs in folder.rglob("cgroup.procs") for pid in _read(procs).split()}
    return sorted(found, key=int)


def _populated(folder: Path) -> bool:
    """The kernel says it for the whole tree at once, and does not count zombies (cgroup-v2.rst, cgroup.events)."""
    return "populated 1" in _read(folder / "cgroup.events")


def _name(pid: str) -> str:
    return _read(Path("/proc") / pid / "comm").strip() or "gone"


def _read(path: Path) -> str:
    """ "" when it is gone, or going: reading a dying group says ENODEV, a dying process ESRCH."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
