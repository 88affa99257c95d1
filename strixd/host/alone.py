"""One strixd per host: a second one, with whatever control socket, would take back what the first one does.

The kernel lets the lock go with the process that holds it, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strixd.errors import Refused, Unavailable

LOCK = Path("/run/strixd/lock")
"""For root's eyes only: whoever may open it, may lock it."""


@contextmanager
def alone(lock: Path = LOCK) -> Iterator[None]:
    """Raises Refused, with who is there already, and Unavailable when there can be no lock."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        hint = "as root: systemd-tmpfiles --create strixd.conf"
        raise Unavailable(f"Cannot lock {lock}: {error.strerror}", hint=hint) from None
    try:
        _take(fd)
        yield
    finally:
        os.close(fd)


def _take(fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = _holder(os.pread(fd, 20, 0).decode(errors="replace").strip())
        hint = "systemctl status strixd; strixd-cli status"
        raise Refused(f"Cannot start: another strixd keeps this host: {who}", hint=hint) from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"%d\n" % os.getpid(), 0)


def _holder(pid: str) -> str:
    """The process, and the unit that it is of, where it is of one."""
    try:
        group = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return f"process {pid}"
    unit = next((line.rpartition("/")[2] for line in group if line.endswith((".service", ".scope"))), "")
    return f"process {pid} ({unit})" if unit else f"process {pid}"
