"""What is shown while something takes its time: on a terminal a last line that lives, elsewhere a line now and then.

Whoever looks at a log must be able to tell waiting from hanging, so nothing is silent for longer than QUIET.
"""

from __future__ import annotations

from strixd.cli import terminal

QUIET = 30.0  # seconds without a line
_BACK = "\r\x1b[K"  # to the beginning of the line, and nothing on it


class Waiting:
    """Times are those of one steady clock; `began` is when it was 0.0 s."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._spoke = began
        self._live = terminal.is_terminal()
        self._columns = terminal.columns()

    def say(self, text: str, now: float) -> None:
        """A line that stays."""
        self.clear()
        terminal.say(stamped(text, now - self._began))
        self._spoke = now

    def show(self, doing: str, now: float, *, bar: str = "") -> None:
        """What is being waited for at this moment; `bar` is for terminals only."""
        if self._live:
            self._write(stamped(f"{bar}{doing}", now - self._began)[: self._columns - 1])
        elif now - self._spoke >= QUIET:
            self.say(f"waiting for {doing or 'strixd'}", now)

    def clear(self) -> None:
        if self._live:
            self._write("")

    def _write(self, text: str) -> None:
        terminal.put(_BACK + text)


def stamped(text: str, elapsed: float) -> str:
    return f"{elapsed:7.1f} s  {text}"
