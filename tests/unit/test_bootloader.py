"""The boot files as Fedora lays them, edited by way of a stand-in that has grubby's faults."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from strixd.errors import Rejected, Unavailable
from strixd.host import bootfiles, bootloader
from strixd.host.bootloader import Grubby
from strixd.ports import DEFAULT_GRUB, KERNEL_CMDLINE

STANDIN = Path(__file__).parents[1] / "standin/grubby"
MACHINE = "6f2a0c1d5e7b4f3a9c8d7e6f5a4b3c2d"
NEW, OLD = f"{MACHINE}-6.18.5-300.fc43.x86_64", f"{MACHINE}-6.9.12-300.fc43.x86_64"
RESCUE = f"{MACHINE}-0-rescue"
ROOT = "root=UUID=2f0c ro rootflags=subvol=root rhgb quiet"
ENTRY = """title Fedora Linux ({version}) 43 (Server Edition)
version {version}
linux /vmlinuz-{version}
initrd /initramfs-{version}.img
options {options}
grub_users $grub_users
grub_arg --unrestricted
grub_class fedora
"""
GRUB = """GRUB_TIMEOUT=5
GRUB_DISTRIBUTOR="$(sed 's, release .*$,,g' /etc/system-release)"
# GRUB_CMDLINE_LINUX="an old one"
GRUB_CMDLINE_LINUX="rhgb quiet"
GRUB_DISABLE_RECOVERY="true"
GRUB_ENABLE_BLSCFG=true
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRUBBY_ROOT", str(tmp_path))
    for name in (NEW, OLD, RESCUE):
        version = name.removeprefix(f"{MACHINE}-") + (f"-{MACHINE}" if name == RESCUE else "")
        _lay(tmp_path / f"boot/loader/entries/{name}.conf", ENTRY.format(version=version, options=ROOT))
    _lay(tmp_path / "etc/kernel/cmdline", f"{ROOT}\n")
    _lay(tmp_path / "etc/default/grub", GRUB)
    _lay(tmp_path / "proc/cmdline", f"BOOT_IMAGE=(hd0,gpt2)/vmlinuz-6.18.5-300.fc43.x86_64 {ROOT}\n")
    return tmp_path


