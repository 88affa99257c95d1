"""The wrapper: PID 1 of the Ray container. It never loads Ray."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import sys
import time
from pathlib import Path

from strixd.probe.words import option, session_link

STOP_SECONDS = 5.0  # a `ray start` that waits for its head does not hear SIGTERM
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
QUICK = {**os.environ, "RAY_gcs_rpc_server_connect_timeout_s": "1"}


def token_refusal() -> str:
    """Why this image's Ray cannot keep the cluster key, "" when it can. Looked for in the library that would ask
    for the key: importing it takes half a second, searching it 10 ms."""
    spec = importlib.util.find_spec("ray")
    if spec is None or not spec.submodule_search_locations:
        return f"{sys.executable} has no Ray"
    library = Path(spec.submodule_search_locations[0]) / "_raylet.so"
    try:
        known = b"RAY_AUTH_TOKEN_PATH" in library.read_bytes()
    except OSError as error:
        return f"cannot read {library}: {error}"
    return "" if known else f"the Ray of this image ({library.parent}) knows no token authentication"


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number) if pid else None


def reap() -> dict[int, int]:
    """Everybody who has died, orphans of both containers too, with their exit statuses."""
    dead = {}
    with contextlib.suppress(ChildProcessError):
        while (came := os.waitpid(-1, os.WNOHANG))[0]:
            status = os.waitstatus_to_exitcode(came[1])
            dead[came[0]] = status if status >= 0 else 128 - status
    return dead


def knock(address: str, seconds: float) -> None:
    """OSError unless somebody listens there."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), seconds).close()


def may_start(command: list[str]) -> bool:
    """A `ray start` whose head is not there hears no SIGTERM, fills the journal, gives up after 14 minutes and is late
    to see the head come: waiting is done here."""
    if "--head" in command or not option(command, "address"):
        return True
    with contextlib.suppress(OSError):
        knock(option(command, "address"), 1.0)
        return True
    return False


def supervise(command: list[str], look: list[str], *, stop_seconds: float = STOP_SECONDS) -> int:
    """Runs the command to its end. Signals are taken by waiting for them, so nothing here runs in a handler."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    main, looker, stopped, deadline = 0, 0, 0, float("inf")
    try:
        while True:
            looker = looker or os.posix_spawnp(look[0], look, QUICK, setsigmask=())
            if not main and may_start(command):
                main = os.posix_spawnp(command[0], command, os.environ, setsigmask=())
            came = signal.sigtimedwait(SIGNALS, 1.0)
            if came and came.si_signo != signal.SIGCHLD:
                stopped, deadline = came.si_signo, min(deadline, time.monotonic() + stop_seconds)
                send(main, stopped)
            if time.monotonic() > deadline:
                send(main, signal.SIGKILL)
            dead = reap()
            looker = 0 if looker in dead else looker
            if main in dead or (stopped and not main):
                return 128 + stopped if stopped else dead[main]
    finally:
        send(looker, signal.SIGKILL)


def wrap(command: list[str], look: list[str]) -> int:
    refusal = token_refusal() if os.environ.get("RAY_AUTH_MODE") == "token" else ""
    if refusal:
        sys.stderr.write(f"strixd-probe: Cannot start Ray with the cluster key: {refusal}\n")
        return 64
    session_link(command).unlink(missing_ok=True)  # an older container's session is not ours
    try:
        return supervise(command, look)
    except FileNotFoundError as error:
        sys.stderr.write(f"strixd-probe: Cannot start {command[0]}: {error.strerror}\n")
        return 127
