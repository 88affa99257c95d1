"""Running other programs: one call, a timeout always, and the program's own words when it fails."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Result:
    """What a finished program left behind."""

    argv: tuple[str, ...]
    rc: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        return self.rc == 0

    def check(self) -> Result:
        if self.rc != 0:
            raise CommandFailed(self)
        return self

    def __str__(self) -> str:
        words = (self.stderr.strip() or self.stdout.strip())[-2000:]
        return f"`{' '.join(self.argv)}` ended with {self.rc}: {words}"


class CommandFailed(Exception):
    """A program ended with a status that was not asked for."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result))
        self.result = result


def attempt(
    argv: Sequence[str | Path], *, timeout: float = 60, stdin: str | None = None, env: Mapping[str, str] | None = None
) -> Result:
    """Run to the end, whatever the status; past `timeout` seconds its whole process group is killed (status 124)."""
    words = tuple(str(word) for word in argv)
    source = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    process = subprocess.Popen(
        words, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, process_group=0
    )
    try:
        out, err = process.communicate(None if stdin is None else stdin.encode(), timeout=timeout)
    except subprocess.TimeoutExpired:
        out, err = _put_down(process)
        return Result(words, 124, _text(out), _text(err) + f"\nno end after {timeout} s")
    except BaseException:
        _put_down(process)
        raise
    return Result(words, process.returncode, _text(out), _text(err))


def run(
    argv: Sequence[str | Path], *, timeout: float = 60, stdin: str | None = None, env: Mapping[str, str] | None = None
) -> Result:
    """Like attempt(), and an exit status other than 0 is a CommandFailed."""
    return attempt(argv, timeout=timeout, stdin=stdin, env=env).check()


def remove_tree(folder: Path) -> None:
    """Remove a folder without ever crossing into something mounted inside it."""
    if folder.exists() or folder.is_symlink():
        run(["rm", "-rf", "--one-file-system", folder], timeout=300)


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")


def _put_down(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    try:
        return process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        return b"", b"its output pipe is still held by something it started"
