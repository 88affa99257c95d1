"""How a medium gets its name: whole, and never in the place of something else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strixd.errors import Refused
from strixd.media import whole


@pytest.fixture(params=["links", "no-links"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")  # as vfat says

    if request.param == "no-links":
        monkeypatch.setattr(os, "link", refuse)
    return tmp_path


def test_it_gets_its_name(disk: Path) -> None:
    with whole.draft(disk / "halo.iso") as folder:
        (folder / "made").write_text("medium")
        whole.settle(folder / "made", disk / "halo.iso", 0o600)
    assert [each.name for each in disk.iterdir()] == ["halo.iso"]
    assert ((disk / "halo.iso").read_text(), (disk / "halo.iso").stat().st_mode & 0o777) == ("medium", 0o600)


def test_what_came_there_meanwhile_stays(disk: Path) -> None:
    with whole.draft(disk / "halo.iso") as folder:
        (folder / "made").write_text("medium")
        (disk / "halo.iso").write_text("mine")
        with pytest.raises(Refused, match="is there already"):
            whole.settle(folder / "made", disk / "halo.iso", 0o644)
    assert [each.name for each in disk.iterdir()] == ["halo.iso"]
    assert (disk / "halo.iso").read_text() == "mine"
