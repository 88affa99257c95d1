"""What a report has in it, a function for each file; and what this host is called, so that it can be taken out."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping

from strixd import __version__, config
from strixd.cli import client
from strixd.doctor.examine import Examination
from strixd.doctor.gather import Scene
from strixd.doctor.read.programs import said
from strixd.doctor.screen import as_json, screen
from strixd.errors import ConfigError, StrixdError
from strixd.evidence import sources
from strixd.evidence.bundle import Source
from strixd.host.files import read_text
from strixd.resources import ray, vllm

ASK = 4.0
INCIDENTS = 50
PROGRAMS = (
    ("podman", "--version"),
    ("systemctl", "--version"),
    ("NetworkManager", "--version"),
    ("firewall-cmd", "--version"),
    ("rpm", "-q", "kernel", "linux-firmware", "amd-gpu-firmware", "podman", "NetworkManager", "firewalld", "strixd"),
)
DMI = ("product_serial", "board_serial", "chassis_serial", "product_uuid", "board_asset_tag", "chassis_asset_tag")
_ORDINARY = re.compile(r"(?i)localhost.*|ip6-.*|broadcasthost|none|default string|to be filled.*|not spec.*|unknown|0+")
"""What /etc/hosts and DMI say where nobody has told them anything."""


def contents(scene: Scene, socket: str, examination: Examination) -> tuple[Source, ...]:
    sys, proc = scene.path("/sys"), scene.path("/proc")
    return (
        Source("doctor.txt", lambda: screen(examination, width=100)),
        Source("doctor.json", lambda: [json.dumps(as_json(examination))]),
        Source("status.json", lambda: _asked(socket, "Status")),
        Source("incidents.json", lambda: _asked(socket, "Incidents", {"count": INCIDENTS})),
        Source("settings.txt", lambda: settings(scene)),
        Source("versions.txt", lambda: versions(scene)),
        Source("journal-strixd.txt", lambda: sources.journal("-u", "strixd.service")),
        Source("journal-ray.txt", lambda: sources.journal("-u", f"{ray.NAME}.service")),
        Source("journal-vllm.txt", lambda: sources.journal("-u", f"{vllm.NAME}.service")),
        Source("journal-kernel.txt", lambda: sources.journal("-k", "-b")),
        Source("links.json", lambda: [said("ip", "-s", "-s", "-d", "-j", "address").output]),
        Source("link-counters.txt", lambda: sources.counters(sys)),
        Source("rdma.txt", lambda: sources.rdma(sys)),
        Source("memory.txt", lambda: sources.memory(sys, proc)),
    )


def _asked(socket: str, method: str, parameters: dict[str, object] | None = None) -> Iterator[str]:
    yield json.dumps(client.call(socket, method, parameters, patience=ASK))


def settings(scene: Scene) -> Iterator[str]:
    """The effective ones; of a file that cannot be used what is wrong with it."""
    try:
        file = config.read(scene.path(config.EXPECTED_AT), config.EXPECTED_AT)
        yield from config.render(config.settings(file)).splitlines()
    except ConfigError as error:
        yield from error.complaints


def versions(scene: Scene) -> Iterator[str]:
    yield f"strixd {__version__}, Python {platform.python_version()}"
    yield (read_text(str(scene.path("/proc/sys/kernel/osrelease"))) or "").strip()
    yield from (read_text(str(scene.path("/etc/os-release"))) or "").splitlines()[:3]
    for program in PROGRAMS:
        try:
            yield from said(*program).output.splitlines()
        except StrixdError as error:
            yield str(error)


def names(scene: Scene) -> Mapping[str, tuple[str, ...]]:
    """What tells this host and its peers from others, by kind."""
    return {
        "host": tuple(_plain(_hosts(scene))),
        "serial": tuple(_plain(_serials(scene))),
        "mac": tuple(each.replace(":", "").lower() for each in _files(scene, "/sys/class/net", "*/address")),
    }


def _plain(found: Iterator[str]) -> Iterator[str]:
    return (name for name in found if name and not _ORDINARY.fullmatch(name))


def _hosts(scene: Scene) -> Iterator[str]:
    """The host's own name and domain, whoever is in /etc/hosts, and the nodes of the cluster."""
    for path in ("/proc/sys/kernel/hostname", "/etc/hostname"):
        name = (read_text(str(scene.path(path))) or "").strip()
        yield from (name, name.partition(".")[0], name.partition(".")[2])
    for line in (read_text(str(scene.path("/etc/hosts"))) or "").splitlines():
        yield from line.partition("#")[0].split()[1:]
    text = read_text(str(scene.path(config.EXPECTED_AT))) or ""
    yield from re.findall(r'^\s*name\s*=\s*"([^"]+)"', text.partition("[[node]]")[2], re.M)


def _serials(scene: Scene) -> Iterator[str]:
    yield from (text for name in DMI for text in _files(scene, "/sys/class/dmi/id", name))
    yield from _files(scene, "/sys/class/nvme", "*/serial")
    yield from _files(scene, "/sys/block", "*/device/serial")
    yield from _files(scene, "/etc", "machine-id")


def _files(scene: Scene, folder: str, pattern: str) -> list[str]:
    return [path.read_text(errors="replace").strip() for path in sorted(scene.path(folder).glob(pattern))]
