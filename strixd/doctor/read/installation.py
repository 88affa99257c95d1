"""What an installation has left, and what Fedora's own tools say of it."""

from __future__ import annotations

import re
from pathlib import Path

from strixd import firstboot
from strixd.bench import history, link
from strixd.doctor.facts import (
    Altered,
    Authorized,
    BootTool,
    Enabled,
    FirstBoot,
    Labels,
    Leavings,
    Measured,
    Own,
    Policy,
    System,
    Zone,
)
from strixd.doctor.gather import Scene
from strixd.doctor.read.programs import output, said
from strixd.errors import Unavailable
from strixd.host.bootfiles import is_rescue
from strixd.host.files import read_text
from strixd.leavings import SETTINGS, look, there

PACKAGES = ("strixd", "python3-strixd", "strixd-selinux")
UNITS = ("strixd.socket", "strixd.service")
STATE = "/var/lib/strixd"
LABELLED = (SETTINGS, STATE, "/usr/bin/strixd-cli", "/usr/lib/systemd/system/strixd.service", "/root/.ssh")
PASSED = (f"{STATE}/cache", f"{STATE}/tmp")
"""The containers' own, whose files have the labels of containers, and are many."""
KEYS = "/root/.ssh/authorized_keys"
_ZONES = "zoneinfo/"
_TOLD = re.compile(r'^(\w+)="?([^"\n]*)"?$', re.M)


def system(scene: Scene) -> System:
    told = dict(_TOLD.findall(scene.path("/etc/os-release").read_text()))
    return System(told.get("ID", ""), told.get("VERSION_ID", ""))


def policy(scene: Scene) -> Policy:
    """semodule reads what only root may."""
    enforce = read_text(str(scene.path("/sys/fs/selinux/enforce")))
    if enforce is None:
        return Policy(None)
    return Policy(enforce.strip() == "1", tuple(output("semodule", "-l").split()))


def labels(scene: Scene, own: Own, policy: Policy) -> Labels:
    """By the policy's own list. Labels that an administrator may choose freely are left out by restorecon itself."""
    if policy.enforcing is None:
        return Labels(())
    places = [each for each in dict.fromkeys((*LABELLED, own.config.model.folder)) if there(scene.path(each))]
    passed = [word for each in PASSED if there(scene.path(each)) for word in ("-e", each)]
    return Labels(tuple(output("restorecon", "-nRv", *passed, *places).splitlines()))


def altered() -> Altered:
    """rpm ends with a status for each difference, and complains only where it cannot look."""
    done = said("rpm", "-V", *PACKAGES)
    if done.words:
        raise Unavailable(f"rpm: {done.words}")
    return Altered(tuple(done.output.splitlines()))


def enabled() -> Enabled:
    """A line for each, in their order; the status only tells whether one of them is. Raises ValueError."""
    done = said("systemctl", "is-enabled", *UNITS)
    if done.words:
        raise Unavailable(f"systemctl: {done.words}")
    return Enabled(dict(zip(UNITS, done.output.split(), strict=True)))


def boot_tool() -> BootTool:
    """A block for each entry, of lines like args="…" (grubby(8))."""
    blocks = [dict(_TOLD.findall(block)) for block in re.split("^index=", output("grubby", "--info=ALL"), flags=re.M)]
    kernels = [block for block in blocks if "kernel" in block and not is_rescue(Path(block["kernel"]).name)]
    return BootTool({Path(block["kernel"]).name: block.get("args", "") for block in kernels})


def first_boot(scene: Scene) -> FirstBoot:
    called = scene.path(str(firstboot.CALLED))
    if not there(called):
        return FirstBoot(None)
    words = read_text(str(scene.path(str(firstboot.MOTD)))) or ""
    return FirstBoot(words.strip(), there(called / "image.tar"))


def leavings(scene: Scene) -> Leavings:
    """Raises PermissionError but for root."""
    found = look(scene.root)
    return Leavings(found.read, tuple(f"/{path.relative_to(scene.root)}" for path in found.secret))


def zone(scene: Scene) -> Zone:
    """localtime(5): a link into the zones; without it, UTC."""
    try:
        target = str(scene.path("/etc/localtime").readlink())
    except FileNotFoundError:
        return Zone("UTC")
    if _ZONES not in target:
        raise ValueError(f"/etc/localtime leads to {target}, which names no time zone")
    return Zone(target.partition(_ZONES)[2])


def authorized(scene: Scene) -> Authorized:
    path = scene.path(KEYS)
    lines = path.read_text(errors="replace").splitlines() if there(path) else []
    return Authorized(tuple(line for line in lines if not line.startswith("#")))


def measured(scene: Scene) -> Measured:
    runs = [run for run in history.load(str(scene.path(history.FILE))) if run.key == link.KEY]
    return Measured(len(runs), runs[-1].at) if runs else Measured(0)
