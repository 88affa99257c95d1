"""Programs whose output is read while they run: one that hangs or fails is not taken for one that is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from strixd.errors import Rejected, TimedOut, Unavailable
from strixd.media import tools
from tests.media.lab import TOOLS, stand_in


def read(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> bytes:
    stand_in(folder, "mcopy", body)
    monkeypatch.setenv("PATH", f"{folder}:{TOOLS['PATH']}")
    with tools.output("mcopy", what="read a.rpm from the volume", most=0) as file:
        return file.read()


def test_what_it_writes_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert read(monkeypatch, tmp_path, "echo a; echo b") == b"a\nb\n"


def test_one_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Rejected, match=r"^Cannot read a\.rpm from the volume: Bad cluster$"):
        read(monkeypatch, tmp_path, "echo half; echo Bad cluster >&2; exit 1")


@pytest.mark.parametrize("body", ["exec sleep 60", "echo half; exec sleep 60", "exec >&-; exec sleep 60"])
def test_one_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    monkeypatch.setattr(tools, "QUICK", 0.5)
    with pytest.raises(TimedOut, match="mcopy was not done after"):
        read(monkeypatch, tmp_path, body)


def test_one_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="mlabel is not on this machine"), tools.output("mlabel", what="x", most=0):
        pass
