"""An image with the layout of Fedora's that boots, by real GRUBs, a kernel whose init tells its command line and ends.

Nothing of Fedora is in it. Its menus speak to the serial port, and none waits for long.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.lab.shell import run
from tests.media import pieces

GRUB = Path("/usr/lib/grub")
BUSYBOX = Path("/bin/busybox")
SAID = "STANDIN-CMDLINE: "
_INIT = f"""\
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
echo "{SAID}$(/bin/busybox cat /proc/cmdline)" > /dev/ttyS0
/bin/busybox sync
/bin/busybox poweroff -f
"""
_MENU = "set timeout=1\nserial --unit=0\nterminal_output serial console\n" + pieces.MENU
_ANYWHERE = "normal linux iso9660 search search_label configfile serial terminal echo test boot part_gpt part_msdos"


def image(folder: Path, kernel: Path) -> Path:
    """About 30 MB, made in seconds."""
    real = {
        "mbr": GRUB / "i386-pc/boot_hybrid.img",
        "images/pxeboot/vmlinuz": kernel,
        "images/pxeboot/initrd.img": _initramfs(folder / "initrd"),
        "images/eltorito.img": _grub(folder / "eltorito", "i386-pc-eltorito", "/boot/grub2", "biosdisk"),
        "EFI/BOOT/BOOTX64.EFI": _grub(folder / "efi", "x86_64-efi", "/EFI/BOOT", "fat search_fs_file all_video"),
    }
    return pieces.fedora(folder, menu=_MENU, real=real)


def _grub(out: Path, kind: str, prefix: str, more: str) -> Path:
    run(["grub-mkimage", "-O", kind, "-p", prefix, "-o", out, *_ANYWHERE.split(), *more.split()])
    return out


def _initramfs(out: Path) -> Path:
    """An archive of the kernel's kind ("newc"): a program, a script, and folders to mount on."""
    entries = [
        *((name, 0o040755, b"") for name in ("bin", "proc", "dev")),
        ("bin/busybox", 0o100755, BUSYBOX.read_bytes()),
        ("init", 0o100755, _INIT.encode()),
        ("TRAILER!!!", 0, b""),
    ]
    archive = b"".join(_entry(number, *entry) for number, entry in enumerate(entries, 1))
    out.write_bytes(gzip.compress(archive))
    return out


def _entry(number: int, name: str, mode: int, content: bytes) -> bytes:
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _four(head) + _four(content)


def _four(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 4)
