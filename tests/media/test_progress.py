"""What somebody sees who waits for a medium: on a terminal, and in a log."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable

import pytest

from strixd.errors import Rejected
from strixd.media.progress import Progress, sized

MIB = 1 << 20
Doing = Callable[[Progress], None]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """The lines that it shows: a carriage return goes back, ESC [ K clears to the end of the line."""
        shown, line, column = [], "", 0
        for part in re.findall(r"\r|\n|\x1b\[K|[^\r\n\x1b]+", self.getvalue()):
            if part == "\n":
                shown.append(line)
                line, column = "", 0
            elif part == "\r":
                column = 0
            elif part == "\x1b[K":
                line = line[:column]
            else:
                line, column = line[:column] + part + line[column + len(part) :], column + len(part)
        return [*shown, line]


def done_to(*counts: int) -> Doing:
    """A step of 100 MiB that has come so far, in MiB, and the next one."""

    def doing(progress: Progress) -> None:
        progress.step("writing halo.iso", 100 * MIB)
        for count in counts:
            progress.at(count * MIB)
        progress.step("reading it again")

    return doing


BEGIN, END = "writing halo.iso (100 MiB)", "reading it again"


@pytest.mark.parametrize(
    ("doing", "terminal", "log"),
    [
        (done_to(), [], []),
        (done_to(5), [], []),
        (done_to(5, 50), [], ["  50 MiB of 100 MiB"]),
        (done_to(50, 9), [], ["  50 MiB of 100 MiB"]),
        (done_to(50, 100), ["  100 MiB of 100 MiB"], ["  50 MiB of 100 MiB", "  100 MiB of 100 MiB"]),
        (done_to(99), [], ["  99 MiB of 100 MiB"]),
        (done_to(100, 101, 120), ["  100 MiB of 100 MiB"], ["  100 MiB of 100 MiB"]),
    ],
    ids=["not-told", "little", "half", "back", "all", "nearly", "more-than-all"],
)
def test_a_step_that_ends_early_leaves_no_line_half_written(doing: Doing, terminal: list[str], log: list[str]) -> None:
    """A file system may hold a little less than was thought, or more."""
    seen, written = Terminal(), io.StringIO()
    doing(Progress(seen))
    doing(Progress(written))
    assert seen.screen() == [BEGIN, *terminal, END, ""]
    assert written.getvalue().splitlines() == [BEGIN, *log, END]
    assert "\r" not in written.getvalue()


def test_while_it_goes_on_one_line_is_written_over() -> None:
    seen = Terminal()
    progress = Progress(seen)
    progress.step("writing", 20 << 30)
    for _ in range(3):
        progress.more(5 << 30)
        assert len(seen.screen()) == 2
    assert seen.screen()[1] == "  15 GiB of 20 GiB"


def test_what_is_complained_of_stands_in_a_line_of_its_own() -> None:
    seen = Terminal()
    with contextlib.suppress(Rejected), Progress(seen) as progress:
        progress.step("writing", 100 * MIB)
        progress.at(50 * MIB)
        raise Rejected("Cannot go on")
    seen.write("strixd-media: Cannot go on\n")
    assert seen.screen() == ["writing (100 MiB)", "strixd-media: Cannot go on", ""]


def test_what_is_quick_is_only_named() -> None:
    seen = Terminal()
    progress = Progress(seen)
    progress.step("reading 3 files", 63 * MIB)
    progress.more(MIB)
    assert seen.screen() == ["reading 3 files (63 MiB)", ""]


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (3 << 19, "1.5 MiB"), (12 << 30, "12 GiB")],
)
def test_sizes(count: int, words: str) -> None:
    assert sized(count) == words
