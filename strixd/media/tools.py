"""Foreign programs: which are needed, which package has them, and how they are run. Every call has a timeout."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from strixd.decode import listed
from strixd.errors import Rejected, TimedOut, Unavailable

PACKAGES: Final = {
    "xorriso": ("xorriso", "xorriso"),
    "mcopy": ("mtools", "mtools"),
    "mmd": ("mtools", "mtools"),
    "mlabel": ("mtools", "mtools"),
    "mtype": ("mtools", "mtools"),
    "mkfs.vfat": ("dosfstools", "dosfstools"),
    "createrepo_c": ("createrepo_c", "createrepo-c"),
    "implantisomd5": ("isomd5sum", "isomd5sum"),
    "checkisomd5": ("isomd5sum", "isomd5sum"),
    "ksvalidator": ("pykickstart", ""),
    "zstd": ("zstd", "zstd"),
}
"""Program: its package in Fedora, in Debian ("": none; pip install pykickstart)."""
QUICK: Final = 120.0
"""Seconds for what does not depend on the size of a medium."""
SLOWEST: Final = 2 << 20
"""Bytes per second that the slowest disk is expected to take."""
_PACE = 0.2


@dataclass(frozen=True, slots=True)
class Growing:
    """A file that a program writes: `told` hears its size from time to time."""

    file: Path
    size: int
    told: Callable[[int], None]


def need(programs: Iterable[str]) -> None:
    """Raises Unavailable that names all that are not here."""
    missing = [program for program in dict.fromkeys(programs) if _found(program) is None]
    if missing:
        raise Unavailable(f"Cannot find {listed(missing, 'and')} on this machine", hint=_install(missing))


def run(*command: str | Path, what: str, growing: Growing | None = None) -> str:
    """The program's standard output. Raises Rejected, "Cannot `what`: its own words", and TimedOut."""
    return _outcome([_program(command, what), *map(str, command[1:])], what, growing)


@contextmanager
def output(*command: str | Path, what: str, most: int) -> Iterator[IO[bytes]]:
    """The program's standard output, to be read while it runs, of at most so many bytes. Raises as run() does, in the
    end."""
    program = _program(command, what)
    patience = QUICK + most / SLOWEST
    line = [program, *map(str, command[1:])]
    with _spooled() as words:
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=words)
        late = threading.Timer(patience, process.kill)
        late.start()
        try:
            assert process.stdout is not None
            with process.stdout as written:
                yield written
            status = process.wait()
        finally:
            late.cancel()
            process.kill()
            process.wait()
        if status == -signal.SIGKILL:
            raise TimedOut(f"Cannot {what}: {command[0]} was not done after {patience:.0f} s")
        if status != 0:
            raise Rejected(f"Cannot {what}: {_last_words(words) or f'{command[0]} failed'}")


def _program(command: tuple[str | Path, ...], what: str) -> str:
    program = _found(str(command[0]))
    if program is None:
        raise Unavailable(f"Cannot {what}: {command[0]} is not on this machine", hint=_install([str(command[0])]))
    return program


def _outcome(line: list[str], what: str, growing: Growing | None) -> str:
    patience = QUICK + (growing.size / SLOWEST if growing else 0.0)
    with _spooled() as output, _spooled() as words:
        environment = os.environ | {"LC_ALL": "C.UTF-8", "MTOOLS_SKIP_CHECK": "1"}
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=output, stderr=words, env=environment)
        try:
            _wait(process, time.monotonic() + patience, growing)
        except subprocess.TimeoutExpired:
            raise TimedOut(f"Cannot {what}: {Path(line[0]).name} was not done after {patience:.0f} s") from None
        finally:
            process.kill()  # nothing, when it has ended
            process.wait()
        if process.returncode != 0:
            raise Rejected(f"Cannot {what}: {_last_words(words, output) or f'{line[0]} failed'}")
        return _text(output)


def _wait(process: subprocess.Popen[bytes], end: float, growing: Growing | None) -> None:
    if growing is None:
        process.wait(max(0.0, end - time.monotonic()))
        return
    while process.poll() is None:
        if time.monotonic() > end:
            raise subprocess.TimeoutExpired(process.args, 0.0)
        growing.told(growing.file.stat().st_size if growing.file.exists() else 0)
        time.sleep(_PACE)


def _spooled() -> IO[bytes]:
    """Not a pipe, which would have to be emptied while the program runs."""
    return tempfile.TemporaryFile()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _last_words(*files: IO[bytes]) -> str:
    """The line that says what failed: xorriso's of severity FAILURE or FATAL, else the last one."""
    for file in files:
        lines = [line.strip() for line in _text(file).splitlines() if line.strip()]
        for line in lines:
            if ": FAILURE :" in line or ": FATAL :" in line:
                return line.partition(": ")[2].partition(" : ")[2] or line
        if lines:
            return lines[-1]
    return ""


def _found(program: str) -> str | None:
    """Also where only root's path leads: mkfs.vfat."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def _install(programs: list[str]) -> str:
    fedora, debian = ({PACKAGES[program][place] for program in programs} for place in (0, 1))
    if not shutil.which("apt-get"):
        return f"dnf install {' '.join(sorted(fedora))}"
    packages = " ".join(sorted(debian - {""}))
    lines = [f"apt-get install {packages}"] if packages else []
    return "\n".join([*lines, *(["pip install pykickstart"] if "" in debian else [])])
