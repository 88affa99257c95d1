"""The pieces of a medium, made once, and a place for it in which nothing else may be left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from strixd import __version__
from strixd.media.rpms import WANTED
from tests.media import pieces
from tests.media.lab import TOOLS, Parts, cluster, stand_in
from tests.media.pieces import REFERENCE, SECRET

PROGRAMS = ("xorriso", "mcopy", "mkfs.vfat", "createrepo_c", "zstd", "implantisomd5", "rpmbuild", "ksvalidator")


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    missing = [name for name in PROGRAMS if shutil.which(name, path=TOOLS["PATH"]) is None]
    if missing and os.geteuid() != 0:  # root's machine has them (tests/lab/machine.py)
        pytest.skip(f"not on this machine: {' '.join(missing)}")
    folder = tmp_path_factory.mktemp("parts")
    for name in WANTED:
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


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A path on which ksvalidator takes everything: the real one costs most of the time that a small medium takes."""
    folder = tmp_path_factory.mktemp("quick")
    stand_in(folder, "ksvalidator", "true")
    return f"{folder}:{TOOLS['PATH']}"
