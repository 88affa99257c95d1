"""Debian root file systems: the one that every lab host is booted from, and the one that is the container image."""

from __future__ import annotations

import re
from pathlib import Path

from tests.lab.cache import cached
from tests.lab.shell import CommandFailed, run

HOST_SUITE = "trixie"
HOST_PACKAGES = (
    # init and its friends
    *("systemd", "systemd-sysv", "systemd-resolved", "libpam-systemd", "libnss-systemd", "udev", "kmod"),
    *("dbus", "dbus-daemon", "polkitd", "sudo"),
    # what strixd talks to
    *("network-manager", "firewalld", "nftables", "gir1.2-nm-1.0"),
    *("podman", "crun", "conmon", "netavark", "aardvark-dns", "containers-storage"),
    *("golang-github-containers-common", "uidmap", "catatonit"),
    # what strixd runs on, and the tests that run inside hosts
    *("python3", "python3-gi", "python3-pydbus", "python3-sdnotify", "python3-pyroute2", "python3-podman"),
    *("python3-pytest", "python3-hypothesis"),
    # the hardware's tools, and what a person at the console reaches for
    *("iproute2", "iputils-ping", "iputils-arping", "ethtool", "rdma-core", "ibverbs-utils", "pciutils"),
    *("procps", "psmisc", "less", "curl", "jq", "socat", "ca-certificates", "openssh-server"),
    # run outside of the hosts, on the management network
    "docker-registry",
)
# Debian enables these at installation; Fedora's presets do not.
NOT_IN_FEDORA = (
    *("netavark-dhcp-proxy.service", "netavark-dhcp-proxy.socket", "netavark-firewalld-reload.service"),
    *("systemd-networkd.service", "systemd-networkd.socket", "systemd-network-generator.service"),
    *("podman-auto-update.timer", "podman.socket", "podman.service", "podman-restart.service"),
    *("podman-clean-transient.service", "docker-registry.service", "apt-daily.timer", "apt-daily-upgrade.timer"),
)
IMAGE_SUITE = "bookworm"  # its python3.11 is the one that the CPU build of torch is made for
IMAGE_PACKAGES = ("python3.11", "python3", "python3-venv", "libnuma1", "libgomp1", "bash", "procps", "ca-certificates")

RPM_SUITE = "sid"  # the only one with rpm 6 and dnf5, which Fedora 43 has
RPM_PACKAGES = (
    *("rpm", "dnf5", "createrepo-c", "rpmlint", "cpio"),
    *("python3", "python3-packaging", "python3-pip", "python3-setuptools", "python3-wheel"),
    *("checkpolicy", "semodule-utils", "policycoreutils"),
    # what the packages' files are judged by, and what they bring to an empty root
    *("mandoc", "zsh", "fish", "busybox-static"),
)


def host_root() -> Path:
    """The read-only lower layer of every host's disk."""
    recipe = "\n".join(("host 2", HOST_SUITE, *HOST_PACKAGES, *NOT_IN_FEDORA))
    return cached("host", recipe, _build_host)


def image_root() -> Path:
    """The root of the container image: small, without the model environment, which is bound in."""
    return cached("image", "\n".join(("image 1", IMAGE_SUITE, *IMAGE_PACKAGES)), _build_image)


def rpm_root() -> Path:
    """A root with Fedora's package tools, in which packages are judged and installed into a root of their own."""
    return cached("rpm", "\n".join(("rpm 1", RPM_SUITE, *RPM_PACKAGES)), _build_rpm)


def _build_rpm(folder: Path) -> None:
    debootstrap(RPM_SUITE, RPM_PACKAGES, folder)


def _build_host(folder: Path) -> None:
    debootstrap(HOST_SUITE, HOST_PACKAGES, folder)
    units = folder / "etc/systemd/system"
    for link in [path for path in units.rglob("*") if path.is_symlink() and path.name in NOT_IN_FEDORA]:
        link.unlink()
    (folder / "var/log/journal").mkdir(exist_ok=True)
    (folder / "etc/machine-id").write_text("")
    _write(folder / "etc/systemd/journald.conf.d/lab.conf", "[Journal]\nStorage=persistent\nRateLimitIntervalSec=0\n")


def _build_image(folder: Path) -> None:
    debootstrap(IMAGE_SUITE, IMAGE_PACKAGES, folder)
    _write(folder / "etc/profile.d/01-model-environment.sh", 'export PATH="/opt/venv/bin:$PATH"\n')
    for mountpoint in ("opt/venv", "models"):
        (folder / mountpoint).mkdir(parents=True, exist_ok=True)


def debootstrap(suite: str, packages: tuple[str, ...], folder: Path) -> None:
    """mmdebstrap, from the mirror that this machine's own apt uses, else from mmdebstrap's default one."""
    options = [
        *("--variant=minbase", "--mode=root", "--skip=check/qemu", f"--include={','.join(packages)}"),
        # A mirror may be a snapshot, whose lists are older than apt likes.
        *('--aptopt=Acquire::Check-Valid-Until "false"', '--aptopt=Acquire::Check-Date "false"'),
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--dpkgopt=path-exclude=/usr/share/{bulk}/*" for bulk in ("doc", "man", "locale")),
    ]
    mirror = _mirror()
    source = [f"deb {mirror} {suite} main"] if mirror else []
    run(["mmdebstrap", *options, suite, folder, *source], timeout=1200)


def _mirror() -> str:
    """The address of Debian's main archive in this machine's apt configuration, or nothing."""
    try:
        listed = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"])
    except (CommandFailed, FileNotFoundError):
        return ""
    found = [line for line in listed.stdout.splitlines() if re.search(r"/debian/?$", line)]
    return found[0] if found else _mirror_before_update()


def _mirror_before_update() -> str:
    """Before the first `apt-get update` apt knows no origins: read its source files instead."""
    for file in sorted(Path("/etc/apt").glob("sources.list*")) + sorted(Path("/etc/apt/sources.list.d").glob("*")):
        if file.is_file() and (
            found := re.search(r"^(?:URIs:|deb\s)\s*(?:\[.*?\]\s*)?(\S+/debian/?)(?:\s|$)", file.read_text(), re.M)
        ):
            return found[1]
    return ""


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
