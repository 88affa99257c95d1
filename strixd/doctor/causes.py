"""Which finding explains which others: a table, and how it marks a list of findings. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strixd.doctor.finding import Finding

_KERNEL = ("arguments", "effective", "module-parameters", "gpu")
_CARD = ("carrier", "speed", "flaps", "pcie")
_SERVED = ("ray", "members", "image-digest", "model", "firstboot")
_LINKED = (
    "rdma",
    "fabric",
    "lossless",
    "dscp",
    "rdma-mtu",
    "overlap",
    "address",
    "mtu",
    "crossing",
    "network",
    "ports",
    "clock",
)
_INSIDE = ("devices", "memlock", "shared-memory", "rccl", "ray", "members", "model")
_INSTALLED = ("labels", "boot-tool", "ssh-keys", "time-zone", "measured")
_ALONE = ("daemon", "nic-firmware", "card", "firewall", "image", "disk", "spare")
EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "settings": (*_ALONE, *_INSTALLED, *_KERNEL, *_CARD, *_LINKED, *_INSIDE, *_SERVED),
    "daemon": (
        "network",
        "fabric",
        "dscp",
        "firewall",
        "memory",
        "image",
        "image-digest",
        "members",
        "ray",
        "firstboot",
        "enabled",
    ),
    "selinux-module": ("selinux-denials", "devices"),
    "labels": ("selinux-denials",),
    "selinux-denials": ("devices",),
    "vram": ("memory",),
    "linux-firmware": ("mes",),
    "mes": ("model",),
    "kernel-version": ("gpu", "model"),
    "arguments": ("effective", "boot-tool"),
    "conflicts": ("effective",),
    "module-parameters": ("effective",),
    "leftovers": ("gpu", "effective", "rdma", "fabric"),
    "nic-firmware": ("rdma", "fabric"),
    "rdma": ("fabric", "ray", "model"),
    "fabric": ("ray", "model"),
    "gpu": ("devices", "members", "ray", "model"),
    "card": (*_CARD, *_LINKED, *_SERVED),
    "carrier": ("speed", *_LINKED, *_SERVED),
    "address": ("crossing", "network", "ports", "clock", "ray", "members"),
    "overlap": ("crossing", "network", "ports", "ray", "members"),
    "mtu": ("rdma-mtu", "crossing"),
    "crossing": ("network", "ray", "members"),
    "firewall": ("ports",),
    "ports": ("ray", "members"),
    "container": _INSIDE,
    "devices": ("ray", "members", "model"),
    "memlock": ("model",),
    "shared-memory": ("ray", "model"),
    "rccl": ("model",),
    "image": ("image-digest", "ray", "members"),
    "image-digest": ("ray", "model"),
    "ray": ("members", "model", "firstboot"),
    "members": ("image-digest", "model"),
}
"""By name: what may follow at once from a finding that is not ok."""


def marked(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """With causes and what follows from them, in however many steps. Faults come first, then warnings, each in the
    order of the layers; what is not known explains nothing, and a warning explains only warnings."""
    follows: dict[str, str] = {}
    for verdict in ("fault", "warning"):
        for one in findings:
            if one.verdict == verdict and one.name not in follows:
                follows |= {name: one.name for name in _after(one, findings) if name not in follows}
    causes = set(follows.values())
    return tuple(replace(each, cause=each.name in causes, follows=follows.get(each.name, "")) for each in findings)


def _after(cause: Finding, findings: tuple[Finding, ...]) -> set[str]:
    """What follows from it, by way of such as are wrong themselves: later findings, and what is not known anywhere."""
    graver = ("ok", "fault", "unknown") if cause.verdict == "warning" else ("ok",)
    after = [*findings[findings.index(cause) + 1 :], *(each for each in findings if each.verdict == "unknown")]
    later = {each.name: each for each in after if each.verdict not in graver}
    reached: set[str] = set()
    ahead = [cause.name]
    while ahead:
        more = {name for name in EXPLAINS.get(ahead.pop(), ()) if name in later} - reached
        reached |= more
        ahead += [name for name in more if later[name].verdict != "unknown"]
    return reached
