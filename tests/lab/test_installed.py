"""A root that was made by the packages and the kickstart's %post, as Anaconda runs them: it boots, and is a node.

What Anaconda itself does (disk, Fedora's packages, kernel arguments, SSH keys) is not here.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from pathlib import Path

import pytest

from strixd.firstboot import CALLED, MOTD
from tests.e2e.cluster import Cluster
from tests.lab.cluster import FILE, KEY, cluster_toml
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.install import install
from tests.lab.judge import GOING_DOWN, Judge
from tests.lab.lab import Lab
from tests.lab.shell import run
from tests.media.lab import KEY as SSH_KEY
from tests.media.lab import rendered, run_script, script
from tests.media.pieces import medium

pytestmark = pytest.mark.lab

SECRET = secrets.token_hex(32)
LOG = "var/log/anaconda/journal.log"
WITH_KEY = {"strixd/key/cluster.key": f"{SECRET}\n"}
OURS = ("strixd.service", "strixd-ray.service")


@pytest.fixture(scope="module")
def installed(bare_pair: Pair, packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """The first node's medium holds the key, the second's does not. Nobody has logged in yet."""
    install(bare_pair, packages)
    for host, files in zip(bare_pair, (WITH_KEY, {}), strict=True):
        host.off()
        after_the_packages(host, for_node(bare_pair, host), medium(tmp_path_factory.mktemp(host.name), files))
    for host in bare_pair:
        host.start()
    for host in bare_pair:
        host.wait_booted()
    return Cluster(bare_pair)


def for_node(hosts: Sequence[Host], host: Host) -> str:
    return rendered(cluster_toml(hosts, {"install": {"ssh-keys": [SSH_KEY]}}), host.name)


def after_the_packages(host: Host, kickstart: str, held: Path) -> None:
    """Both %post: the one from outside, and the one in the new system. `held`: what the medium holds."""
    seen = held.with_name(f"{held.name}-installer")
    (seen / "run/install").mkdir(parents=True)
    (seen / "run/install/repo").symlink_to(held)
    brought = run_script(script(kickstart, "%post --nochroot"), seen, host.seat.root)
    assert brought.returncode == 0, brought.stderr
    run(["chroot", host.seat.root, "bash", "-c", script(kickstart, "%post --interpreter")])
    log = host.seat.root / LOG  # Anaconda's last act
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"# {SECRET}\n")


@pytest.fixture(autouse=True)
def waits_for_its_key(judge: Judge) -> None:
    judge.expect(r"strixd: .*cluster\.key", *GOING_DOWN)


def test_it_is_left_as_a_node(installed: Cluster) -> None:
    for host in installed.hosts:
        assert (
            host.sh("systemctl is-active strixd.socket strixd.service strixd-firstboot.service").split()
            == ["active"] * 3
        )
        assert f'name = "{host.name}"' in host.read(FILE)
    head, worker = installed.hosts
    assert head.sh(f"stat -c '%a %U' {KEY}").strip() == "600 root"
    assert not head.path(LOG).exists(), "what the installer wrote down with the key in it"
    assert (worker.path(LOG).exists(), worker.path(KEY).exists()) == (True, False)


def test_without_the_key_it_waits_and_says_so(installed: Cluster) -> None:
    worker = installed.workers[0]
    wait_for("it is blocked", lambda: "cluster.key" in why(installed, worker), 120, pause=1.0)
    wait_for("it says so", lambda: f"strixd: {worker.name} is installed" in worker.read(str(MOTD)), 30, pause=1.0)


def test_with_the_key_it_is_ready_and_never_says_so_again(installed: Cluster) -> None:
    worker = installed.workers[0]
    worker.run("strixd-cli", "key", "import", stdin=f"{SECRET}\n")
    for host in installed.hosts:
        wait_for("it was ready once", lambda host=host: not host.path(str(CALLED)).exists(), 300, pause=1.0)  # type: ignore[misc]
        assert "is installed and ready" in host.sh("journalctl -b -u strixd-firstboot -o cat --no-pager")
        assert not host.path(str(MOTD)).exists()
    worker.reboot()
    wait_for("it is ready again", lambda: installed.status(worker)["phase"] == "ready", 300, pause=1.0)
    skipped = worker.sh("systemctl show -P ConditionResult strixd-firstboot strixd-load")
    assert skipped.split() == ["no", "no"]


def test_installed_again_while_the_other_runs_it_comes_back_as_itself(
    lab: Lab, installed: Cluster, packages: Path, tmp_path: Path
) -> None:
    head, worker = installed.hosts
    before, machine = runs(head), worker.read("/etc/machine-id")
    lab.wipe(worker)
    worker.boot()
    install([worker], packages)
    worker.off()
    after_the_packages(worker, for_node(installed.hosts, worker), medium(tmp_path / "stick", WITH_KEY))
    worker.boot()
    wait_for("it is ready", lambda: not worker.path(str(CALLED)).exists(), 300, pause=1.0)
    wait_for("the head says so, too", lambda: installed.status()["phase"] == "ready", 120, pause=1.0)
    members = installed.status()["members"]
    assert [each["name"] for each in members] == [host.name for host in installed.hosts]
    assert (worker.read("/etc/machine-id") != machine, runs(head)) == (True, before)


def runs(host: Host) -> list[str]:
    """Another when one of ours was started anew, or the host."""
    return [host.boot_id(), *host.sh(f"systemctl show -P InvocationID {' '.join(OURS)}").split()]


def why(cluster: Cluster, host: Host) -> str:
    """Why Ray is not ok there; nothing while strixd does not answer."""
    told = cluster.cli("status", "--json", host=host)
    resources = json.loads(told.stdout)["resources"] if told.ok else []
    return " ".join(each["why"] for each in resources if each["name"] == "ray")
