"""How a start is seen to go on: what counts as movement, what as work, and what as neither."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from strixd.host import work
from strixd.host.work import BUSY, SHORTEST, Workloads
from strixd.ports import Progress


class Seat:
    """A control group, a folder and a clock, laid out."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.group, self.folder = place / "group", place / "models"
        self.group.mkdir()
        (self.folder / "deep").mkdir(parents=True)
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.workloads = Workloads(self.group)
        self.used(0.0)

    def used(self, seconds: float) -> None:
        (self.group / "cpu.stat").write_text(f"usage_usec {int(seconds * 1e6)}\nuser_usec 1\n")

    def look(self, run: str = "run", signs: object = "", elsewhere: float = 0.0, ranks: int | None = None) -> Progress:
        return asyncio.run(self.workloads.progress(run, (str(self.folder),), signs, elsewhere, ranks))


@pytest.fixture
def seat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seat:
    return Seat(tmp_path, monkeypatch)


def test_a_start_has_moved_when_it_is_first_seen(seat: Seat) -> None:
    assert seat.look() == Progress(0.0, 0.0)
    seat.now += 60
    assert seat.look() == Progress(60.0, 60.0), "and not since"
    assert seat.look(run="another") == Progress(0.0, 0.0)


def test_a_line_a_file_that_grows_and_one_that_goes_are_movement(seat: Seat) -> None:
    seat.look()
    for signs, size in (("a line", 0), ("a line", 7), ("a line", 9), ("a line", 0)):
        seat.now += 10
        (seat.folder / "deep" / "weights").write_bytes(b"x" * size)
        assert seat.look(signs=signs).still == 0.0


@pytest.mark.parametrize(("share", "works"), [(BUSY * 0.9, False), (BUSY * 1.1, True)])
@pytest.mark.parametrize("place", ["here", "elsewhere"])
def test_a_good_part_of_a_processor_is_work(seat: Seat, share: float, place: str, works: bool) -> None:
    seat.look()
    seat.now += 10
    seat.used(10 * share if place == "here" else 0.0)
    assert seat.look(elsewhere=10 * share if place == "elsewhere" else 0.0).idle == (0.0 if works else 10.0)


def test_a_moment_is_too_short_to_tell(seat: Seat) -> None:
    seat.look()
    seat.now += SHORTEST / 2
    seat.used(SHORTEST)
    assert seat.look().idle == SHORTEST / 2
    seat.now += SHORTEST / 2
    assert seat.look().idle == 0.0


def test_ranks_are_fewer_than_before_until_they_are_as_many_or_unknown(seat: Seat) -> None:
    seen = []
    for ranks in (0, 1, 2, 2, 1, 0, None, 1, 2, 1):
        seat.now += 10
        seen.append(seat.look(ranks=ranks).short)
    assert seen == [0, 0, 0, 0, 0, 10, 0, 0, 0, 0]
    assert seat.look(run="another", ranks=0).short == 0


def test_what_cannot_be_read_is_neither(seat: Seat) -> None:
    (seat.group / "cpu.stat").unlink()
    (seat.folder / "deep").rmdir()
    seat.folder.rmdir()
    seat.look()
    seat.now += 10
    assert seat.look() == Progress(10.0, 10.0)


def test_a_link_to_a_large_tree_is_not_followed_and_a_large_folder_not_walked_for_ever(
    seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    (seat.folder / "loop").symlink_to(seat.folder)
    for number in range(5):
        (seat.folder / str(number)).write_bytes(b"xx")
    assert work.size(seat.folder) == 10
    monkeypatch.setattr(work, "FILES", 3)
    assert work.size(seat.folder) == 6
