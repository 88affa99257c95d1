"""%post in a real bash, below a laid-out root: what the medium brings, and what is left when the installer is done."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.media.lab import INSTALLER, MOUNT, TOOLS, UMOUNT, cluster, rendered, run_script, script, stand_in
from tests.media.pieces import medium

SECRET = "5e" * 32
FILES = {
    "strixd/models/tiny/config.json": "{}",
    "strixd/models/tiny/sub/a b.safetensors": "weights",
    "strixd/image/image.tar": "layers",
    "strixd/key/cluster.key": f"{SECRET}\n",
}
MODELS = "/srv/it's/models"
TEXT = cluster() + f'[model]\nfolder = "{MODELS}"\n'

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="an installer is root: files get owners")


def brought(tmp_path: Path, root: Path) -> subprocess.CompletedProcess[str]:
    stand_in(tmp_path / "bin", "mount", MOUNT)
    stand_in(tmp_path / "bin", "umount", UMOUNT)
    path = f"{tmp_path / 'bin'}:{TOOLS['PATH']}"
    text = INSTALLER + script(rendered(TEXT), "%post --nochroot")
    return run_script(text, root, tmp_path / "new", PATH=path, VOLUME=str(tmp_path / "volume"))


@pytest.mark.parametrize("place", ["embedded", "volume"])
def test_everything_is_brought_to_its_place(tmp_path: Path, place: str) -> None:
    root, new = tmp_path / "root", tmp_path / "new"
    if place == "embedded":
        medium(root / "run/install/repo", FILES)
    else:
        medium(tmp_path / "volume", FILES)
        (root / "dev/disk/by-label").mkdir(parents=True)
        (root / "dev/disk/by-label/OEMDRV").symlink_to("../../sda")
    done = brought(tmp_path, root)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert (new / f".{MODELS}/tiny/sub/a b.safetensors").read_text() == "weights"
    assert (new / "var/lib/strixd/install/image.tar").read_text() == "layers"
    key = new / "etc/strixd/cluster.key"
    assert key.read_text() == f"{SECRET}\n"
    assert (key.stat().st_mode & 0o777, key.stat().st_uid, key.stat().st_gid) == (0o600, 0, 0)
    assert not (root / "run/strixd-medium/mounted").exists()


def test_a_medium_may_hold_none_of_it_or_be_away(tmp_path: Path) -> None:
    medium(tmp_path / "root/run/install/repo", {})
    for root in ("root", "away"):
        done = brought(tmp_path, tmp_path / root)
        assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", [name for name in FILES if "key" not in name])
def test_what_a_bad_stick_gives_is_not_taken(tmp_path: Path, name: str) -> None:
    (medium(tmp_path / "root/run/install/repo", FILES) / name).write_text("rotten")
    done = brought(tmp_path, tmp_path / "root")
    assert done.returncode != 0
    assert "FAILED" in done.stdout


def settled(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    stand_in(tmp_path / "bin", "systemctl", f'echo "$*" >> {tmp_path}/enabled')
    stand_in(tmp_path / "bin", "restorecon", f'echo "$*" >> {tmp_path}/labelled')
    path = f"{tmp_path / 'bin'}:{TOOLS['PATH']}"
    return run_script(script(rendered(text), "%post --interpreter"), tmp_path / "new", PATH=path)


def test_a_node_is_left_with_its_file_and_with_strixd_enabled(tmp_path: Path) -> None:
    text = cluster() + '[image.environment]\nA = "it\'s $HOME `x` \\\\ %end"\n'
    done = settled(tmp_path, text)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    file = tmp_path / "new/etc/strixd/cluster.toml"
    assert (file.read_text(), file.stat().st_mode & 0o777) == (text, 0o644)
    enabled = (tmp_path / "enabled").read_text()
    units = "strixd.socket strixd.service strixd-load.service strixd-firstboot.service"
    assert enabled == f"--root={tmp_path / 'new'} enable {units}\n"
    labelled = (tmp_path / "labelled").read_text().replace(str(tmp_path / "new"), "")
    assert labelled.splitlines() == ["-RF /etc/strixd", "-RF /var/lib/strixd"]
    assert (tmp_path / "new/var/lib/strixd/install").stat().st_mode & 0o777 == 0o700
