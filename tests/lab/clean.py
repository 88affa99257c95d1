"""Takes the lab away again, going by what can be seen of it, not by what was written down: after any crash."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.lab import network, pidfile
from tests.lab.keeper import sweep_cgroup
from tests.lab.layout import Seat, cgroup, run_folder
from tests.lab.shell import CommandFailed, attempt, remove_tree, run


def sweep(patience: float = 10) -> None:
    """Everything, and again (for `patience` seconds) while something is left: a program that was being started as a
    signal came is nobody's, and may mount or make a namespace a moment after the look for them."""
    until = time.monotonic() + patience
    while True:
        try:
            _sweep()
        except CommandFailed:
            if time.monotonic() > until:
                raise
        if not leftovers() or time.monotonic() > until:
            return
        time.sleep(0.05)


def _sweep() -> None:
    """Processes, then mounts, namespaces, cgroups, and at last the run folder."""
    kill_group(cgroup())
    unmount_below(run_folder())
    for name in network.lab_namespaces():
        attempt(["ip", "netns", "del", name])
    remove_group(cgroup())
    remove_tree(run_folder())


def remove_host(seat: Seat) -> None:
    """One host, disk and all."""
    if keeper := pidfile.living(seat.folder / "keeper.pid"):
        with suppress(ProcessLookupError):  # it may end by itself just now
            os.kill(keeper, signal.SIGKILL)
    kill_group(seat.cgroup)
    unmount_below(seat.folder)
    network.unplug_host(seat)
    remove_group(seat.cgroup)
    remove_tree(seat.folder)


def leftovers() -> list[str]:
    """What of a lab can be seen on this machine, in words; empty when there is none."""
    found = [f"namespace {name}" for name in network.lab_namespaces()]
    found += [f"mount {place}" for place in mounts_below(run_folder())]
    found += [f"process {pid} in {group}" for group in _groups(cgroup()) for pid in _members(group)]
    found += [f"cgroup {group}" for group in _groups(cgroup())]
    return found + ([f"folder {run_folder()}"] if run_folder().exists() else [])


def kill_group(folder: Path, patience: float = 30) -> None:
    """Kill every process in a cgroup and below, frozen or not, and wait until they are gone."""
    if not folder.exists():
        return
    (folder / "cgroup.kill").write_text("1")
    until = time.monotonic() + patience
    while any(_members(group) for group in _groups(folder)):
        if time.monotonic() > until:
            raise TimeoutError(f"processes in {folder} do not die")
        time.sleep(0.02)


def remove_group(folder: Path, patience: float = 30) -> None:
    """A group whose processes have just died may stay busy for a moment more."""
    until = time.monotonic() + patience
    while folder.exists():
        sweep_cgroup(folder)
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def unmount_below(folder: Path) -> None:
    """Deepest first. A mount that a dying process still holds is detached, and ends with it."""
    for place in sorted(mounts_below(folder), reverse=True):
        if not attempt(["umount", place]).ok:
            run(["umount", "--lazy", place])


def mounts_below(folder: Path) -> list[str]:
    # The kernel writes a space in a path as \040.
    places = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    plain = [re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), place) for place in places]
    return [place for place in plain if place == str(folder) or place.startswith(f"{folder}/")]


def _groups(folder: Path) -> list[Path]:
    return [folder, *(path for path in folder.rglob("*") if path.is_dir())] if folder.exists() else []


def _members(group: Path) -> list[str]:
    try:
        return (group / "cgroup.procs").read_text().split()
    except OSError:  # it went away between the look at the folder and this one
        return []
