"""doctor on two real hosts: hardware that is laid under /sys, and mends that really mend, as they are printed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.judge import GOING_DOWN, Judge
from tests.lab.layout import FABRIC
from tests.laid_tree import lay

pytestmark = pytest.mark.lab

STAND_INS = "/etc/lab"
GID = "0000:0000:0000:0000:0000:ffff:c0a8:6401"
TREE = f"""
class/drm/card1/device/mem_info_gtt_total: {124 << 30}
class/drm/card1/device/mem_info_vram_total: {1 << 29}
class/infiniband/irdma0/node_type: 1: CA
class/infiniband/irdma0/ports/1/state: 4: ACTIVE
class/infiniband/irdma0/ports/1/phys_state: 5: LinkUp
class/infiniband/irdma0/ports/1/link_layer: Ethernet
class/infiniband/irdma0/ports/1/gids/1: {GID}
class/infiniband/irdma0/ports/1/gid_attrs/types/1: RoCE v2
class/infiniband/irdma0/ports/1/gid_attrs/ndevs/1: {FABRIC}
"""


@pytest.fixture(scope="module")
def cluster(pair: Pair) -> Cluster:
    """With the address of the fabric, and nothing ordered."""
    made = Cluster(pair)
    lay(pair[0].path(STAND_INS), TREE)
    pair[0].reboot()
    made.lay({"fabric": {"kind": "auto", "zone": "strixd"}})
    made.start()
    wait_for("the link is as it should be", lambda: finding(made, "crossing")["verdict"] == "ok", 120, pause=2.0)
    return made


@pytest.fixture(autouse=True)
def workloads_are_ended(judge: Judge) -> None:
    judge.expect(*GOING_DOWN)


def finding(cluster: Cluster, name: str) -> dict[str, Any]:
    told = json.loads(cluster.cli("doctor", "--json").stdout)
    return next(each for each in told["findings"] if each["name"] == name)


def lay_in_place(host: Host, file: str, text: str) -> None:
    """So that the running host sees it."""
    host.sh(f"echo '{text}' >{STAND_INS}/class/{file}")


@pytest.mark.parametrize(
    ("name", "file", "good", "bad", "words"),
    [
        ("vram", "drm/card1/device/mem_info_vram_total", str(1 << 29), str(64 << 30), "64 GiB in /sys/class/drm/card1"),
        ("effective", "drm/card1/device/mem_info_gtt_total", str(124 << 30), str(62 << 30), "read 62 GiB in"),
        ("rdma", "infiniband/irdma0/node_type", "1: CA", "4: RNIC", "irdma0 port 1 is iWARP, not RoCE"),
        ("rdma", "infiniband/irdma0/ports/1/phys_state", "5: LinkUp", "2: Polling", "irdma0 port 1 is ACTIVE, Polling"),
        (
            "rdma",
            "infiniband/irdma0/ports/1/gids/1",
            GID,
            "fe80:0000:0000:0000:0000:0000:0000:0001",
            "in none of its",
        ),
    ],
)
def test_hardware_that_is_not_as_it_should_be(  # noqa: PLR0913 - a row of a table
    cluster: Cluster, name: str, file: str, good: str, bad: str, words: str
) -> None:
    assert words not in finding(cluster, name)["read"]
    lay_in_place(cluster.head, file, bad)
    try:
        found = finding(cluster, name)
        assert found["verdict"] in ("fault", "warning")
        assert words in found["read"]
        assert found["mend"]
    finally:
        lay_in_place(cluster.head, file, good)


def test_what_is_printed_starts_strixd_and_fix_makes_the_link_right(cluster: Cluster) -> None:
    host = cluster.head
    host.run("systemctl", "stop", "strixd.service", "strixd.socket")
    host.run("ip", "link", "set", FABRIC, "mtu", "1500")
    assert finding(cluster, "mtu")["verdict"] == "warning"
    stopped = finding(cluster, "daemon")
    assert stopped["verdict"] == "fault"
    host.sh(stopped["mend"].partition(";")[0])
    wait_for("strixd answers", lambda: finding(cluster, "daemon")["verdict"] == "ok", 60, pause=1.0)
    cluster.cli("doctor", "--fix")
    assert finding(cluster, "mtu")["read"] == f"9000 on {FABRIC}"


def test_what_is_printed_keeps_the_host_awake(cluster: Cluster) -> None:
    cluster.head.write("/etc/systemd/logind.conf.d/50-idle.conf", "[Login]\nIdleAction=suspend\n")
    asleep = finding(cluster, "sleep")
    assert (asleep["verdict"], "IdleAction=suspend" in asleep["read"]) == ("fault", True)
    cluster.head.sh(asleep["mend"])
    assert finding(cluster, "sleep")["verdict"] == "ok"


def test_a_firewall_that_shuts_the_peer_out_is_found_by_trying(cluster: Cluster) -> None:
    """A listener in the place of Ray, and a rule that strixd knows nothing of, between them."""
    worker = cluster.workers[0]
    worker.run("systemctl", "stop", "strixd.service", "strixd.socket", "strixd-ray.service")
    serve = "import socket, time; s = socket.create_server(('', 23000)); time.sleep(600)"
    worker.run("systemd-run", "-q", "--unit=listener", "python3", "-c", serve)
    wait_for("it listens", lambda: "23000" in worker.sh("ss -Hltn sport = :23000"))
    wait_for("the port is open", lambda: finding(cluster, "ports")["verdict"] == "ok", 30, pause=1.0)
    worker.sh("nft 'add table inet shut; add chain inet shut in { type filter hook input priority -300; }'")
    worker.sh("nft 'add rule inet shut in tcp dport 23000 drop'")
    shut = finding(cluster, "ports")
    assert (shut["verdict"], "port 23000 does not answer" in shut["read"]) == ("fault", True)
    worker.sh("nft delete table inet shut; systemctl stop listener; systemctl start strixd.socket strixd.service")
