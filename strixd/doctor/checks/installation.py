"""What an installation leaves, and what only Fedora's own tools can say of it: asked for by --first-install."""

from __future__ import annotations

import time

from strixd import kernelargs
from strixd.desired import derive
from strixd.doctor.facts import (
    Altered,
    Authorized,
    BootTool,
    Denials,
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
from strixd.doctor.finding import Check, Judged
from strixd.orders import Orders

LEAST = 43
"""Fedora's, whose versions the packages ask for."""
MODULE = "strixd"
SHOWN = 5
"""Lines of a tool; more help nobody."""
_UTC = ("UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu")


def system(system: System) -> Judged:
    read = f"{system.name or 'a system without a name'} {system.version}".rstrip()
    if system.name == "fedora" and system.version.isdigit() and int(system.version) >= LEAST:
        return Judged("ok", read)
    return Judged("warning", read, "strixd is made for Fedora alone: what is told below may be otherwise here")


def selinux(policy: Policy) -> Judged:
    if policy.enforcing:
        return Judged("ok", "it enforces its policy")
    if policy.enforcing is None:
        mend = "SELINUX=enforcing in /etc/selinux/config, no selinux=0 on the kernel command line; systemctl reboot"
        return Judged("warning", "this kernel runs without SELinux", mend)
    return Judged(
        "warning", "it only notes what it would forbid", "setenforce 1; SELINUX=enforcing in /etc/selinux/config"
    )


def module(policy: Policy) -> Judged | None:
    if policy.enforcing is None:
        return None
    if MODULE in policy.modules:
        return Judged("ok", f"{MODULE} is one of {len(policy.modules)} modules of the policy")
    mend = "dnf reinstall strixd-selinux; semodule -l | grep strixd"
    return Judged("warning", f"no module {MODULE} among {len(policy.modules)} of the policy", mend)


def labels(policy: Policy, labels: Labels) -> Judged | None:
    if policy.enforcing is None:
        return None
    if not labels.wrong:
        return Judged("ok", "restorecon would change none of strixd's files")
    return Judged("fault", _some(labels.wrong), "restorecon -RFv /etc/strixd /var/lib/strixd /root/.ssh")


def denied(denials: Denials) -> Judged | None:
    if denials.enforcing is None:
        return None
    if not denials.lines:
        return Judged("ok", "nothing was denied to a container since this boot")
    mend = "ausearch -m avc -ts boot -i tells who wanted what; please send it, it is what nobody could try before"
    return Judged("warning", _some(denials.lines), mend)


def files(altered: Altered) -> Judged:
    if not altered.files:
        return Judged("ok", "rpm finds every file as it was packaged")
    if any("is not installed" in line for line in altered.files):
        return Judged("warning", _some(altered.files), "dnf install strixd python3-strixd strixd-selinux")
    return Judged("warning", _some(altered.files), "dnf reinstall strixd python3-strixd strixd-selinux")


def _some(lines: tuple[str, ...]) -> str:
    more = f"; and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return "; ".join(line.strip() for line in lines[:SHOWN]) + more


def enabled(enabled: Enabled) -> Judged:
    off = {unit: state for unit, state in enabled.states.items() if state != "enabled"}
    if not off:
        return Judged("ok", f"{' and '.join(enabled.states)} are enabled")
    read = "; ".join(f"{unit} is {state}" for unit, state in off.items())
    return Judged("fault", read, "systemctl enable --now strixd")


def boot_tool(boot_tool: BootTool, own: Own, orders: Orders) -> Judged:
    """The same that strixd reads in the files, by the tool that Fedora's own scripts use."""
    wanted = derive(own.config, own.node, orders).cmdline.add
    if not boot_tool.entries:
        return Judged("fault", "grubby knows of no kernel", "grubby --info=ALL; ls /boot/loader/entries")
    lacking = {kernel: _lacking(text, wanted) for kernel, text in boot_tool.entries.items()}
    read = "; ".join(f"{kernel} lacks {' '.join(each)}" for kernel, each in lacking.items() if each)
    if read:
        return Judged("warning", f"grubby says: {read}", "strixd-cli apply; grubby --info=ALL", " ".join(wanted))
    return Judged("ok", f"grubby tells them of {', '.join(boot_tool.entries)}", "", " ".join(wanted))


def _lacking(text: str, wanted: tuple[str, ...]) -> list[str]:
    """A list like pci=noaer,realloc may hold more than is wanted."""
    there = kernelargs.parts(text)[0]
    values = {kernelargs.key(each): set(kernelargs.value(each).split(",")) for each in there}
    return [
        each for each in wanted if not set(kernelargs.value(each).split(",")) <= values.get(kernelargs.key(each), set())
    ]


def firstboot(first_boot: FirstBoot) -> Judged:
    if first_boot.waiting is None:
        return Judged("ok", "no installation waits: this node was ready once, or was installed by hand")
    if first_boot.image:
        mend = "journalctl -u strixd-load -b; systemctl start strixd-load"
        return Judged("warning", "the image that came with the medium is not loaded yet", mend)
    words = first_boot.waiting or "it has not said anything yet"
    return Judged("warning", words, "strixd-cli status; systemctl status strixd-firstboot")


def secrets(leavings: Leavings) -> Judged:
    if not leavings.secret:
        return Judged("ok", f"no key or token in {leavings.read} files that the installer left")
    mend = f"rm {' '.join(leavings.secret)}; then strixd-cli key new --replace, and the new key to all nodes"
    return Judged("fault", f"a key or token is in {', '.join(leavings.secret)}", mend)


def zone(zone: Zone, own: Own) -> Judged | None:
    """Only where the file was made for an installation."""
    wanted = own.config.install.time_zone
    if not own.config.install.ssh_keys:
        return None
    if zone.name == wanted or {zone.name, wanted} <= set(_UTC):
        return Judged("ok", zone.name, "", wanted)
    return Judged("warning", zone.name, f"timedatectl set-timezone {wanted}", wanted)


def keys(authorized: Authorized, own: Own) -> Judged | None:
    """By kind and body: what stands behind them is a comment, and before them may be options."""
    wanted = [" ".join(key.split()[:2]) for key in own.config.install.ssh_keys]
    if not wanted:
        return None
    lacking = sum(not any(key in line for line in authorized.lines) for key in wanted)
    read = f"{len(wanted) - lacking} of the {len(wanted)} keys of the file may log in as root"
    if not lacking:
        return Judged("ok", read)
    return Judged("fault", read, "write the keys of [install] ssh-keys into /root/.ssh/authorized_keys (mode 0600)")


def measured(measured: Measured, own: Own) -> Judged | None:
    """From the head: it is one link."""
    if own.node.role != "head":
        return None
    if not measured.link:
        return Judged("warning", "the link has not been measured yet", "strixd-cli stop; strixd-cli bench link")
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(measured.at))
    return Judged("ok", f"measured {measured.link} times, last at {when} UTC")


