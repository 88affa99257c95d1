"""A host's disk: an overlay over the base root, seeded with what makes it this host and not another."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from tests.lab.layout import (
    FILES,
    MANAGEMENT,
    REGISTRY_ADDRESS,
    REGISTRY_NAME,
    REGISTRY_PORT,
    Seat,
)
from tests.lab.shell import run

STANDINS = "etc/systemd/system/lab-standins.service"
SHIM = "usr/local/libexec/crun-shim"
# NM reads keyfiles of other users' permission bits as an attack, so it must be 0600.
MANAGEMENT_PROFILE = """\
[connection]
id={interface}
type=ethernet
interface-name={interface}

[ipv4]
method=manual
address1={address}/24,{gateway}
may-fail=false

[ipv6]
method=disabled
"""
CONTAINERS = """\
[containers]
pids_limit = 0
volumes = [{volumes}]

[engine]
runtime = "crun"

[engine.runtimes]
crun = ["/{shim}"]
"""
# In Fedora's systemd, and not in Debian's: everybody may have a ping socket.
SYSCTL = "net.ipv4.ping_group_range = 0 2147483647\n"
REGISTRIES = '[[registry]]\nlocation = "{name}:{port}"\ninsecure = true\n'


def make_disk(seat: Seat, base: Path, binds: tuple[str, ...], *, size: str = "") -> None:
    """Mount and seed. /var/lib/containers is a plain folder, since podman's overlay cannot lie on an overlay."""
    (seat.folder / "root").mkdir(parents=True, exist_ok=True)
    own = _own_disk(seat.folder, size) if size else seat.folder
    for part in ("up", "work", "containers"):
        (own / part).mkdir(exist_ok=True)
        if size:
            (seat.folder / part).symlink_to(own / part)
    mount_overlay(base, seat.folder, seat.name)
    _seed_identity(seat)
    _seed_containers(seat, [bind.partition(":")[2] for bind in binds])
    _seed_standins(seat)
    put(seat.root / "etc/sysctl.d/50-fedora.conf", SYSCTL)


def _own_disk(folder: Path, size: str) -> Path:
    """A file system that can be filled; no block of it is reserved for root."""
    image, place = folder / "disk.img", folder / "disk"
    place.mkdir()
    run(["truncate", f"--size={size}", image])
    run(["mkfs.ext4", "-q", "-m0", image])
    run(["mount", "-o", "loop", image, place])
    return place


def mount_overlay(lower: Path, folder: Path, name: str) -> None:
    layers = f"lowerdir={lower},upperdir={folder / 'up'},workdir={folder / 'work'}"
    run(["mount", "-t", "overlay", f"lab-{name}", "-o", layers, folder / "root"])


def put(file: Path, text: str, mode: int = 0o644) -> None:
    """Write a file with its folders; the mode is right before the content is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.touch(mode)
    file.chmod(mode)
    file.write_text(text)


def _seed_identity(seat: Seat) -> None:
    root = seat.root
    put(root / "etc/hostname", f"{seat.name}\n")
    put(root / "etc/machine-id", uuid.uuid4().hex + "\n", 0o444)
    names = f"127.0.0.1 localhost\n127.0.1.1 {seat.name}\n{REGISTRY_ADDRESS} {REGISTRY_NAME}\n"
    put(root / "etc/hosts", names)
    profile = MANAGEMENT_PROFILE.format(interface=MANAGEMENT, address=seat.management_address, gateway=REGISTRY_ADDRESS)
    put(root / f"etc/NetworkManager/system-connections/{MANAGEMENT}.nmconnection", profile, 0o600)


def _seed_containers(seat: Seat, shown: list[str]) -> None:
    """What the machine's kernel makes necessary, a registry without TLS, and the lab's folders for every container."""
    put(seat.root / SHIM, (FILES / "crun-shim").read_text(), 0o755)
    volumes = ", ".join(f'"{place}:{place}:ro"' for place in shown)
    etc = seat.root / "etc/containers"
    put(etc / "containers.conf.d/lab.conf", CONTAINERS.format(volumes=volumes, shim=SHIM))
    put(etc / "registries.conf.d/lab.conf", REGISTRIES.format(name=REGISTRY_NAME, port=REGISTRY_PORT))
    for place in shown:
        (seat.root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)


def _seed_standins(seat: Seat) -> None:
    put(seat.root / "usr/local/libexec/lab-standins", (FILES / "standins.sh").read_text(), 0o755)
    shutil.copy(FILES / "lab-standins.service", seat.root / STANDINS)
    wanted = seat.root / "etc/systemd/system/sysinit.target.wants"
    wanted.mkdir(exist_ok=True)
    (wanted / "lab-standins.service").symlink_to("../lab-standins.service")
