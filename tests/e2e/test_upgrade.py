"""Another version of the packages under a model that serves, there and back: whoever reads its tokens sees nothing."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from strixd import __version__
from tests.e2e.cluster import Cluster, pieces
from tests.lab.host import wait_for
from tests.lab.install import build_packages, other_version, upgrade
from tests.lab.shell import remove_tree

pytestmark = pytest.mark.lab

NEWER = "99.0.1"
SAID, ENOUGH = "/var/tmp/said", "/var/tmp/enough"
END = "data: [DONE]"
TOKENS = 100


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = build_packages(other_version(NEWER, tmp_path_factory.mktemp("newer") / "source"))
    yield made
    remove_tree(made)


@pytest.mark.parametrize(("which", "version"), [("newer", NEWER), ("packages", __version__)])
def test_no_stream_and_no_container_ends(
    serving: Cluster, request: pytest.FixtureRequest, which: str, version: str
) -> None:
    packages = request.getfixturevalue(which)
    serving.serve()
    before, daemons = model(serving), daemon_pids(serving)
    reading = one_after_another(serving)
    wait_for("a stream has ended", lambda: ended(serving) > 0, 60, pause=0.5)
    upgrade(serving.hosts, packages)
    wait_for("all run that version", lambda: versions(serving) == {version}, 60, pause=0.5)
    so_far = ended(serving)
    wait_for("a stream has begun and ended since", lambda: ended(serving) > so_far + 1, 60, pause=0.5)
    serving.head.run("touch", ENOUGH)
    assert reading.wait(60) == 0, "a completion was refused or cut off"
    *whole, rest = serving.head.read(SAID).split(END)
    assert rest.strip() == ""
    assert min(len(pieces(text + END)) for text in whole) > 1
    assert not set(daemons) & set(daemon_pids(serving)), "the daemons are new ones"
    assert model(serving) == before
    wait_for("ready", lambda: {serving.status(host)["phase"] for host in serving.hosts} == {"ready"}, 60, pause=1.0)
    assert "runs strixd" not in serving.cli("status").check().stdout  # how a member of another version is named


def one_after_another(cluster: Cluster) -> subprocess.Popen[str]:
    """Streams without a pause between them, until ENOUGH is there; ends at the first that is refused or cut off."""
    cluster.head.run("rm", "-f", SAID, ENOUGH)
    ask = shlex.join(cluster.stream(TOKENS))
    return cluster.head.stream("bash", "-c", f"until [ -e {ENOUGH} ]; do {ask} >>{SAID} || exit; done")


def ended(cluster: Cluster) -> int:
    said = cluster.head.path(SAID)
    return said.read_text().count(END) if said.exists() else 0


def model(cluster: Cluster) -> object:
    """Which containers run on each host, which process answers, and the last incident."""
    running = [host.sh("podman ps --no-trunc --format '{{.ID}} {{.Names}}' | sort") for host in cluster.hosts]
    return running, cluster.server_pid(), cluster.status()["incident"]


def daemon_pids(cluster: Cluster) -> list[tuple[str, str]]:
    return [(host.name, host.sh("systemctl show -P MainPID strixd").strip()) for host in cluster.hosts]


def versions(cluster: Cluster) -> set[str]:
    return {cluster.status(host)["version"] for host in cluster.hosts}
