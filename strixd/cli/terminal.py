"""What a terminal adds to plain lines: colour, width and a line that is written over."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

Paint = Callable[[str, str], str]
"""(text, word): the text in the colour of a condition or phase."""

_COLOURS = {
    "ok": "32",
    "ready": "32",
    "waiting": "33",
    "converging": "33",
    "starting": "33",
    "held": "33",
    "reboot": "33",
    "paused": "33",
    "blocked": "31",
    "stuck": "31",
    "degraded": "31",
}


def say(text: str) -> None:
    """A line, at once: whoever follows a pipe must not wait for a buffer to fill."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def is_terminal() -> bool:
    return sys.stdout.isatty()


def width() -> int:
    """Columns, at least the 80 that everything is made for."""
    if not is_terminal():
        return 80
    try:
        return max(80, min(120, os.get_terminal_size(sys.stdout.fileno()).columns))
    except OSError:
        return 80


def plain(text: str, _word: str) -> str:
    return text


def in_colour(text: str, word: str) -> str:
    code = _COLOURS.get(word)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def paint() -> Paint:
    wanted = is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return in_colour if wanted else plain
