"""What is being done, how far it is, and how large things are: one line per step, written over on a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, TextIO

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def sized(count: int) -> str:
    """17 bytes, 3.2 MiB, 12 GiB."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 10 else f"{value:.0f} {_UNITS[unit]}"


class Progress:
    """Written to standard error: standard output is for what a command is asked for. In the end, whatever it is, no
    line is left half written."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._total, self._done, self._tenths = 0, 0, 0
        self._written_over = False  # whether the line that the cursor is in may still be

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.write(self._cleared())
        self._stream.flush()

    def step(self, text: str, total: int = 0) -> None:
        """A new line; of `total` bytes, when the step is one that takes time."""
        self._total, self._done, self._tenths = total, 0, 0
        self._stream.write(f"{self._cleared()}{text}{f' ({sized(total)})' if total else ''}\n")
        self._stream.flush()

    def more(self, count: int) -> None:
        """So many further bytes of the step are done."""
        self.at(self._done + count)

    def at(self, count: int) -> None:
        """So many of the step's bytes are done. Without a terminal it is told at every tenth of what takes long."""
        self._done = count
        if not self._total or self._total < 64 << 20 or self._tenths == 10:
            return
        tenths = min(10, count * 10 // self._total)
        if self._terminal:
            self._written_over = tenths < 10
            end = "" if self._written_over else "\n"
            self._stream.write(f"\r  {sized(count)} of {sized(self._total)}\x1b[K{end}")
        elif tenths > self._tenths:
            self._stream.write(f"  {sized(count)} of {sized(self._total)}\n")
        self._tenths = tenths
        self._stream.flush()

    def _cleared(self) -> str:
        """What takes a line away that would have been written over."""
        words = "\r\x1b[K" if self._written_over else ""
        self._written_over = False
        return words
