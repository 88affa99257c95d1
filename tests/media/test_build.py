"""Media in small, built by the program itself, and opened by others: blkid, xorriso, mtools, checkisomd5."""

from __future__ import annotations

import bz2
import contextlib
import hashlib
import re
import sqlite3
from pathlib import Path

import pytest

from strixd import __version__
from strixd.media import grub
from strixd.media.rpms import WANTED
from tests.media.lab import Parts, rendered
from tests.media.pieces import LABEL, MENU, NAME, SECRET, run

INSTALLS = f"/images/pxeboot/vmlinuz inst.stage2=hd:LABEL={LABEL} quiet inst.ks=hd:LABEL={LABEL}:/ks.cfg\n"


def extracted(image: Path, folder: Path) -> dict[str, bytes]:
    run("xorriso", "-osirrox", "on", "-indev", image, "-extract", "/", folder)
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def good(found: dict[str, bytes]) -> set[str]:
    """The names that the sums of the medium hold for, which must be all of ours."""
    lines = [line.split("  ", 1) for line in found["strixd/SHA256SUMS"].decode().splitlines()]
    assert all(hashlib.sha256(found[name]).hexdigest() == value for value, name in lines)
    names = {name for _, name in lines}
    assert names == {name for name in found if name.startswith("strixd/") or name == "ks.cfg"} - {"strixd/SHA256SUMS"}
    return names


def test_a_volume_for_the_installer(parts: Parts, out: Path, elsewhere: Path) -> None:
    done = parts.build(out, "--rpms", parts.rpms, "--model", parts.model, "--image", parts.archive)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"{out} is ready: ")
    assert "strixd-cli key import" in done.stdout
    assert "installs again, for ever: take the stick out" in done.stdout
    assert run("blkid", "-p", "-o", "value", "-s", "LABEL", out) == "OEMDRV\n"
    found = extracted(out, elsewhere / "x")
    assert {NAME, "strixd/image/image.tar", "strixd/repo/repodata/repomd.xml", "ks.cfg"} <= good(found)
    assert found[NAME] == b"weights" * 100_000
    assert found["ks.cfg"].decode() == rendered(parts.cluster.read_text())
    assert found["strixd/cluster.toml"] == parts.cluster.read_bytes()
    assert out.stat().st_mode & 0o777 == 0o644


def test_a_volume_that_stays_writable(parts: Parts, out: Path, quick: str) -> None:
    volume = out.with_suffix(".img")
    done = parts.build(volume, "--rpms", parts.rpms, "--node", "halo2", PATH=quick)
    assert done.returncode == 0, done.stderr
    assert run("blkid", "-p", "-o", "value", "-s", "LABEL", volume) == "OEMDRV\n"
    assert run("mtype", "-i", volume, "::/ks.cfg") == rendered(parts.cluster.read_text(), "halo2")
    assert f"strixd-{__version__}.rpm" in run("mdir", "-b", "-i", volume, "::/strixd/repo")


@pytest.mark.parametrize("name", ["medium.iso", "medium.img"])
def test_the_repository_on_a_medium_is_one(parts: Parts, out: Path, elsewhere: Path, quick: str, name: str) -> None:
    """To createrepo_c's own reader, and rpm's: all that is listed is there, byte for byte, and nothing else."""
    medium = out.with_name(name)
    done = parts.build(medium, "--rpms", parts.rpms, PATH=quick)
    assert done.returncode == 0, done.stderr
    repo = elsewhere / "repo"
    if name.endswith(".iso"):
        run("xorriso", "-osirrox", "on", "-indev", medium, "-extract", "/strixd/repo", repo)
    else:
        run("mcopy", "-s", "-n", "-i", medium, "::/strixd/repo", elsewhere)
    run("mergerepo_c", "--database", "--compress-type=bz2", "-r", f"file://{repo}", "-o", elsewhere / "read")
    (packed,) = (elsewhere / "read/repodata").glob("*primary.sqlite.bz2")
    (elsewhere / "primary.sqlite").write_bytes(bz2.decompress(packed.read_bytes()))
    with contextlib.closing(sqlite3.connect(elsewhere / "primary.sqlite")) as read:
        rows = read.execute("select location_href, pkgId, name, version from packages").fetchall()
    assert {href for href, *_ in rows} == {each.name for each in repo.glob("*.rpm")}
    for href, digest, *named in rows:
        assert hashlib.sha256((repo / href).read_bytes()).hexdigest() == digest
        assert run("rpm", "-qp", "--qf", "%{NAME} %{VERSION}", repo / href).split() == named
    assert {named for _, _, named, _ in rows} == set(WANTED)


