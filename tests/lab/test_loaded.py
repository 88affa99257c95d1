"""An image that came with the medium: loaded at the first boot, before strixd looks for it, and without a registry.

The image is a small one that nothing could run in; it has the name of the real one, which is what strixd asks for.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from strixd.firstboot import MOTD
from strixd.media.archive import image
from tests.lab import registry
from tests.lab.cluster import cluster_toml
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.install import install
from tests.lab.judge import GOING_DOWN, Judge
from tests.lab.test_installed import after_the_packages
from tests.media.lab import KEY as SSH_KEY
from tests.media.lab import rendered

pytestmark = pytest.mark.lab

NAME = "strixd/image/image.tar"
BROUGHT, SAVED = "/var/lib/strixd/install/image.tar", "/root/image.tar"
MAKE = f"""
mkdir /root/small
echo small >/root/small/file
tar -C /root/small -c . | podman import --quiet - {registry.REFERENCE}
podman save --quiet --format oci-archive -o {SAVED} {registry.REFERENCE}
podman rmi --force {registry.REFERENCE}
rm -r /root/small
"""
# Long enough to be seen at it.
SLOW = "[Service]\nExecStartPre=/usr/bin/sleep 10\n"
SAYS = "image that came with the medium is being loaded"


@pytest.fixture(scope="module")
def pair_of_sticks(bare_pair: Pair, packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The first node's medium holds an image, the second's what podman cannot load. No medium holds a key, so that no
    container is started, and there is no registry."""
    install(bare_pair, packages)
    bare_pair[0].sh(MAKE)
    text = cluster_toml(bare_pair, {"install": {"ssh-keys": [SSH_KEY]}})
    folder = tmp_path_factory.mktemp("archives")
    shutil.copy(bare_pair[0].path(SAVED), folder / "good.tar")
    image(folder / "good.tar", registry.REFERENCE)  # what podman saves is what strixd-media takes
    (folder / "bad.tar").write_text("no archive")
    registry.stop()
    for host, archive in zip(bare_pair, ("good.tar", "bad.tar"), strict=True):
        host.off()
        held = tmp_path_factory.mktemp(host.name)
        after_the_packages(host, rendered(text, host.name), medium(held, folder / archive))
        host.write("/etc/systemd/system/strixd-load.service.d/slow.conf", SLOW)
    for host in bare_pair:
        host.start()
    for host in bare_pair:
        host.wait_booted()
    yield bare_pair
    registry.start()


def medium(folder: Path, archive: Path) -> Path:
    """As an installer sees it: the archive, and its hash."""
    (folder / NAME).parent.mkdir(parents=True)
    shutil.copy(archive, folder / NAME)
    (folder / "strixd/SHA256SUMS").write_text(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {NAME}\n")
    return folder


@pytest.fixture(autouse=True)
def nothing_to_run(judge: Judge) -> None:
    judge.expect(r"strixd: .*cluster\.key", *GOING_DOWN)


def test_it_is_loaded_without_a_registry_and_that_is_said(pair_of_sticks: Pair) -> None:
    host = pair_of_sticks[0]
    assert ended(host) == ["success", "yes"]
    assert host.attempt("podman", "image", "exists", registry.REFERENCE).ok
    assert not host.path(BROUGHT).exists()
    wait_for("strixd has found it", lambda: condition(host, "image") == "ok", 120, pause=1.0)
    lines = host.sh("journalctl -b -u strixd-firstboot -o cat --no-pager").splitlines()
    assert SAYS in next(line for line in lines if line.startswith("strixd: "))
    assert SAYS in host.console()
    wait_for("something else is said", lambda: SAYS not in host.read(str(MOTD)), 30, pause=1.0)


def test_one_that_cannot_be_loaded_holds_nothing_up(pair_of_sticks: Pair, judge: Judge) -> None:
    """strixd starts and would pull; the archive stays, for another try."""
    judge.expect("systemd: .*(strixd-load|strixd-image)", "podman: .*", "strixd-image: .*", "strixd: .*image.*")
    host = pair_of_sticks[1]
    assert ended(host) == ["exit-code", "yes"]
    assert host.path(BROUGHT).exists()
    wait_for("strixd has tried to pull it", lambda: condition(host, "image") == "held", 240, pause=1.0)
    wait_for("something else is said", lambda: SAYS not in host.read(str(MOTD)), 30, pause=1.0)


def ended(host: Host) -> list[str]:
    """Of strixd-load: how, and whether its time had come."""
    return [host.sh(f"systemctl show -P {what} strixd-load").strip() for what in ("Result", "ConditionResult")]


def condition(host: Host, name: str) -> str:
    """What strixd says of a part; nothing while it does not answer."""
    told = host.attempt("strixd-cli", "status", "--json")
    resources = json.loads(told.stdout)["resources"] if told.ok else []
    return next((str(each["condition"]) for each in resources if each["name"] == name), "")
