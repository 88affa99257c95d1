"""Files that cannot be read at all say so, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from strixd import config
from strixd.config import loading
from strixd.errors import ConfigError

MINIMAL = (Path(__file__).parents[1] / "cases" / "config" / "minimal.toml").read_text()


def complaint(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    (only,) = caught.value.complaints
    return only


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    assert complaint(path).startswith(f"{path}:0: there is no such file")
    assert "/etc/strixd/cluster.toml" in complaint(path)
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    assert caught.value.hint == "strixd-cli init"


def test_directory(tmp_path: Path) -> None:
    assert complaint(tmp_path) == f"{tmp_path}:0: this is a directory; name the file in it"


def test_a_file_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert "cannot be read: Not a directory" in complaint(tmp_path / "a" / "b")


def test_a_loop_of_links(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.symlink_to(path)
    assert "cannot be read: Too many levels of symbolic links" in complaint(path)


def test_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_bytes(b'[cluster]\nname = "halo"\n# Z\xfcrich\n')
    assert complaint(path).startswith(f"{path}:3: not valid TOML: byte 0xfc is not UTF-8")


def test_not_utf_8_after_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_bytes(b"\xef\xbb\xbf#\xfc\n")
    assert complaint(path).startswith(f"{path}:1: not valid TOML: byte 0xfc is not UTF-8")


def test_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(MINIMAL, encoding="utf-8-sig")
    assert config.read(path).lines[("cluster",)] == 1


def test_endless_file() -> None:
    assert "larger than 1 MiB" in complaint(Path("/dev/zero"))


def test_largest_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(MINIMAL + "#" * (loading.LARGEST_FILE - len(MINIMAL)))
    assert config.load(path) == config.parse(MINIMAL, "").config


def test_equal_files_are_equal_whatever_their_lines() -> None:
    other = MINIMAL.replace("\n", "\n# x\n").replace("[cluster]", "[model]\nport = 8000\n[cluster]")
    assert config.parse(MINIMAL, "a").config == config.parse(other, "b").config
    assert config.parse(MINIMAL, "a").config != config.parse(MINIMAL.replace("halo2", "halo3"), "a").config
