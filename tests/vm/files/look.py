"""Runs inside the virtual machine: waits until strixd has settled about kernel arguments, then tells what is there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE = 200  # seconds; under emulation a first pass takes 20 to 40
SELECTED = "/sys/firmware/efi/efivars/LoaderEntrySelected-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
SETTLED = {"ok", "reboot", "ineffective", "stuck"}


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout


def cmdline() -> dict[str, Any]:
    """What status says of the resource; empty while the daemon does not answer."""
    said = output("strixd-cli", "status", "--json")
    status = json.loads(said) if said.strip() else {"resources": []}
    found: list[dict[str, Any]] = [each for each in status["resources"] if each["name"] == "cmdline"]
    return found[0] if found else {}


def settled() -> dict[str, Any]:
    """The last sight, settled or not: the test judges it."""
    until = time.monotonic() + PATIENCE
    while True:
        seen = cmdline()
        if (seen.get("condition") in SETTLED and not seen["steps"]) or time.monotonic() > until:
            return seen
        time.sleep(5)  # a look is seconds of work here


def texts(folder: str, pattern: str) -> dict[str, str]:
    return {path.stem: path.read_text() for path in sorted(Path(folder).glob(pattern))}


def selected() -> str:
    """The entry that the boot loader says it has started: four bytes of attributes, then UTF-16."""
    return Path(SELECTED).read_bytes()[4:].decode("utf-16-le").rstrip("\0")


def main() -> None:
    seen = {
        "status": settled(),
        "selected": selected(),
        "running": Path("/proc/cmdline").read_text().strip(),
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "entries": texts("/boot/loader/entries", "*.conf"),
        "kernel_cmdline": Path("/etc/kernel/cmdline").read_text(),
        "default_grub": Path("/etc/default/grub").read_text(),
        "iommu": [path.read_text().strip() for path in sorted(Path("/sys/kernel/iommu_groups").glob("*/type"))],
        "failed": output("systemctl", "list-units", "--failed", "--plain", "--no-legend"),
        "errors": output("journalctl", "-b", "-u", "strixd", "-p", "err", "-o", "cat", "--no-pager", "-q"),
        "said": output("journalctl", "-b", "-u", "strixd", "STRIXD_RESOURCE=cmdline", "-o", "cat", "--no-pager", "-q"),
    }
    json.dump(seen, sys.stdout)


main()
