"""Other programs' words, in bounded time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from strixd.errors import Unavailable

ASK = 4.0
"""Seconds; they take some milliseconds."""


@dataclass(frozen=True, slots=True)
class Said:
    """`words`: what it complained of, on one line, "" for nothing."""

    status: int
    output: str
    words: str


def said(*command: str, within: float = ASK) -> Said:
    """Raises Unavailable when there is no such program, or it is late."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=within, check=False, stdin=subprocess.DEVNULL, env=environment
        )
    except FileNotFoundError:
        raise Unavailable(f"no {command[0]} on this host") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} has not answered within {within:g} s") from None
    words = " ".join(done.stderr.decode(errors="replace").split())
    return Said(done.returncode, done.stdout.decode(errors="replace"), words[:500])


def output(*command: str, within: float = ASK) -> str:
    """Raises Unavailable with its own words when it fails, too."""
    done = said(*command, within=within)
    if done.status:
        raise Unavailable(f"{command[0]}: {done.words or f'it ended with status {done.status}'}")
    return done.output


def journal(pattern: str, *matches: str) -> Iterator[str]:
    """The lines of this boot that match; a status of 1 says that none does. Raises Unavailable when the journal may not
    be read, which journalctl only tells when it is not asked to be quiet."""
    done = said("journalctl", "--no-pager", "-b", "-o", "cat", "--case-sensitive=false", "-g", pattern, *matches)
    if done.words:
        raise Unavailable(f"journalctl: {done.words}")
    yield from (line for line in done.output.splitlines() if line != "-- No entries --")
