"""The processes of a unit, and its memory limit, from the kernel: the control group under /sys/fs/cgroup.

A container has groups of its own below its unit's, so the whole tree counts. systemd is not asked: what it believes
gone may still hold the GPU.
"""

from __future__ import annotations

import os
import re
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
    pids = read(root / group.strip("/") / "cgroup.procs").split()
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
    said = read(folder / "memory.max").strip()
    return int(said) if said.isdecimal() else NO_BOUND


def reached(group: str, root: Path = ROOT) -> int:
    """How often this group's own limit left the kernel nothing but to kill (cgroup-v2.rst, memory.events)."""
    found = re.search(r"^oom (\d+)$", read(root / group.strip("/") / "memory.events.local"), re.M)
    return int(found[1]) if found else 0


def members(folder: Path) -> list[str]:
    """Process ids in a group's folder and below, sorted."""
    found = {pid for procs in folder.rglob("cgroup.procs") for pid in read(procs).split()}
    return sorted(found, key=int)


def _populated(folder: Path) -> bool:
    """The kernel says it for the whole tree at once, and does not count zombies (cgroup-v2.rst, cgroup.events)."""
    return "populated 1" in read(folder / "cgroup.events")


def _name(pid: str) -> str:
    return read(Path("/proc") / pid / "comm").strip() or "gone"


def read(path: Path) -> str:
    """ "" when it is gone, or going: reading a dying group says ENODEV, a dying process ESRCH."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
