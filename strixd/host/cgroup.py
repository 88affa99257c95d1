"""The processes of a unit, from the kernel's own list: the control group under /sys/fs/cgroup.

A container has groups of its own below its unit's, so the whole tree counts. systemd is not asked: what it believes
gone may still hold the GPU.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def survivors(group: str, root: Path = ROOT) -> tuple[str, ...]:
    """The living processes in the group and below, as "1234 (python3)"; none when there is no such group.

    `group` is as in systemd's ControlGroup, "/strixd.slice/…"; "" is no group, not the root of all."""
    folder = root / group.strip("/")
    if not group.strip("/") or not _populated(folder):
        return ()
    return tuple(f"{pid} ({_name(pid)})" for pid in _members(folder)) or ("unnamed",)


def titles(group: str, root: Path = ROOT) -> tuple[str, ...]:
    """Their command lines, which some programs use to say what they do ("ray::IDLE")."""
    members = _members(root / group.strip("/")) if group.strip("/") else []
    return tuple(filter(None, map(_title, members)))


def interrupt(group: str, title: str, root: Path = ROOT) -> None:
    """SIGINT to those whose command line begins with `title`. The number is pinned before the title is read, so that
    the signal reaches no later process of that number."""
    for pid in _members(root / group.strip("/")) if group.strip("/") else []:
        with suppress(ProcessLookupError):
            pinned = os.pidfd_open(int(pid))
            try:
                if _title(pid).startswith(title):
                    signal.pidfd_send_signal(pinned, signal.SIGINT)
            finally:
                os.close(pinned)


def _title(pid: str) -> str:
    return _read(Path("/proc") / pid / "cmdline").replace("\0", " ").strip()


def _members(folder: Path) -> list[str]:
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
