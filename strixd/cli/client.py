"""The control socket from the client's side.

While the daemon restarts systemd holds the socket: a new connection waits. One that was open is dropped without a
reply, and the question is put again for up to PATIENCE: every method but Undo may be asked twice.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping

from strixd.api import wire
from strixd.errors import Refused, StrixdError, Unavailable

PATIENCE = 10.0  # seconds that a restarting daemon may take
_ANSWER = 60.0  # seconds; a daemon that hangs is restarted by its watchdog, after 90
_LARGEST = 16 << 20  # bytes of a reply
_TICK = 1.0
_RUNS = "systemctl status strixd       shows whether it runs, and why not"
_OPENS = "systemctl start strixd.socket opens the socket"


class Remote(StrixdError):
    """An error that the daemon named."""

    def __init__(self, name: str, parameters: Mapping[str, object]) -> None:
        super().__init__(str(parameters.get("message", name)), hint=str(parameters.get("hint", "")))
        self.code = name.rpartition(".")[2]
        status = parameters.get("exitStatus")
        self.exit_status = status if isinstance(status, int) else 1


class Dropped(Exception):
    """The connection ended before the last reply."""


def call(
    path: str, method: str, parameters: wire.Message | None = None, *, patience: float = _ANSWER, again: bool = True
) -> wire.Message:
    """One reply. `again`: the method may be asked twice. Raises Unavailable, or Remote with the daemon's own error."""
    end = time.monotonic() + patience
    for reply in replies(path, method, lambda: parameters or {}, again=again):
        if reply is not None:
            return reply
        if time.monotonic() > end:
            raise Unavailable(f"Cannot call {method}: strixd has not answered for {patience:.0f} s", hint=_RUNS)
    raise AssertionError("replies ended without one")


def stream(path: str, method: str, parameters: wire.Message | None = None) -> Iterator[wire.Message | None]:
    """All replies, and None for each second of silence. After a restart of the daemon they begin anew."""
    return replies(path, method, lambda: parameters or {}, more=True)


def replies(
    path: str, method: str, parameters: Callable[[], wire.Message], *, more: bool = False, again: bool = True
) -> Iterator[wire.Message | None]:
    """As stream(). `parameters` is asked anew for each try."""
    dropped = 0.0  # when; 0: it is not
    while True:
        try:
            with connect(path, dropped) as connection:
                for reply in _ask(connection, method, parameters(), more=more):
                    dropped = 0.0 if reply is not None else dropped
                    yield reply
            return
        except Dropped:
            dropped = dropped or time.monotonic()
        if not again:
            text = f"Cannot tell what became of {method}: strixd hung up before it answered"
            raise Unavailable(text, hint="strixd-cli history    tells what was done")
        if time.monotonic() - dropped > PATIENCE:
            raise Unavailable(f"Cannot call {method}: strixd at {path} hangs up without an answer", hint=_RUNS)
        time.sleep(0.1)


def connect(path: str, dropped: float = 0.0) -> socket.socket:
    """`dropped`: when it last was there. Raises Unavailable; Dropped when it is gone for the moment."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError as error:
        connection.close()
        if dropped and isinstance(error, (ConnectionError, FileNotFoundError)):
            raise Dropped from None
        raise _unreachable(path, error) from None
    connection.settimeout(_TICK)
    return connection


def _unreachable(path: str, error: OSError) -> Unavailable:
    words = {
        FileNotFoundError: "there is no such socket",
        ConnectionRefusedError: "nobody listens there",
    }.get(type(error)) or (os.strerror(error.errno) if error.errno else str(error))
    hints = {wire.ADDRESS: f"{_RUNS}\n{_OPENS}", wire.METRICS: _RUNS}
    hint = hints.get(path, "--socket or STRIXD_SOCKET names the socket; is this the right one?")
    return Unavailable(f"Cannot reach strixd at {path}: {words}", hint=hint)


def _ask(
    connection: socket.socket, method: str, parameters: wire.Message, *, more: bool
) -> Iterator[wire.Message | None]:
    question: wire.Message = {"method": f"{wire.INTERFACE}.{method}", "parameters": parameters}
    _send(connection, wire.encode({**question, "more": True} if more else question))
    frames = wire.Frames(_LARGEST)
    while True:
        message = frames.take()
        if message is not None:
            yield _parameters(method, message)
            if not message.get("continues"):
                return
        elif (chunk := _receive(connection)) is not None:
            frames.feed(chunk)
        else:
            yield None


def _receive(connection: socket.socket) -> bytes | None:
    """Some bytes, or None after a second without any."""
    try:
        chunk = connection.recv(1 << 16)
    except TimeoutError:
        return None
    except ConnectionError:
        raise Dropped from None
    if not chunk:
        raise Dropped
    return chunk


def _send(connection: socket.socket, message: bytes) -> None:
    try:
        connection.sendall(message)
    except ConnectionError:
        pass  # whoever hung up may have said why: that is read next
    except TimeoutError:
        raise Unavailable("Cannot ask strixd: it does not read", hint=_RUNS) from None


def _parameters(method: str, message: wire.Message) -> wire.Message:
    parameters = message.get("parameters", {})
    name = message.get("error")
    if not isinstance(parameters, dict) or not isinstance(name, str | None):
        raise Refused(f"Cannot call {method}: what answers there does not speak Varlink")
    if name is None:
        return parameters
    if name.startswith(f"{wire.SERVICE}."):
        said = f"{name.rpartition('.')[2]} {' '.join(map(str, parameters.values()))}"
        raise Refused(f"Cannot call {method}: strixd says {said}", hint="strixd-cli version    compares the versions")
    raise Remote(name, parameters)
