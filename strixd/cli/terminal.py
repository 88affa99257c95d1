"""What a terminal adds to plain lines: colour, width and a line that is written over."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from strixd.errors import Rejected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

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
    "ineffective": "33",
    "paused": "33",
    "blocked": "31",
    "stuck": "31",
    "degraded": "31",
}


def say(text: str) -> None:
    """A line, at once: whoever follows a pipe must not wait for a buffer to fill."""
    put(text + "\n")


def put(text: str) -> None:
    """Raises BrokenPipeError when nobody reads any more, Rejected when the system takes nothing (a full disk)."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        let_go(sys.stdout)
        raise Rejected(f"Cannot write the output: {error.strerror}", hint="df -h shows room") from None


def let_go(stream: TextIO) -> None:
    """What could not be written is forgotten, or Python complains of it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def is_terminal() -> bool:
    return sys.stdout.isatty()


def width() -> int:
    """Columns, at least the 80 that everything is made for."""
    return max(80, min(120, columns()))


def columns() -> int:
    """As many as there are; 80 where nobody knows."""
    if not is_terminal():
        return 80
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
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