def test_a_fedora_image_that_installs_by_itself(parts: Parts, out: Path, elsewhere: Path) -> None:
    done = parts.build(out, "--rpms", parts.rpms, "--iso", parts.iso, "--model", parts.model)
    assert done.returncode == 0, done.stderr
    assert run("blkid", "-p", "-o", "value", "-s", "LABEL", out) == f"{LABEL}\n"
    run("checkisomd5", out)
    found = extracted(out, elsewhere / "x")
    assert NAME in good(found)
    assert found["images/install.img"] == b"stage 2"
    area = run("xorriso", "-indev", out, "-report_system_area", "plain", "-report_el_torito", "plain")
    assert ("El Torito boot img :   1  BIOS" in area, "El Torito boot img :   2  UEFI" in area) == (True, True)
    start, size = next(line.split()[-2:] for line in area.splitlines() if line.startswith("GPT start and size :   2"))
    (elsewhere / "efi").write_bytes(out.read_bytes()[int(start) * 512 :][: int(size) * 512])
    menus = [found["EFI/BOOT/grub.cfg"].decode(), found["boot/grub2/grub.cfg"].decode()]
    for menu in (*menus, run("mtype", "-i", elsewhere / "efi", "::/EFI/BOOT/grub.cfg")):
        assert menu.count(f"inst.ks=hd:LABEL={LABEL}:/ks.cfg\n") == 2
        assert INSTALLS in menu
    again = parts.build(out.with_name("medium.img"), "--rpms", parts.rpms, "--iso", out)
    assert (again.returncode, "stays an ISO image" in again.stderr) == (2, True)
    out.rename(elsewhere / "done.iso")
    again = parts.build(out, "--rpms", parts.rpms, "--iso", elsewhere / "done.iso")
    assert (again.returncode, "has a kickstart already" in again.stderr) == (2, True)


def test_the_key_only_when_asked_for(parts: Parts, out: Path, quick: str) -> None:
    done = parts.build(out, "--rpms", parts.rpms, "--with-cluster-key", parts.key, PATH=quick)
    assert done.returncode == 0, done.stderr
    assert SECRET.encode() in out.read_bytes()
    assert out.stat().st_mode & 0o777 == 0o600
    assert "as valuable as root" in done.stdout
    assert SECRET not in done.stdout + done.stderr
    out.unlink()
    parts.key.with_name("bad.key").write_text(SECRET[:-2])
    done = parts.build(out, "--rpms", parts.rpms, "--with-cluster-key", parts.key.with_name("bad.key"))
    assert (done.returncode, "is no cluster key" in done.stderr) == (2, True)
    assert SECRET[:20] not in done.stderr


@pytest.mark.parametrize("there", [False, True], ids=["no-file", "no-key"])
def test_where_there_is_no_key_the_hint_makes_one(
    parts: Parts, out: Path, elsewhere: Path, quick: str, there: bool
) -> None:
    """On an administrator's machine, which has no strixd-cli."""
    key = elsewhere / "cluster.key"
    if there:
        key.write_text("none\n")
    words = ("--rpms", parts.rpms, "--with-cluster-key", key)
    done = parts.build(out, *words, PATH=quick)
    assert (done.returncode, str(key) in done.stderr.splitlines()[-2]) == (2, True)
    told = re.match(r"  (\(.*\)) makes one", done.stderr.splitlines()[-1])
    assert told
    run("bash", "-c", f"cd {elsewhere} && {told[1]}")
    assert key.stat().st_mode & 0o777 == (0o644 if there else 0o600)
    done = parts.build(out, *words, PATH=quick)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("linux /v inst.stage2=hd:LABEL=A quiet", "linux /v inst.stage2=hd:LABEL=A quiet inst.ks=hd:LABEL=A:/ks.cfg"),
        (
            "\tlinuxefi /v inst.stage2=hd:LABEL=A\\x20B  ",
            "\tlinuxefi /v inst.stage2=hd:LABEL=A\\x20B inst.ks=hd:LABEL=A\\x20B:/ks.cfg",
        ),
        (
            "linux /v inst.ks=cdrom: inst.stage2=hd:LABEL=A:/x",
            "linux /v inst.stage2=hd:LABEL=A:/x inst.ks=hd:LABEL=A:/ks.cfg",
        ),
        ("linux /v inst.stage2=hd:LABEL=A inst.rescue", "linux /v inst.stage2=hd:LABEL=A inst.rescue"),
        ("linux /v root=live:CDLABEL=A", "linux /v root=live:CDLABEL=A"),
        ("initrd /i", "initrd /i"),
    ],
)
def test_lines_of_a_menu(line: str, edited: str) -> None:
    assert grub.with_kickstart(f"a\n{line}\nb\n") == f"a\n{edited}\nb\n"
    assert grub.with_kickstart(edited) == edited
    assert grub.unattended(edited) == ("inst.ks" in edited)
    assert not grub.unattended(MENU)
