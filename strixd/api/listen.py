"""Where the control socket comes from: handed over by systemd, or bound here when --socket names a path."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Final

from strixd.errors import Refused, Unavailable

_FIRST: Final = 3  # SD_LISTEN_FDS_START
_BACKLOG: Final = 1024


def inherited(environ: MutableMapping[str, str] = os.environ) -> socket.socket | None:
    """The socket that systemd passed, or None. Takes the variables away: they are not meant for children."""
    names = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
    pid, count, _ = (environ.pop(name, "") for name in names)
    if pid != str(os.getpid()) or not count.isdecimal() or count == "0":
        return None
    if count != "1":
        raise Refused(f"Cannot listen: systemd passed {count} sockets where strixd takes one")
    listener = socket.socket(fileno=_FIRST)
    listener.set_inheritable(False)
    if listener.family != socket.AF_UNIX or listener.type != socket.SOCK_STREAM:
        raise Refused("Cannot listen: the socket that systemd passed is no unix stream socket")
    return listener


def bind(path: str) -> socket.socket:
    """A listening socket at `path`, open to all: who may ask what is decided per call. A socket that nobody
    listens on any more is replaced; raises Refused when somebody does, Unavailable when it cannot be made."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _alone_in(Path(path).parent):
            _clear(path)
            listener.bind(path)
            Path(path).chmod(0o666)
            listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise Unavailable(f"Cannot listen on {path}: {error.strerror or error}") from None
    except Refused:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Two daemons that start at once must not each take the other's socket for a dead one."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _clear(path: str) -> None:
    try:
        mode = Path(path).lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Refused(f"Cannot listen on {path}: a file that is no socket is there")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
        except BlockingIOError:  # its queue is full: very much alive
            pass
    raise Refused(f"Cannot listen on {path}: another process listens there")
