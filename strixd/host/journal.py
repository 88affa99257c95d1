"""journald: reading the last words of a unit (journalctl), and writing the daemon's own lines with fields.

Lines are read by the unit's invocation, so that the words of an earlier run are never taken for those of the last one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from strixd.errors import Rejected, Unavailable
from strixd.host.journal_socket import SOCKET, JournalSocket, datagram

WITHIN = 5.0
"""Seconds for journalctl; it takes 15 ms on a small journal."""
MOST_BYTES = 1 << 20
"""Of journalctl's output, newest first. The rest is not read."""
LONGEST = 1000
"""Characters of a line that are kept."""
EXTRA = 20
"""Entries asked for beyond the wanted lines: podman's events are among them and are dropped."""
PRIORITIES: Final = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}
"""syslog(3)'s, by the level at or below which they hold."""

_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
"""Colours and other control sequences (ECMA-48 CSI), and control characters."""
_NOISE = re.compile(r"[0-9a-f]{64}|conmon [0-9a-f]+ <n\w+>: .*|\[?conmon:.*")
"""What `podman run -d` and conmon say for themselves: the container's id, warnings about cgroup files."""


class Journald:
    """Implements ports.Journal. `within`: seconds for journalctl."""

    def __init__(self, within: float = WITHIN) -> None:
        self._within = within

    async def last(self, unit: str, invocation: str, count: int) -> tuple[str, ...]:
        """Of what the unit's processes wrote; not what systemd or podman say about them."""
        if not invocation or count < 1:
            return ()
        matches = (f"_SYSTEMD_INVOCATION_ID={invocation}", f"_SYSTEMD_UNIT={unit}")
        fields = "--output-fields=MESSAGE,PODMAN_EVENT"
        output = await _journalctl(
            unit, self._within, "-r", "-n", str(count + EXTRA), "-o", "json", "--all", fields, *matches
        )
        lines = [line for entry in reversed(output.splitlines()) for line in _lines(entry)]
        return tuple(lines[-count:])


async def _journalctl(unit: str, within: float, *arguments: str) -> bytes:
    doing = f"read the journal of {unit}"
    try:
        process = await asyncio.create_subprocess_exec(
            "journalctl",
            "--quiet",
            "--no-pager",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=MOST_BYTES,
        )
    except OSError as error:
        raise Unavailable(f"Cannot {doing}: journalctl: {error.strerror}") from None
    try:
        async with asyncio.timeout(within):
            return await _output(process, doing)
    except TimeoutError:
        raise Unavailable(f"Cannot {doing}: no answer within {within:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _output(process: asyncio.subprocess.Process, doing: str) -> bytes:
    assert process.stdout
    assert process.stderr
    try:
        return await process.stdout.readexactly(MOST_BYTES)
    except asyncio.IncompleteReadError as all_there_is:
        output = all_there_is.partial
    words = (await process.stderr.read(LONGEST)).decode(errors="replace").strip()
    if await process.wait() and not output:
        raise Rejected(f"Cannot {doing}: {words or f'journalctl ended with status {process.returncode}'}")
    return output


def _lines(entry: bytes) -> Iterator[str]:
    """The lines of one journal entry in JSON; none when it was cut off."""
    try:
        fields = json.loads(entry)
    except ValueError:
        return
    for line in text_lines(fields):
        yield line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def text_lines(fields: Mapping[str, object]) -> Iterator[str]:
    """The lines of an entry as a person may read them; none for events of podman."""
    if "PODMAN_EVENT" in fields:
        return
    for line in _text(fields.get("MESSAGE")).splitlines():
        clean = _TERMINAL.sub("", line).rstrip()
        if clean and not _NOISE.fullmatch(clean):
            yield clean


def _text(message: object) -> str:
    """A string; or a list of bytes, where it is not plain text; or a list of either, where the field came twice; or
    null, where it was too long (journalctl(1), -o json)."""
    if isinstance(message, str):
        return message
    if isinstance(message, list) and all(isinstance(item, int) for item in message):
        return bytes(message).decode(errors="replace")
    return "\n".join(_text(item) for item in message) if isinstance(message, list) else ""


class JournalHandler(logging.Handler):
    """Sends records to journald with their fields: of `extra`, what is named STRIXD_… or MESSAGE_ID."""

    def __init__(self, identifier: str, path: str = SOCKET) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(message)s"))  # or basicConfig puts level and name before it
        self._identifier = identifier
        self._socket = JournalSocket(path)

    def emit(self, record: logging.LogRecord) -> None:
        self._socket.send(datagram(self._fields(record)))

    def close(self) -> None:
        self._socket.close()
        super().close()

    def _fields(self, record: logging.LogRecord) -> Iterable[tuple[str, str]]:
        yield "MESSAGE", self.format(record)
        yield "PRIORITY", str(priority(record.levelno))
        yield "SYSLOG_IDENTIFIER", self._identifier
        yield "LOGGER", record.name
        yield "CODE_FILE", record.pathname
        yield "CODE_LINE", str(record.lineno)
        yield "CODE_FUNC", record.funcName or ""
        for name, value in vars(record).items():
            if name == "MESSAGE_ID" or name.startswith("STRIXD_"):
                yield name, str(value)


def priority(level: int) -> int:
    """syslog's priority of a level of logging."""
    return next((number for known, number in PRIORITIES.items() if level <= known), 2)


def setup_logging(*, debug: bool, identifier: str = "strixd") -> None:
    """Root logger: to journald when standard error is the journal's already (we run under systemd), else to standard
    error. `debug` holds for strixd's own loggers only."""
    handler: logging.Handler
    if under_journal():
        handler = JournalHandler(identifier)
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.getLogger("strixd").setLevel(logging.DEBUG if debug else logging.INFO)


def under_journal() -> bool:
    """$JOURNAL_STREAM names device and inode of the stream that systemd gave us (systemd.exec(5)); a shell's
    redirection makes them differ."""
    try:
        found = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}" and Path(SOCKET).exists()
