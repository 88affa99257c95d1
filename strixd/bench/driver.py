"""The measuring program of this end, as a process: in the Ray container, which has Ray, or on this host.

It ends with its stdin, and takes the other end with it. So it is not ended by Ctrl-C itself: that ends us, we let go of
its stdin, and wait until it has cleared away.
"""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

from strixd.desired import PROBE_THERE
from strixd.errors import Rejected, Unavailable
from strixd.resources.ray import NAME

IN_CONTAINER = ("podman", "exec", "--interactive", NAME, "bash", "-lc", f"exec python3 {PROBE_THERE}/link/__main__.py")
ON_HOST = (sys.executable, "-sP", "-m", "strixd.probe.link")
ORDERLY = 12.0  # seconds to clear away
LONGEST = 1 << 22  # bytes of a line


def messages(job: dict[str, Any], command: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """What it says. Raises Unavailable when it cannot be started, Rejected with its words when it ends badly, or says
    nothing for longer than its job may take."""
    with tempfile.TemporaryFile() as errors:
        process = _started(command or (IN_CONTAINER if job["ray"] else ON_HOST), errors)
        assert process.stdin
        assert process.stdout
        try:
            with suppress(BrokenPipeError):  # it has ended: what it said tells why
                process.stdin.write(json.dumps(job).encode() + b"\n")
            yield from _lines(process.stdout, time.monotonic() + job["seconds"] + ORDERLY)
        finally:
            status = _end(process)
        if status not in (0, 1):
            raise Rejected(f"Cannot measure: {command or 'the program'} ended with status {status}: {_last(errors)}")


def _started(command: tuple[str, ...], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
    except OSError as error:
        hint = "dnf install podman" if command[0] == "podman" else ""
        raise Unavailable(f"Cannot run {command[0]}: {error.strerror}", hint=hint) from None


def _lines(output: IO[bytes], end: float) -> Iterator[dict[str, Any]]:
    text = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while selector.select(max(0.0, end - time.monotonic())):
            came = output.read(1 << 16)
            if not came:
                return
            *whole, text[:] = (text + came).split(b"\n")
            if len(text) > LONGEST:
                break
            yield from (_message(bytes(line)) for line in whole if line.startswith(b"{"))  # profiles greet people
    raise Rejected("Cannot measure: the measuring program does not come to an end")


def _message(line: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError):
        raise Rejected(f"Cannot measure: the measuring program says {line[:200].decode(errors='replace')}") from None


def _end(process: subprocess.Popen[bytes]) -> int:
    """Whatever it is at. Its exit status."""
    assert process.stdin
    assert process.stdout
    process.stdin.close()
    try:
        return process.wait(ORDERLY)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
    finally:
        process.stdout.close()


def _last(errors: IO[bytes]) -> str:
    errors.seek(0)
    return " ".join(errors.read(1 << 20).decode(errors="replace").split())[-300:]
