"""What the tests of strixd-media stand on: cluster files, machines laid out as in an installer, the program itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pykickstart.parser import KickstartParser
from pykickstart.version import makeVersion

from strixd import config
from strixd.config import ConfigFile
from strixd.media.render import chosen, kickstart
from strixd.media.templates import load
from tests.laid_tree import lay

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINh0ZXN0dGVzdHRlc3R0ZXN0dGVzdHRlc3R0ZXN0dGVz me@laptop"
DISK = "nvme-WD_BLACK_SN850X_4TB_24123A800001"
TOOLS = {"LC_ALL": "C.UTF-8", "PATH": f"{BIN}:{os.environ['PATH']}:/usr/sbin:/sbin"}


def cluster(nodes: int = 2, *, kind: str = "auto", card: str = "mac", more: str = "", each: str = "") -> str:
    """A cluster.toml; `more` stands before the nodes, `each` in every one of them."""
    text = f'[cluster]\nname = "halo"\n[fabric]\nkind = "{kind}"\n[install]\nssh-keys = ["{KEY}"]\n{more}\n'
    for number in range(1, nodes + 1):
        cards = {
            "mac": f'mac = "b4:96:91:00:00:0{number}"',
            "interface": f'interface = "enp194s0np0"\nserial = "PF{number}"',
            "driver": f'driver = "thunderbolt-net"\nserial = "PF{number}"',
        }
        role = "head" if number == 1 else "worker"
        text += f'[[node]]\nname = "halo{number}"\nrole = "{role}"\naddress = "192.168.100.{number}/24"\n'
        text += f"{cards[card]}\n{each}\n"
    return text


def parsed(text: str) -> ConfigFile:
    return config.parse(text, "cluster.toml")


def rendered(text: str, node: str | None = None) -> str:
    file = parsed(text)
    return kickstart(file, chosen(file, node), load())


def read(text: str, version: str) -> KickstartParser:
    """As ksvalidator does; raises KickstartError."""
    parser = KickstartParser(makeVersion(version), errorsAreFatal=True, followIncludes=False)
    parser.readKickstartFromString(text)
    return parser


def script(rendered: str, kind: str) -> str:
    """The text of one section: "%pre", "%post --nochroot" or "%post --interpreter"."""
    found = re.search(rf"^{kind}[^\n]*\n(.*?)^%end$", rendered, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def media(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "strixd.media", *map(str, words)]
    more = os.environ | TOOLS | environment
    return subprocess.run(command, cwd=ROOT, env=more, capture_output=True, text=True, timeout=120, check=False)


def card(name: str, mac: str, driver: str = "igc", slot: str = "01") -> str:
    """A network card, as lines for lay()."""
    device = f"sys/devices/pci0000:00/0000:{slot}:00.0"
    return f"""
        {device}/net/{name}/address: {mac}
        {device}/net/{name}/device -> {device}
        {device}/driver -> sys/bus/pci/drivers/{driver}
        sys/class/net/{name} -> {device}/net/{name}
    """


def disk(name: str, gib: int, *ids: str, where: str = "pci0000:00/0000:02:00.0", removable: int = 0) -> str:
    """A disk with one partition, as lines for lay()."""
    place = f"sys/devices/{where}/block/{name}"
    part = f"{name}p1" if name[-1].isdigit() else f"{name}1"
    links = "\n".join(f"dev/disk/by-id/{each} -> dev/{name}\ndev/disk/by-id/{each}-part1 -> dev/{part}" for each in ids)
    return f"""
        {place}/size: {gib * 2097152}
        {place}/removable: {removable}
        {place}/ro: 0
        {place}/{part}/partition: 1
        sys/block/{name} -> {place}
        sys/class/block/{name} -> {place}
        sys/class/block/{part} -> {place}/{part}
        {links}
    """


STICK = disk("sda", 57, "usb-SanDisk_Ultra_1", where="pci0000:00/0000:09:00.0/usb3/3-1", removable=1)
MACHINE = f"""
    sys/class/dmi/id/product_serial: PF1
    proc/mounts: none / rootfs rw 0 0
    tmp/
    {card("enp194s0np0", "b4:96:91:00:00:01", "ice")}
    {card("eno1", "9c:bf:0d:00:00:01", slot="03")}
    sys/class/net/lo/address: 00:00:00:00:00:00
    {disk("nvme0n1", 3726, DISK, "nvme-eui.e8238fa6bf530001001b448b4e000000")}
    {STICK}
"""


def machine(root: Path, *changes: str) -> Path:
    """A machine in the installer, with one fabric card, one other, one disk and a stick."""
    lay(root, "\n".join((MACHINE, *changes)))
    return root


def run_script(text: str, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", text, "script", *map(str, arguments)],
        env=TOOLS | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def stand_in(folder: Path, name: str, body: str) -> None:
    """A program of this name, first on the path."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/bash\n{body}\n")
    (folder / name).chmod(0o755)


_AWAY = """
link nice stty su unlink runuser base64 chcon cksum comm csplit dir dircolors expand factor fold
groups hostid install join logname mkfifo nl nohup nproc pathchk pinky pr printenv ptx runcon
sha512sum shuf stat stdbuf sum timeout truncate tsort unexpand users vdir who whoami yes diff cmp
file free pgrep pkill getent
"""
INSTALLER = "".join(f"{name}() {{ echo 'no {name} in the installer' >&2; exit 127; }}\n" for name in _AWAY.split())
"""Stands before a script: without the programs that lorax takes out of the installer (its runtime-cleanup.tmpl)."""
MOUNT = 'mkdir -p "${@: -1}" && cp -a "$(readlink -f "$VOLUME")/." "${@: -1}/"'
UMOUNT = 'rm -r "$1"'


@dataclass(frozen=True)
class Parts:
    """What a medium is made of."""

    folder: Path
    cluster: Path
    rpms: Path
    iso: Path
    archive: Path
    model: Path
    key: Path

    def build(self, out: Path, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return media("build", "--cluster", self.cluster, "--out", out, *words, **environment)
