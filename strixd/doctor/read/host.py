"""Room on the disks, what may send the host to sleep, and whether the model answers now."""

from __future__ import annotations

import configparser
from collections.abc import Iterator
from pathlib import Path

from strixd.desired import API_KEY, api_url
from strixd.doctor.facts import Completion, Own, Rooms, Sleeping
from strixd.doctor.gather import Scene
from strixd.host.files import read_text
from strixd.orders import Orders

STATE = "/var/lib/strixd"
IMAGES = "/var/lib/containers"
TARGETS = ("sleep.target", "suspend.target", "hibernate.target", "hybrid-sleep.target", "suspend-then-hibernate.target")
UNITS = ("/etc/systemd/system", "/run/systemd/system")
LOGIND = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd")


def rooms(scene: Scene, own: Own) -> Rooms:
    """Of the folders that are there. One that is missing is made on the file system of the nearest that is not."""
    folders = (STATE, own.config.model.folder, IMAGES)
    return Rooms({folder: scene.around.free(_nearest(scene.path(folder))) for folder in dict.fromkeys(folders)})


def _nearest(path: Path) -> Path:
    return path if path.exists() else _nearest(path.parent)


def completion(scene: Scene, own: Own, orders: Orders) -> Completion | None:
    """One token, asked for now. None on a worker."""
    if own.node.role != "head":
        return None
    if not orders.served:
        return Completion("")
    key = (read_text(str(scene.path(API_KEY))) or "").strip()
    return Completion(orders.served, scene.around.complete(api_url(own.config), orders.served, key))


def sleeping(scene: Scene) -> Sleeping:
    """systemd.special(7), logind.conf(5). sleep.target masked closes every way to sleep."""
    told = _logind(scene)
    masked = {target for target in TARGETS if any(_is_null(scene.path(f"{unit}/{target}")) for unit in UNITS)}
    return Sleeping(
        open=() if "sleep.target" in masked else tuple(target for target in TARGETS if target not in masked),
        idle=told.get("idleaction", "ignore"),
        lid=told.get("handlelidswitch", "suspend"),
        has_lid=any(scene.path("/proc/acpi/button/lid").glob("*")),
        desktop=_desktop(scene),
    )


def _desktop(scene: Scene) -> bool:
    """A display manager is installed, and not passed by."""
    folders = (*UNITS, "/usr/lib/systemd/system")
    default = next((path for unit in folders if (path := scene.path(f"{unit}/default.target")).is_symlink()), None)
    manager = any(scene.path(f"{unit}/display-manager.service").is_symlink() for unit in folders)
    return manager and default is not None and default.readlink().name == "graphical.target"


def _is_null(path: Path) -> bool:
    """A unit is masked by a link to /dev/null or an empty file (systemd.unit(5))."""
    return str(path.readlink()) == "/dev/null" if path.is_symlink() else path.is_file() and not path.stat().st_size


def _logind(scene: Scene) -> dict[str, str]:
    """Section [Login] of logind.conf and its drop-ins, by lower-case key; later files win."""
    told: dict[str, str] = {}
    for path in _logind_files(scene):
        parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
        parser.read_string(path.read_text(errors="replace"))
        if parser.has_section("Login"):
            told |= {key: value or "" for key, value in parser.items("Login")}
    return told


def _logind_files(scene: Scene) -> Iterator[Path]:
    """The first logind.conf, then the drop-ins by name, of which an earlier folder hides the later ones' namesakes."""
    mains = (scene.path(f"{folder}/logind.conf") for folder in LOGIND)
    yield from [path for path in mains if path.is_file()][:1]
    named: dict[str, Path] = {}
    for folder in LOGIND:
        for path in scene.path(f"{folder}/logind.conf.d").glob("*.conf"):
            named.setdefault(path.name, path)
    yield from (named[name] for name in sorted(named))
