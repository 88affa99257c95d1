"""The packages in a root with nothing else: installed, upgraded, downgraded and erased by dnf 5 and rpm 6.

The root is Fedora's by names only (files/fedora.spec); its systemctl and the like note what they are asked. The tests
are one story, in their order.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strixd import __version__
from tests.lab.layout import PROJECT
from tests.media.lab import cluster, media
from tests.media.pieces import run
from tests.rpm.conftest import BEFORE
from tests.rpm.stage import Stage

pytestmark = pytest.mark.lab

ROOT = "/mnt/root"
DNF = (
    f"dnf5 --assumeyes --installroot={ROOT} --releasever=43 --use-host-config --repofrompath=new,file:///mnt/repo "
    "--repo=new --setopt=gpgcheck=0 --setopt=plugins=0 --setopt=cachedir=/var/cache/dnf"
)
STUBS = r"""
rpmbuild -bb --quiet --define '_topdir /tmp/stubs' --define '_rpmdir /mnt/repo' --define '__os_install_post %nil' \
    /mnt/stubs/fedora.spec
createrepo_c --quiet /mnt/repo
"""
MEDIUM = "--repofrompath=medium,file:///mnt/medium --repo=medium --setopt='new.excludepkgs=*strixd*'"
UNITS = "strixd.socket strixd.service strixd-firstboot.service strixd-load.service"
ERASE = re.findall(r"^dnf (remove .*)$", (PROJECT / "packaging/strixd.8").read_text(), re.M)
SETTINGS, HISTORY = "etc/strixd/cluster.toml", "var/lib/strixd/history.json"


class Host:
    """The root, from outside."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.root = stage.shared / "root"

    def dnf(self, *words: str) -> str:
        """What was done, and what systemd and SELinux were asked meanwhile, a line each."""
        (self.root / "var/asked").unlink(missing_ok=True)
        done = self.stage.attempt("bash", "-c", f"{DNF} {' '.join(words)}").check()
        return done.stdout + done.stderr

    @property
    def asked(self) -> list[str]:
        noted = self.root / "var/asked"
        return [line.strip() for line in noted.read_text().splitlines()] if noted.exists() else []

    def installed(self) -> set[str]:
        return set(self.stage.run("rpm", f"--root={ROOT}", "-qa", "--qf", "%{name}-%{version}\\n").split())

    def groups(self) -> list[str]:
        return [line.split(":")[0] for line in (self.root / "etc/group").read_text().splitlines()]

    def ours(self) -> list[str]:
        """All that has our name."""
        found = (str(path.relative_to(self.root)) for path in self.root.rglob("*") if "strixd" in str(path.name))
        return sorted(path for path in found if not path.startswith("usr/lib/sysimage"))


@pytest.fixture(scope="module")
def host(fedora: Stage, packages: Path, earlier: Path) -> Host:
    fedora.put("repo", [*packages.glob("*.noarch.rpm"), *earlier.glob("*.noarch.rpm")])
    fedora.put("stubs", [Path(__file__).parent / "files/fedora.spec"])
    fedora.sh(STUBS)
    return Host(fedora)


def test_it_is_installed_and_nothing_is_started(host: Host) -> None:
    host.dnf("install", f"strixd-{BEFORE}", "fedora-policy")
    assert {f"{name}-{BEFORE}" for name in ("strixd", "python3-strixd", "strixd-selinux")} <= host.installed()
    assert host.asked == [
        f"systemd-update-helper install-system-units {UNITS}",
        "semodule -n -s targeted -X 200 -i /usr/share/selinux/packages/targeted/strixd.pp.bz2",
        "selinuxenabled",
        "load_policy",
    ]
    preset = (host.root / "usr/lib/systemd/system-preset/85-strixd.preset").read_text()
    assert {f"disable {unit}" for unit in UNITS.split()} <= set(preset.splitlines())
    assert "fedora-weak-43" in host.installed()


def test_groups_and_folders_are_there_as_the_package_says(host: Host) -> None:
    assert {"strixd", "strixd-observe"} <= set(host.groups())
    modes = {
        name: (host.root / "var/lib/strixd" / name).stat().st_mode & 0o777 for name in ("tmp", "evidence", "models")
    }
    assert modes == {"tmp": 0o700, "evidence": 0o700, "models": 0o755}
    assert host.stage.sh(f"rpm --root={ROOT} --verify strixd python3-strixd strixd-selinux") == ""


