"""The pieces of a medium, made once, and a place for it in which nothing else may be left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strixd import __version__
from tests.media import pieces
from tests.media.lab import Parts, cluster
from tests.media.pieces import REFERENCE, SECRET


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    folder = tmp_path_factory.mktemp("parts")
    for name in ("strixd", "strixd-selinux"):
        pieces.rpm(folder / "rpms", name, __version__)
    found = Parts(
        folder,
        cluster=folder / "cluster.toml",
        rpms=folder / "rpms",
        iso=pieces.fedora(folder),
        archive=pieces.archive(folder / "image.tar", REFERENCE),
        model=pieces.model(folder),
        key=folder / "cluster.key",
    )
    found.cluster.write_text(cluster())
    found.key.write_text(f"{SECRET}\n")
    return found


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing but a medium may be left."""
    yield tmp_path / "medium.iso"
    assert {each.name for each in tmp_path.iterdir()} <= {"medium.iso", "medium.img"}


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elsewhere")
