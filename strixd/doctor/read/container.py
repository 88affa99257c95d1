"""The Ray container as it is from inside, and what the ranks have loaded."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from pathlib import Path

from strixd.doctor.facts import Denials, Digest, Graphics, Inside, Libraries, Library, Own
from strixd.doctor.gather import Scene
from strixd.doctor.read.programs import journal, output
from strixd.errors import Unavailable
from strixd.evidence.processes import SLICE, pids
from strixd.host.files import read_text
from strixd.probe.vitals import is_rank
from strixd.resources import image, ray

LOOK = """
echo memlock $(ulimit -l)
echo shm $(df -B1 --output=size,avail /dev/shm | tail -1)
for device; do
    for one in $(if [ -d "$device" ]; then find "$device" -type c; else echo "$device"; fi); do
        if [ -c "$one" ]; then words=$( { : <> "$one"; } 2>&1 ); else words="it is not in the container"; fi
        echo "device $one ${words##*: }"
    done
done
"""
"""In bash, since an image may have no other Python than that of its profile. Opening for reading and writing is what
ROCm and libibverbs do; the device is closed at once. What is no device is not opened: that would make a file there."""
_COLLECTIVE = re.compile(r"/\S*/lib(?:rccl|nccl)\.so[\w.]*$")
_TRANSPORT = b"NET/IB"
"""The name under which NCCL and RCCL log their RDMA transport (src/transport/net_ib.cc)."""
_COMPRESSED = b"CCOB"
"""With which clang begins a compressed bundle of GPU code (--offload-compress)."""


def unit() -> str:
    """ActiveState of the Ray container's unit."""
    return output("systemctl", "show", "-P", "ActiveState", f"{ray.NAME}.service").strip()


def inside(scene: Scene, own: Own, unit: str) -> Inside:
    """Raises Unavailable when the container does not run, or podman cannot look into it."""
    if unit != "active":
        raise Unavailable(f"{ray.NAME}.service is {unit}: the container cannot be looked into")
    there = [device for device in own.config.image.devices if scene.path(device).exists()]
    return read_look(output("podman", "exec", ray.NAME, "bash", "-c", LOOK, "bash", *there))


def read_look(text: str) -> Inside:
    """Raises ValueError."""
    told = [line.split(" ", 2) for line in text.splitlines()]
    values = {words[0]: words[1:] for words in told if words[0] != "device"}
    devices = {words[1]: words[2] if len(words) > 2 else "" for words in told if words[0] == "device"}
    try:
        memlock, (size, free) = values["memlock"][0], values["shm"]
        return Inside(None if memlock == "unlimited" else int(memlock), devices, int(size), int(free))
    except (KeyError, IndexError, ValueError):
        raise ValueError(f"what the container says cannot be read: {text[:200]!r}") from None


def denials(scene: Scene) -> Denials:
    """The audit records of this boot that tell of a denial to a container."""
    enforce = read_text(str(scene.path("/sys/fs/selinux/enforce")))
    if enforce is None:
        return Denials(None)
    lines = [line for line in journal("avc: +denied", "_TRANSPORT=audit") if "container" in line]
    return Denials(enforce.strip() == "1", tuple(lines[-20:]))


def libraries(scene: Scene, graphics: Graphics) -> Libraries:
    """Of the living ranks. A file that several have loaded is read once."""
    ranks = [pid for pid in pids(SLICE, scene.path("/sys/fs/cgroup")) if is_rank(_title(scene.path(f"/proc/{pid}")))]
    files = {file: pid for pid in ranks for file in _collectives(scene.path(f"/proc/{pid}/maps"))}
    roots = {file: scene.path(f"/proc/{pid}/root") / file.lstrip("/") for file, pid in files.items()}
    return Libraries(len(ranks), tuple(_library(name, path, graphics.targets) for name, path in sorted(roots.items())))


def digest(scene: Scene) -> Digest:
    return Digest(image.report(read_text(str(scene.path(image.REPORT)))).digest)


def _title(process: Path) -> str:
    return (read_text(str(process / "cmdline")) or "").replace("\0", " ")


def _collectives(maps: Path) -> Iterator[str]:
    """A process may end meanwhile."""
    for line in (read_text(str(maps)) or "").splitlines():
        if found := _COLLECTIVE.search(line):
            yield found.group()


def _library(name: str, path: Path, targets: tuple[str, ...]) -> Library:
    """Its device code is made for targets by name; a hundred megabytes are searched in a tenth of a second."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        known = tuple(target for target in targets if content.find(target.encode()) >= 0)
        return Library(name, known, content.find(_TRANSPORT) >= 0, content.find(_COMPRESSED) >= 0)