def test_what_is_installed_runs(host: Host) -> None:
    """With the Python of Fedora 43, which is the stage's."""
    site = f"{ROOT}/usr/lib/python3.14/site-packages"
    said = host.stage.sh(f"PYTHONPATH={site} PYTHONDONTWRITEBYTECODE=1 python3 -P -m strixd.cli help logs")
    assert said.startswith("strixd-cli logs [UNIT]")
    example = f"{ROOT}/usr/share/doc/strixd/cluster.toml"
    checked = host.stage.sh(
        f"PYTHONPATH={site} PYTHONDONTWRITEBYTECODE=1 python3 -P {ROOT}/usr/bin/strixd-cli config check {example}"
    )
    assert "is good" in checked


@pytest.mark.parametrize(("verb", "version"), [("upgrade", __version__), ("downgrade", BEFORE)])
def test_another_version_restarts_the_daemon_and_nothing_else(host: Host, verb: str, version: str) -> None:
    for name in (SETTINGS, HISTORY):
        (host.root / name).write_text(name)
    host.dnf(verb, "strixd", "strixd-selinux")
    assert {f"{name}-{version}" for name in ("strixd", "python3-strixd", "strixd-selinux")} <= host.installed()
    assert [line for line in host.asked if line.startswith("system")] == [
        "systemd-update-helper mark-restart-system-units strixd.service"
    ]
    assert all((host.root / name).read_text() == name for name in (SETTINGS, HISTORY))


def test_erased_it_leaves_what_was_written_and_says_how_to_go_on(host: Host) -> None:
    run, quadlets = host.root / "run/strixd", host.root / "run/containers/systemd"
    for folder in (run, quadlets, host.root / "dev"):
        folder.mkdir(parents=True, exist_ok=True)
    (run / "io.strixd").touch()
    (quadlets / "strixd-ray.container").touch()
    said = host.dnf("remove", "strixd")
    assert host.asked == [
        f"systemd-update-helper remove-system-units {UNITS}",
        "systemctl stop strixd-vllm.service strixd-ray.service strixd-image.service",
        "semodule -n -s targeted -X 200 -r strixd",
        "selinuxenabled",
        "load_policy",
    ]
    assert "strixd-cli undo --all" in said
    assert host.ours() == ["etc/strixd", "var/lib/strixd"]
    left = [str(path.relative_to(host.root)) for path in (host.root / "var/lib/strixd").rglob("*")]
    assert (left, (host.root / SETTINGS).exists()) == ([HISTORY], True)


def test_where_nothing_was_written_nothing_remains(host: Host) -> None:
    for name in (SETTINGS, HISTORY):
        (host.root / name).unlink()
    (host.root / "etc/group").write_text("root:x:0:\n")
    host.dnf("install", "strixd")
    assert f"strixd-{__version__}" in host.installed()
    assert {"strixd", "strixd-observe"} <= set(host.groups())  # by this build's rpm, too, which may be older
    host.dnf("remove", "strixd")
    assert host.ours() == []


def test_by_the_manuals_line_it_goes_however_it_was_installed(host: Host, packages: Path) -> None:
    """File by file, as README has it, each package is wanted for itself: dnf keeps those that nobody names."""
    place = host.stage.put("files", packages.glob("*.noarch.rpm"))
    host.dnf("install", *(f"{place}/{name}-[0-9]*.rpm" for name in ("strixd", "python3-strixd", "strixd-selinux")))
    host.dnf(*ERASE)
    assert "semodule -n -s targeted -X 200 -r strixd" in host.asked
    assert host.ours() == []


def test_from_a_medium_it_is_the_same(host: Host, packages: Path, tmp_path: Path) -> None:
    """The folder that the kickstart's repo line names, of a medium as strixd-media builds it."""
    file, volume = tmp_path / "cluster.toml", tmp_path / "halo.iso"
    file.write_text(cluster())
    done = media("build", "--cluster", file, "--rpms", packages, "--out", volume)
    assert done.returncode == 0, done.stderr
    run("xorriso", "-osirrox", "on", "-indev", volume, "-extract", "/strixd/repo", host.stage.shared / "medium")
    host.dnf(MEDIUM, "install", "strixd", "strixd-selinux")
    listed = host.stage.sh(
        f"{DNF} repoquery --installed --queryformat='%{{name}}-%{{version}} %{{from_repo}}\n' '*strixd*'"
    )
    assert sorted(listed.split("\n")[:-1]) == [
        f"{name}-{__version__} medium" for name in ("python3-strixd", "strixd", "strixd-selinux")
    ]
    assert host.stage.sh(f"rpm --root={ROOT} --verify strixd python3-strixd strixd-selinux") == ""
