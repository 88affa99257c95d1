"""Small files: whole or not at all, on a full disk and when the writer is killed."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strixd.errors import Rejected
from strixd.host.files import LocalFiles, read_text, write_whole

FILES = LocalFiles()


def write(path: Path, text: str, *, mode: int = 0o644) -> None:
    asyncio.run(FILES.write(str(path), text, mode=mode))


def read(path: Path) -> str | None:
    return asyncio.run(FILES.read(str(path)))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "file", "zwölf\r\n\r")
    assert read(tmp_path / "a/b/file") == "zwölf\r\n\r"
    assert os.listdir(tmp_path / "a/b") == ["file"]  # noqa: PTH208


def test_no_such_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert read(tmp_path / "none") is None
    assert read(tmp_path / "file/below") is None


def test_modes_hold_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write(tmp_path / "folder/open", "", mode=0o644)
        write(tmp_path / "folder/secret", "", mode=0o600)
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("folder", "folder/open", "folder/secret")]
    assert modes == [0o755, 0o644, 0o600]


def test_a_secret_is_never_open_for_a_moment(tmp_path: Path) -> None:
    """A leftover of a killed writer does not lend its mode, nor where it points to, to the new file."""
    other = tmp_path / "other"
    other.write_text("kept")
    (tmp_path / ".secret.new").symlink_to(other)
    write(tmp_path / "secret", "s", mode=0o600)
    assert (other.read_text(), (tmp_path / "secret").stat().st_mode & 0o777) == ("kept", 0o600)


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write(tmp_path / "link", "new")
    assert ((tmp_path / "target").read_text(), (tmp_path / "link").is_symlink()) == ("old", False)


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match=f"Cannot write {tmp_path}: "):
        write(tmp_path, "")
    with pytest.raises(Rejected, match=f"Cannot read {tmp_path}: Is a directory"):
        read(tmp_path)


def test_removing_twice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    asyncio.run(FILES.remove(str(tmp_path / "file")))
    asyncio.run(FILES.remove(str(tmp_path / "file")))
    assert not list(tmp_path.iterdir())


def test_present_keeps_the_order(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("")
    (tmp_path / "a").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    names = tuple(str(tmp_path / name) for name in ("b", "none", "dangling", "a"))
    assert asyncio.run(FILES.present((*names, ""))) == (names[0], names[3])


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder in which little more than nothing fits: a tiny file system where we may mount one."""
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path]).returncode:
        pytest.skip("mounting needs root; test_a_file_size_limit is the same without")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


def test_a_full_disk_leaves_the_old_file(full_disk: Path) -> None:
    write(full_disk / "file", "old")
    with pytest.raises(Rejected) as full:
        write(full_disk / "file", "x" * 100_000)
    assert str(full.value) == f"Cannot write {full_disk}/file: No space left on device"
    assert "make room" in full.value.hint
    assert [(path.name, path.read_text()) for path in full_disk.iterdir()] == [("file", "old")]


def test_a_file_size_limit_leaves_the_old_file(tmp_path: Path) -> None:
    write_whole(str(tmp_path / "file"), "old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(Rejected, match="File too large"):
            write_whole(str(tmp_path / "file"), "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "old")]


WRITER = """
import itertools, sys
from strixd.host.files import write_whole
for number in itertools.count():
    write_whole(sys.argv[1], f"{number % 10}" * 300_000)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for turn in range(5):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(file)])
        while not file.exists():
            time.sleep(0.005)
        time.sleep(0.1 + 0.007 * turn)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        text = read_text(str(file)) or ""
        assert (len(text), len(set(text))) == (300_000, 1)
    write_whole(str(file), "after")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
