"""A file that names a process by its number and the time at which it began: numbers come round again (every 32768
processes by default, and all faults in a row make more), and a host's keeper was taken for running whose number another
process had."""

from __future__ import annotations

from pathlib import Path


def write(file: Path, pid: int) -> None:
    """Of a process that has not been waited for."""
    file.write_text(f"{pid} {_stat(pid)[19]}")


def living(file: Path) -> int | None:
    """Its number; None when it has ended, or nothing is written."""
    try:
        pid, began = file.read_text().split()
        stat = _stat(int(pid))
    except (OSError, ValueError):
        return None
    return int(pid) if stat[19] == began and stat[0] != "Z" else None


def _stat(pid: int) -> list[str]:
    """proc(5): from the third field, the state, on; the 22nd, its beginning, is at 19."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