def _lay(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


def _all(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _change(root: Path, options: Mapping[str, str], command: str = str(STANDIN)) -> None:
    asyncio.run(Grubby(root, command).change(options))


def _everywhere(options: str) -> dict[str, str]:
    return {NEW: options, OLD: options, KERNEL_CMDLINE: options, DEFAULT_GRUB: options}


def test_everything_is_read(root: Path) -> None:
    boot = asyncio.run(Grubby(root, str(STANDIN)).read())
    assert [(entry.name, entry.options, entry.rescue) for entry in boot.entries] == [
        (NEW, ROOT, False),
        (OLD, ROOT, False),
        (RESCUE, ROOT, True),
    ]
    assert (boot.tool, boot.kernel_cmdline, boot.default_grub) == ("grubby", ROOT, "rhgb quiet")
    assert boot.running.startswith("BOOT_IMAGE=")


def test_a_host_without_any_of_it_can_be_read(tmp_path: Path) -> None:
    boot = asyncio.run(Grubby(tmp_path, "no-such-grubby").read())
    assert (boot.tool, boot.entries, boot.kernel_cmdline, boot.default_grub) == ("", (), None, None)


def test_without_grubby_nothing_is_changed(root: Path) -> None:
    before = _all(root)
    with pytest.raises(Rejected, match="no grubby on this host"):
        _change(root, _everywhere("iommu=pt"), "no-such-grubby")
    assert _all(root) == before


@pytest.mark.parametrize(
    "options",
    [
        f"{ROOT} iommu=pt",
        "root=UUID=2f0c ro pci=noaer,realloc quiet",  # grubby replaces a list
        f"{ROOT} console=tty0 console=ttyS0,115200",  # and all consoles by one
        f"ttm.pages_limit=32505856 {ROOT}",  # and appends
        f"{ROOT} iommu=pt -- single",  # behind init's arguments too
        f'{ROOT} dyndbg="file drivers/net/* +p" iommu=pt',
        "",
    ],
)
def test_every_place_reads_exactly_as_asked_and_nothing_else_is_touched(root: Path, options: str) -> None:
    before = _all(root)
    _change(root, _everywhere(options))
    after = asyncio.run(Grubby(root, str(STANDIN)).read())
    assert [entry.options for entry in after.entries] == [options, options, ROOT]
    assert (after.kernel_cmdline, after.default_grub) == (options, options)
    assert _all(root).keys() == before.keys()
    assert _all(root)[f"boot/loader/entries/{RESCUE}.conf"] == before[f"boot/loader/entries/{RESCUE}.conf"]
    assert (root / f"boot/loader/entries/{NEW}.conf").stat().st_mode & 0o777 == 0o600


def test_a_change_taken_back_leaves_the_same_bytes(root: Path) -> None:
    before = _all(root)
    _change(root, {**_everywhere("iommu=pt quiet pci=noaer -- x"), OLD: 'a="b c"'})
    assert _all(root) != before
    _change(root, {**_everywhere(ROOT), DEFAULT_GRUB: "rhgb quiet"})
    assert _all(root) == before


def test_what_holds_already_is_not_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.stat().st_ino for path in root.rglob("*")}
    _change(root, {NEW: ROOT, KERNEL_CMDLINE: ROOT, DEFAULT_GRUB: "rhgb quiet"}, "/bin/false")
    assert {path: path.stat().st_ino for path in root.rglob("*")} == before


def test_grubby_says_no(root: Path, tmp_path: Path) -> None:
    before = _all(root)
    no = tmp_path.parent / "no-grubby"
    no.write_text("#!/bin/sh\necho 'grubby: this one never works' >&2\nexit 1\n")
    no.chmod(0o755)
    with pytest.raises(Rejected, match="Cannot change kernel arguments: grubby: this one never works"):
        _change(root, _everywhere("iommu=pt"), str(no))
    assert _all(root) == before


def test_grubby_breaks_off_in_the_middle(root: Path, tmp_path: Path) -> None:
    before = _all(root)
    half = tmp_path.parent / "half-grubby"
    half.write_text(f'#!/bin/sh\n"{STANDIN}" "$@"\ncase $1 in *6.9.12*) exit 1;; esac\n')
    half.chmod(0o755)
    with pytest.raises(Rejected, match="status 1"):
        _change(root, _everywhere("iommu=pt"), str(half))
    assert _all(root) == before


def test_a_full_disk_changes_no_byte(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, real, left = _all(root), os.fsync, [2]

    def fsync(file: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(Rejected, match="No space left"):
        _change(root, _everywhere("iommu=pt"))
    assert _all(root) == before


def _refusing(number: int, call: Callable[..., Any], below: Path) -> Callable[..., Any]:
    """The same system call, on a file system on which it fails for whatever would be written."""

    def instead(path: Any, *more: Any, **named: Any) -> Any:
        reads = call.__name__ == "open" and not more[0] & os.O_CREAT
        if below in Path(path).parents and not reads:
            raise OSError(number, os.strerror(number), str(path))
        return call(path, *more, **named)

    return instead


@pytest.mark.parametrize("wanted", [{}, {NEW: ROOT}])
def test_a_read_only_boot_is_no_failure_where_nothing_is_to_change(
    root: Path, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, str]
) -> None:
    """Linux says that a file system is read-only before it looks whether there is such a name."""
    monkeypatch.setattr(os, "unlink", _refusing(errno.EROFS, os.unlink, root / "boot"))
    _change(root, wanted)


@pytest.mark.parametrize(
    ("calls", "number", "hint"),
    [
        (("unlink", "open", "replace", "rename"), errno.EROFS, "findmnt -T "),
        (("unlink",), errno.EROFS, "findmnt -T "),
        (("open",), errno.EIO, ""),
        (("replace",), errno.EIO, ""),
        (("open",), errno.ENOSPC, "make room"),
    ],
)
def test_a_boot_that_cannot_be_written_is_a_named_failure(
    root: Path, monkeypatch: pytest.MonkeyPatch, calls: tuple[str, ...], number: int, hint: str
) -> None:
    before = _all(root)
    with monkeypatch.context() as patch:
        for call in calls:
            patch.setattr(os, call, _refusing(number, getattr(os, call), root / "boot"))
        with pytest.raises(Rejected, match=f"{root}/boot/.*: {os.strerror(number)}") as failure:
            _change(root, _everywhere("iommu=pt"))
    assert failure.value.hint.startswith(hint)
    assert {path for path in _all(root) if not path.startswith("boot/")} <= before.keys()
    assert {path: before[path] for path in before} == {path: _all(root)[path] for path in before}


@pytest.mark.parametrize("program", [b"#!/no/such/interpreter\n", b"\x7fELF is not so"])
def test_a_grubby_that_cannot_be_run_is_a_named_failure(root: Path, tmp_path: Path, program: bytes) -> None:
    before = _all(root)
    broken = tmp_path.parent / f"{tmp_path.name}-broken"
    broken.write_bytes(program)
    broken.chmod(0o755)
    with pytest.raises(Rejected, match="broken cannot be run: ") as failure:
        _change(root, _everywhere("iommu=pt"), str(broken))
    assert failure.value.hint == "dnf reinstall grubby bash"
    assert _all(root) == before


def test_an_entry_that_goes_while_it_is_staged_is_a_named_failure(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = bootloader._stage

    def gone(files: Any, wanted: Any) -> None:
        (root / f"boot/loader/entries/{OLD}.conf").unlink()
        stage(files, wanted)

    monkeypatch.setattr(bootloader, "_stage", gone)
    with pytest.raises(Rejected, match=f"Cannot change .*{OLD}.conf: No such file"):
        _change(root, _everywhere("iommu=pt"))
    assert not list(root.rglob(f"*{bootloader.STAGED}"))


@pytest.mark.parametrize("text", ["", "title F\nversion 6.19\n", "title F\noptions ro quiet\n", "linux /vmlinuz\n"])
def test_an_entry_that_is_not_whole_yet_is_let_be(root: Path, text: str) -> None:
    path = root / "boot/loader/entries/new.conf"
    path.write_text(text)
    assert "new" not in {entry.name for entry in asyncio.run(Grubby(root, str(STANDIN)).read()).entries}
    _change(root, {"new": "ro quiet iommu=pt"})
    assert path.read_text() == text


def test_whoever_writes_an_entry_line_by_line_is_let_finish(root: Path) -> None:
    """What is added after a change would go into a file that is no longer there."""
    path = root / "boot/loader/entries/new.conf"
    lines = ENTRY.format(version="6.19.1", options=ROOT).splitlines(keepends=True)
    writer = threading.Thread(target=_write_slowly, args=(path, lines))
    writer.start()
    while not bootfiles.is_whole(path.read_text() if path.exists() else ""):
        time.sleep(0.01)
    _change(root, {"new": f"{ROOT} iommu=pt"})
    writer.join()
    assert path.read_text() == ENTRY.format(version="6.19.1", options=f"{ROOT} iommu=pt")


def _write_slowly(path: Path, lines: list[str]) -> None:
    with path.open("w") as out:
        for line in lines:
            out.write(line)
            out.flush()
            time.sleep(0.1)


def test_what_strixd_wrote_itself_is_not_waited_for(root: Path) -> None:
    loader = Grubby(root, str(STANDIN))
    asyncio.run(loader.change({KERNEL_CMDLINE: "quiet"}))
    begun = time.monotonic()
    asyncio.run(loader.change({KERNEL_CMDLINE: "quiet ro"}))
    assert time.monotonic() - begun < bootloader.QUIET


def test_an_entry_without_a_kernel_is_written_here(root: Path) -> None:
    _lay(root / "boot/loader/entries/uki.conf", "title U\nefi /uki.efi\noptions quiet\noptions ro\n")
    _change(root, {"uki": "quiet ro iommu=pt"})
    assert (root / "boot/loader/entries/uki.conf").read_text() == "title U\nefi /uki.efi\noptions quiet ro iommu=pt\n"


def test_a_link_stays_a_link(root: Path) -> None:
    (root / "etc/default/grub").rename(root / "etc/grub.real")
    (root / "etc/default/grub").symlink_to("../grub.real")
    _change(root, {DEFAULT_GRUB: "quiet"})
    assert (root / "etc/default/grub").is_symlink()
    assert 'GRUB_CMDLINE_LINUX="quiet"' in (root / "etc/grub.real").read_text()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('GRUB_CMDLINE_LINUX=""\n', ""),
        ("GRUB_CMDLINE_LINUX='a b'\n", "a b"),
        ("GRUB_CMDLINE_LINUX=quiet # why\n", "quiet"),
        ('GRUB_CMDLINE_LINUX="x dyndbg=\\"file a +p\\""\n', 'x dyndbg="file a +p"'),
        ('GRUB_CMDLINE_LINUX="first"\nGRUB_CMDLINE_LINUX="last"\n', "last"),
        ('GRUB_CMDLINE_LINUX_DEFAULT="other"\n', ""),
        ("", ""),
    ],
)
def test_grub_s_default_file_is_understood_and_written(text: str, options: str) -> None:
    assert bootfiles.default_grub(text) == options
    assert bootfiles.with_default_grub(text, options) == text
    changed = bootfiles.with_default_grub(text, 'iommu=pt a="b c"')
    assert bootfiles.default_grub(changed) == 'iommu=pt a="b c"'


def test_files_that_are_not_text_are_a_named_failure(root: Path) -> None:
    (root / "etc/default/grub").write_bytes(b"\xff\xfe")
    with pytest.raises(Rejected, match="UTF-8"):
        asyncio.run(Grubby(root, str(STANDIN)).read())


def test_a_hung_grubby_is_ended(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _all(root)
    hung = tmp_path.parent / "hung-grubby"
    hung.write_text("#!/bin/sh\nexec sleep 60\n")
    hung.chmod(0o755)
    monkeypatch.setattr(bootloader, "GRUBBY", 0.2)
    with pytest.raises(Unavailable, match=r"within 0\.2 s"):
        _change(root, _everywhere("iommu=pt"), str(hung))
    assert _all(root) == before


def test_kernels_are_edited_side_by_side_and_each_by_one_run_at_a_time(root: Path, tmp_path: Path) -> None:
    """Each run waits until two have begun: one after the other they would never end."""
    (root / "boot/loader/entries/twin.conf").write_text(
        ENTRY.format(version=NEW.removeprefix(f"{MACHINE}-"), options=ROOT)
    )
    begun = tmp_path.parent / f"{tmp_path.name}-begun"
    slow = tmp_path.parent / f"{tmp_path.name}-grubby"
    slow.write_text(
        f'#!/bin/sh\necho "$1" >>{begun}\n'
        f'for n in $(seq 200); do [ "$(sort -u {begun} | wc -l)" -ge 2 ] && break; sleep 0.05; done\n'
        f'[ $n -lt 200 ] && "{STANDIN}" "$@"\n'
    )
    slow.chmod(0o755)
    _change(root, {**_everywhere("iommu=pt"), "twin": "iommu=off"}, str(slow))
    lines = {entry.name: entry.options for entry in asyncio.run(Grubby(root, str(STANDIN)).read()).entries}
    assert (lines[NEW], lines[OLD], lines["twin"]) == ("iommu=pt", "iommu=pt", "iommu=off")


def test_what_a_hung_grubby_started_ends_with_it(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path.parent / f"{tmp_path.name}-went-on"
    hung = tmp_path.parent / f"{tmp_path.name}-hung"
    hung.write_text(f"#!/bin/sh\n(sleep 0.6; touch {mark})\n")
    hung.chmod(0o755)
    monkeypatch.setattr(bootloader, "GRUBBY", 0.1)
    with pytest.raises(Unavailable):
        _change(root, {NEW: "iommu=pt"}, str(hung))
    time.sleep(0.8)
    assert not mark.exists()


def test_what_a_killed_strixd_has_staged_goes_with_the_next_change(root: Path) -> None:
    for name in (NEW, OLD):
        _lay(root / f"boot/loader/entries/{name}.conf{bootloader.STAGED}", "left over")
    _change(root, {KERNEL_CMDLINE: f"{ROOT} iommu=pt"})
    assert not list(root.rglob(f"*{bootloader.STAGED}"))
    assert (root / "etc/kernel/cmdline").read_text() == f"{ROOT} iommu=pt\n"
