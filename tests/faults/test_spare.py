"""Two real hosts on two cables with a real model: the first is cut for good, and tokens come again over the second with
nobody typing; when it is mended nothing happens by itself, and one apply on one node brings both back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.e2e.cluster import TOKENS, Cluster
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.judge import GOING_DOWN, Judge
from tests.lab.lab import Lab
from tests.lab.layout import FABRIC, SPARE
from tests.quadlet_text import environment

pytestmark = pytest.mark.lab

LAID = {"fabric": {"kind": "auto", "zone": "strixd"}, "node": {"spare-interface": SPARE}}
SWITCHED = f"no carrier on {FABRIC}; goes on over {SPARE}"
BACK = f"{FABRIC} has its carrier again"
LONG = 60.0
"""Seconds in which a move back would have come by itself."""


@pytest.fixture(scope="module")
def bare_pair(lab: Lab) -> Iterator[Pair]:
    first, second = lab.new_hosts(spare=True)
    yield first, second
    lab.remove_hosts()


@pytest.fixture(scope="module")
def serving(pair: Pair) -> Cluster:
    cluster = Cluster(pair)
    cluster.lay(LAID)
    cluster.start()
    cluster.serve()
    return cluster


@pytest.fixture(autouse=True)
def workloads_are_ended(judge: Judge) -> None:
    judge.expect(*GOING_DOWN)


def holder(host: Host) -> str:
    """The interfaces that have the fabric's address."""
    told = json.loads(host.run("ip", "-j", "-4", "addr").stdout)
    return " ".join(
        link["ifname"] for link in told for each in link["addr_info"] if each["local"] == host.seat.fabric_address
    )


def goes_over(cluster: Cluster, interface: str) -> None:
    """Tokens over this link, which both nodes are on, and nothing is left to do."""

    def there() -> bool:
        told = cluster.status()
        over = told["model"]["over"].startswith(f"TCP over {interface}")
        held = all(holder(host) == interface for host in cluster.hosts)
        return over and held and told["phase"] == "ready" and bool(cluster.complete())

    wait_for(f"tokens over {interface}", there, TOKENS, pause=1.0)


def facts(cluster: Cluster, host: Host) -> str:
    view = next(each for each in cluster.status(host)["resources"] if each["name"] == "network")
    return "; ".join(view["facts"])


def is_told(cluster: Cluster, host: Host, words: str) -> bool:
    return words in facts(cluster, host)


def causes(cluster: Cluster, host: Host) -> list[str]:
    """Of the newest changes of that host."""
    told: list[dict[str, Any]] = json.loads(cluster.cli("history", "5", "--json", host=host).check().stdout)
    return [each["by"] for each in told]


def zone(host: Host, interface: str) -> str:
    return host.attempt("firewall-cmd", f"--get-zone-of-interface={interface}").stdout.strip()


def on_disk(host: Host) -> str:
    return host.sh("grep -l strixd-lab /etc/NetworkManager/system-connections/* | xargs cat")


def test_the_first_cable_has_the_address_and_the_spare_is_told(serving: Cluster) -> None:
    goes_over(serving, FABRIC)
    for host in serving.hosts:
        assert f"the spare is {SPARE}: carrier" in facts(serving, host)


def test_the_cable_is_out_for_ever_and_tokens_come_over_the_spare(serving: Cluster) -> None:
    server = serving.server_pid()
    serving.workers[0].pull_cable()
    goes_over(serving, SPARE)
    for host in serving.hosts:
        assert SWITCHED in causes(serving, host)
        assert f"{SPARE}, the spare, is in force (no carrier on {FABRIC})" in facts(serving, host)
        assert zone(host, SPARE) == "strixd"
        assert host.seat.fabric_mac in on_disk(host).lower(), "after a boot it is the first link's"
    if serving.server_pid() != server:  # else TCP has outlived it
        assert serving.status()["incident"]["cause"] == SWITCHED
        told = [environment(host.read("/run/containers/systemd/strixd-ray.container")) for host in serving.hosts]
        assert {each["GLOO_SOCKET_IFNAME"] for each in told} == {SPARE}
    doctor = serving.cli("doctor", "--json")
    carrier = next(each for each in json.loads(doctor.stdout)["findings"] if each["name"] == "carrier")
    assert (carrier["verdict"], FABRIC in carrier["mend"]) == ("fault", True)


def test_the_cable_is_back_and_nothing_happens_by_itself(serving: Cluster) -> None:
    server = serving.server_pid()
    serving.workers[0].push_cable()
    for host in serving.hosts:
        wait_for("it is told", partial(is_told, serving, host, f"{BACK}: strixd-cli apply takes it"), 30)
    with pytest.raises(TimeoutError):
        wait_for("a move", lambda: any(holder(host) != SPARE for host in serving.hosts), LONG, pause=2.0)
    assert serving.complete()
    assert serving.server_pid() == server


def test_an_apply_on_the_head_brings_both_back(serving: Cluster) -> None:
    serving.cli("apply").check()
    goes_over(serving, FABRIC)
    assert any(each.startswith(BACK) for each in causes(serving, serving.workers[0]))
    for host in serving.hosts:
        assert zone(host, FABRIC) == "strixd"
        assert host.seat.fabric_mac in on_disk(host).lower()
