"""Where the control socket comes from: handed over by systemd, or bound here when --socket names a path. The sockets of
the metrics are bound here, too."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import socket
import stat
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Final

from strixd.errors import Refused, Unavailable

_FIRST: Final = 3  # SD_LISTEN_FDS_START
_BACKLOG: Final = 1024
_SCARCE: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_LOG = logging.getLogger(__name__)


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


def bind_tcp(address: str) -> socket.socket:
    """A listening socket at IP:PORT or [IPv6]:PORT. Raises Unavailable when it cannot be made."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        hint = f"ss -ltnp 'sport = :{port}'    tells who listens there; [metrics] listen in cluster.toml names another"
        raise Unavailable(f"Cannot listen on {address}: {error.strerror or error}", hint=hint) from None
    return listener


async def accept(listener: socket.socket) -> socket.socket | None:
    """The next client, or None where another took it, or after a second's rest where the system has no room for one.
    asyncio's own sock_accept, when it is cancelled as a client comes, loses it unclosed (Python 3.11)."""
    try:
        await _readable(listener)
        client, _ = listener.accept()
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno not in _SCARCE:
            raise
        _LOG.warning("Cannot accept a connection: %s", error.strerror)
        await asyncio.sleep(1)
        return None
    return client


async def _readable(listener: socket.socket) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listener, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(listener)


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
