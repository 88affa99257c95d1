"""The ladder on two real hosts with a real model: what sysfs says of RDMA (laid there) decides what the containers are
told, and a port that goes down moves the model to TCP. The ranks' own traffic is TCP throughout: there is no RDMA."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.cluster import TOKENS, Cluster
from tests.lab.cluster import Table
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.judge import GOING_DOWN, Judge
from tests.lab.layout import FABRIC
from tests.laid_tree import lay
from tests.quadlet_text import environment

pytestmark = pytest.mark.lab

STAND_INS = "/etc/lab"
DEVICES = {"halo1": ("irdma0", 1), "halo2": ("irdma7", 9)}
"""Of each host the RDMA device and the index of its GID: never copied from one to the other."""
TREE = """
class/infiniband/{device}/node_type: 1: CA
class/infiniband/{device}/ports/1/state: 4: ACTIVE
class/infiniband/{device}/ports/1/phys_state: 5: LinkUp
class/infiniband/{device}/ports/1/link_layer: Ethernet
class/infiniband/{device}/ports/1/rate: 100 Gb/sec (4X EDR)
class/infiniband/{device}/ports/1/gids/{index}: 0000:0000:0000:0000:0000:ffff:{address}
class/infiniband/{device}/ports/1/gid_attrs/types/{index}: RoCE v2
class/infiniband/{device}/ports/1/gid_attrs/ndevs/{index}: {interface}
"""


def lay_rdma(host: Host) -> None:
    device, index = DEVICES[host.name]
    parts = [int(part) for part in host.seat.fabric_address.split(".")]
    address = "{:02x}{:02x}:{:02x}{:02x}".format(*parts)
    lay(host.path(STAND_INS), TREE.format(device=device, index=index, address=address, interface=FABRIC))


def port_is(host: Host, state: str) -> None:
    """Written in place, so that the running host sees it."""
    host.sh(f"echo '{state}' >{STAND_INS}/class/infiniband/{DEVICES[host.name][0]}/ports/1/state")


def settings(**fabric: Any) -> dict[str, Table]:
    return {"fabric": {"kind": "auto", "zone": "strixd", **fabric}}


@pytest.fixture(scope="module")
def serving(pair: Pair) -> Cluster:
    cluster = Cluster(pair)
    for host in pair:
        lay_rdma(host)
        host.reboot()
    cluster.lay(settings())
    cluster.start()
    cluster.serve()
    return cluster


@pytest.fixture(autouse=True)
def workloads_are_ended(judge: Judge) -> None:
    judge.expect(*GOING_DOWN)


def model(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.status()["model"]
    return found


def goes_over(cluster: Cluster, words: str) -> None:
    def there() -> bool:
        return model(cluster)["over"].startswith(words) and bool(cluster.complete())

    wait_for(f"tokens over {words}", there, TOKENS, pause=1.0)


def told(host: Host) -> dict[str, str]:
    return environment(host.read("/run/containers/systemd/strixd-ray.container"))


def resource(cluster: Cluster, name: str, host: Host | None = None) -> str:
    view = next(each for each in cluster.status(host)["resources"] if each["name"] == name)
    return f"{view['condition']}: {view['why']}"


def saved(host: Host) -> str:
    """What was kept of the only port's state at the only incident."""
    return host.sh("grep -h '  state ' /var/lib/strixd/evidence/*-strixd-ray.service/rdma.txt").strip()


def test_each_node_is_told_its_own_device_and_its_raylet_knows(serving: Cluster) -> None:
    assert model(serving)["over"] == "RDMA (RoCE v2, irdma0 port 1, GID 1)"
    for host in serving.hosts:
        device, index = DEVICES[host.name]
        assert told(host)["NCCL_IB_HCA"] == f"={device}:1"
        raylet = host.sh("tr '\\0' '\\n' </proc/$(pgrep -x raylet)/environ")
        assert f"NCCL_IB_HCA=={device}:1\n" in raylet
        assert f"NCCL_IB_GID_INDEX={index}\n" in raylet
        assert "NCCL_IB_DISABLE=0\n" in raylet
    kept = "/var/lib/strixd/cache/vllm-config/ray_non_carry_over_env_vars.json"
    assert "NCCL_IB_HCA" in serving.head.read(kept)


def test_a_port_that_goes_down_on_the_worker_moves_the_model_to_tcp(serving: Cluster) -> None:
    port_is(serving.workers[0], "1: DOWN")
    goes_over(serving, f"TCP over {FABRIC}")
    assert [told(host)["NCCL_IB_DISABLE"] for host in serving.hosts] == ["1", "1"]
    incident = serving.status()["incident"]
    assert incident["cause"].startswith("RDMA is lost: halo2: irdma7 port 1 is DOWN")
    assert "about 70 µs instead of 5 µs" in incident["cause"]
    assert [saved(host) for host in serving.hosts] == ["state 4: ACTIVE", "state 1: DOWN"]
    assert f"TCP over {FABRIC}" in serving.cli("status").check().stdout


def test_the_better_rung_is_told_and_taken_by_order(serving: Cluster) -> None:
    port_is(serving.workers[0], "4: ACTIVE")
    wait_for("RDMA is told to be there", lambda: model(serving)["better"].startswith("RDMA (RoCE v2"), 60, pause=1.0)
    assert model(serving)["over"].startswith("TCP")
    serving.cli("restart", "vllm").check()
    goes_over(serving, "RDMA (RoCE v2, irdma0 port 1")


def test_without_tcp_nothing_is_started_and_the_mend_is_named(serving: Cluster) -> None:
    serving.lay(settings(**{"allow-tcp": False}))
    for host in serving.hosts:
        serving.cli("apply", host=host)
    serving.cli("stop").check()
    port_is(serving.head, "1: DOWN")
    wait_for("the link is blocked", lambda: resource(serving, "fabric").startswith("blocked"), 60, pause=1.0)
    assert "irdma0 port 1 is DOWN" in resource(serving, "fabric")
    refused = serving.cli("serve", "tiny", timeout=60)
    assert not refused.ok
    assert "allow-tcp = false" in refused.stderr
    port_is(serving.head, "4: ACTIVE")
    goes_over(serving, "RDMA (RoCE v2, irdma0 port 1")
