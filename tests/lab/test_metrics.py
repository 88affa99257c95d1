"""The metrics of the real daemon in its sandbox: who reads them, by both ways, and what the kernel counts."""

from __future__ import annotations

import pytest

from tests.exposition import parsed
from tests.lab.cluster import lay_cluster
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.judge import Judge
from tests.lab.layout import FABRIC

pytestmark = pytest.mark.lab

ADDRESS = "127.0.0.1:9101"
BY_TCP = ("curl", "-sf", f"http://{ADDRESS}/metrics")
AS = "setpriv --reuid={0} --regid={0} --init-groups {1}"
BY_SOCKET = "curl -s --unix-socket /run/strixd/metrics.sock http://strixd/metrics"


@pytest.fixture(scope="module")
def head(pair: Pair) -> Host:
    """strixd runs on both, without an image, which does not matter here."""
    _lay(pair, ADDRESS)
    for host in pair:
        host.run("systemctl", "enable", "--now", "strixd.socket", "strixd.service")
    pair[0].sh("useradd -M outsider; useradd -M -G strixd-observe watcher")
    return pair[0]


def _lay(pair: Pair, listen: str) -> None:
    lay_cluster(pair, {"image": {"pull": "never"}, "metrics": {"listen": listen}}, key="secret")


@pytest.fixture(autouse=True)
def _no_image(judge: Judge) -> None:
    judge.expect("systemd: .*strixd-image", "podman: .*", "strixd: .*image")


def _told(host: Host, *command: str) -> bool:
    return host.attempt(*command).ok


def test_over_the_socket_access_goes_by_group(head: Host) -> None:
    wait_for("the socket", lambda: _told(head, "test", "-S", "/run/strixd/metrics.sock"), 20)
    assert head.attempt("bash", "-c", AS.format("outsider", "strixd-cli metrics")).rc == 77
    assert "strixd-observe" in head.sh(AS.format("outsider", BY_SOCKET))
    assert "strixd_node_phase" in parsed(head.sh(AS.format("watcher", "strixd-cli metrics")))
    assert "strixd_node_phase" in parsed(head.sh(AS.format("watcher", BY_SOCKET)))


def test_by_tcp_with_the_kernels_counters(head: Host, pair: Pair) -> None:
    counted = "strixd_link_receive_bytes"
    wait_for("the link", lambda: _told(head, *BY_TCP) and counted in head.run(*BY_TCP).stdout, 30, pause=0.5)
    pair[1].run("ping", "-qc5", "-i0.2", "-s1000", head.seat.fabric_address)
    before, told = (int(head.read(f"/sys/class/net/{FABRIC}/statistics/rx_bytes")), parsed(head.run(*BY_TCP).stdout))
    [sample] = told[counted].samples
    assert sample.labels == {"device": FABRIC}
    assert sample.value >= before >= 5000
    assert told["strixd_link_carrier_changes"].samples[0].value >= 1


def test_the_address_of_the_file_is_followed_and_a_port_that_is_not_allowed_is_said(
    head: Host, pair: Pair, judge: Judge
) -> None:
    judge.expect("strixd: Cannot listen on 127.0.0.1:101: Permission denied")
    _lay(pair, "127.0.0.1:101")
    head.attempt("strixd-cli", "apply")
    wait_for("the port closed", lambda: not _told(head, *BY_TCP), 20, pause=0.2)
    said = "journalctl -u strixd -o cat --no-pager | grep -c 'Cannot listen on 127.0.0.1:101'"
    wait_for("the warning", lambda: _told(head, "bash", "-c", said), 20, pause=0.2)
    assert _told(head, "systemctl", "is-active", "strixd.service")
    _lay(pair, ADDRESS)
    head.attempt("strixd-cli", "apply")
    wait_for("the metrics", lambda: _told(head, *BY_TCP), 20, pause=0.2)
