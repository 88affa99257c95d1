"""Runs inside a virtual machine with two disks that an installation could go to, and a stick that strixd-media built:
the scripts of kickstarts, as the installer runs them, with the machine's real disks, links and mounts.

Tells what each said and wrote, and what they brought from the stick.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

KICKSTARTS = Path("/usr/local/share/kickstarts")
STICK = Path("/dev/disk/by-label/OEMDRV")
INCLUDE = Path("/tmp/strixd-node.ks")
REPOSITORY = Path("/run/strixd-medium/repo")
TARGET = Path("/run/target")
SECOND = "ata-QEMU_HARDDISK_SECOND"
PATIENCE = 60.0  # seconds until the kernel has found the stick


def output(*command: str) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=60)
    return done.stdout


def section(kickstart: str, kind: str) -> str:
    """The text of a script: of "%pre", or of "%post --nochroot"."""
    found = re.search(rf"^{kind}[^\n]*\n(.*?)^%end$", kickstart, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def run(script: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        ["bash", "-c", script, "script", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    return {"status": done.returncode, "said": done.stdout}


def picked(kickstart: str) -> dict[str, Any]:
    INCLUDE.unlink(missing_ok=True)
    told = run(section(kickstart, "%pre"))
    return {**told, "include": INCLUDE.read_text().splitlines() if INCLUDE.exists() else None}


def tree(folder: Path) -> dict[str, str]:
    """Each file below, by its hash."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def of_the_stick() -> tuple[str, dict[str, str]]:
    """Its own kickstart, and all its files."""
    until = time.monotonic() + PATIENCE
    while not STICK.exists() and time.monotonic() < until:
        time.sleep(1)
    place = Path("/run/stick")
    place.mkdir()
    output("mount", "-o", "ro", str(STICK), str(place))
    kickstart, files = (place / "ks.cfg").read_text(), tree(place)
    output("umount", str(place))
    return kickstart, files


def main() -> None:
    own, files = of_the_stick()
    seen: dict[str, Any] = {"stick": files, "of_the_stick": picked(own)}
    seen |= {path.stem: picked(path.read_text()) for path in sorted(KICKSTARTS.glob("*.ks"))}
    second = Path(f"/dev/disk/by-id/{SECOND}").resolve().name
    seen["second"] = second
    Path(f"/sys/block/{second}/device/delete").write_text("1")
    seen["one_disk"] = picked(own)
    seen["repository"] = tree(REPOSITORY)
    TARGET.mkdir()
    seen["brought"] = run(section(own, "%post --nochroot"), "", str(TARGET))
    seen["target"] = tree(TARGET)
    seen["key_mode"] = oct((TARGET / "etc/strixd/cluster.key").stat().st_mode & 0o777)
    seen["mounts"] = output("cat", "/proc/mounts")
    json.dump(seen, sys.stdout)


main()