CHECKS = (
    Check("system", "installation", system, f"Fedora {LEAST} or later", "the packages and the kickstart are for it"),
    Check(
        "package-files",
        "installation",
        files,
        "strixd's files as they were packaged",
        "what was changed by hand is lost, or in the way, at the next upgrade",
    ),
    Check("enabled", "installation", enabled, "strixd starts with the host", "after a power cut nobody is there"),
    Check(
        "selinux",
        "installation",
        selinux,
        "SELinux enforces its policy",
        "what works without it may fail with it",
        doubt="ok",
    ),
    Check(
        "selinux-module",
        "installation",
        module,
        f"the policy has the module {MODULE}",
        "without it no container with a label of its own may use RDMA",
    ),
    Check(
        "labels",
        "installation",
        labels,
        "SELinux labels as the policy lists them",
        "sshd, systemd and containers may not read what has another's label",
    ),
    Check(
        "selinux-denials",
        "installation",
        denied,
        "no container was denied anything",
        "a rank that is denied a device fails, or falls back in silence",
    ),
    Check(
        "boot-tool",
        "kernel",
        boot_tool,
        "grubby tells the arguments of [kernel] of every kernel",
        "a kernel that grubby sees without them will boot without them",
    ),
    Check("firstboot", "model", firstboot, "the node was ready once", "until then something is awaited"),
    Check(
        "secrets-left",
        "installation",
        secrets,
        "no secret in what the installer wrote down",
        "logs are copied and sent, and whoever has the key is on the cluster",
    ),
    Check("ssh-keys", "installation", keys, "the keys of [install] may log in", "there is no password"),
    Check("time-zone", "installation", zone, "the zone of [install]", "logs tell the time by it", doubt="ok"),
    Check(
        "measured",
        "installation",
        measured,
        "the link measured once, while all is new",
        "whether it has become worse later can only be told by that",
        doubt="ok",
    ),
)
