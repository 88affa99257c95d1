"""The fabric link of two real hosts under the real daemon: what crosses it, and which card it is."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.lab import network
from tests.lab.cluster import lay_cluster
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.judge import Judge
from tests.lab.layout import FABRIC

pytestmark = pytest.mark.lab

CROSSES = "MTU 9000 crosses to {} and back"
RENAMED = "enp9s0"
# Before anything looks at the links, as udev would do it after a change of slots.
RENAMING = f"""\
[Unit]
DefaultDependencies=no
Before=NetworkManager.service
[Service]
Type=oneshot
ExecStart=/sbin/ip link set {FABRIC} down
ExecStart=/sbin/ip link set {FABRIC} name {RENAMED}
[Install]
WantedBy=multi-user.target
"""


@pytest.fixture(scope="module")
def running(pair: Pair) -> Pair:
    """strixd runs on both, without an image, which does not matter here."""
    lay_cluster(pair, {"image": {"pull": "never"}})
    for host in pair:
        host.run("systemctl", "enable", "--now", "strixd.socket", "strixd.service")
    return pair


@pytest.fixture(autouse=True)
def _no_image(judge: Judge) -> None:
    judge.expect("systemd: .*strixd-image", "podman: .*", "strixd: .*image")


@pytest.fixture(autouse=True)
def _tried_again(running: Pair) -> None:
    """A size that an earlier test has lost stays lost until somebody asks."""
    for host in running:
        host.attempt("strixd-cli", "apply")


def seen(host: Host, name: str = "network") -> dict[str, Any]:
    """A resource in the status; empty while there is none."""
    said = host.attempt("strixd-cli", "status", "--json")
    resources = json.loads(said.stdout)["resources"] if said.ok else []
    return next((each for each in resources if each["name"] == name), {})


def says(host: Host, words: str, timeout: float = 30) -> None:
    try:
        wait_for(words, lambda: words in "; ".join(seen(host).get("facts", ())), timeout, pause=0.5)
    except TimeoutError as late:
        raise AssertionError(f"{host.name}: {late}: {seen(host)}") from None


def both_cross(pair: Pair) -> None:
    for host, other in (pair, reversed(pair)):
        try:
            says(host, CROSSES.format(other.name), 60)
        except AssertionError as late:
            raise AssertionError(f"{late}; {other.name} says {seen(other)}") from None


def mtu(host: Host, interface: str = FABRIC) -> int:
    return int(host.read(f"/sys/class/net/{interface}/mtu"))


def link_event(host: Host) -> None:
    """Has strixd ask again now: what is proven is asked only each minute."""
    host.run("ip", "link", "set", "mgmt0", "alias", f"at {time.time()}")


def test_large_packets_are_proven_to_cross_from_within_the_sandbox_of_the_unit(running: Pair) -> None:
    both_cross(running)
    assert [mtu(host) for host in running] == [9000, 9000]
    assert [seen(host)["condition"] for host in running] == ["ok", "ok"]
    card = running[0].seat.fabric_mac
    assert card in running[0].sh("cat /etc/NetworkManager/system-connections/strixd-lab.nmconnection").lower()


def test_a_device_that_drops_large_packets_one_way_and_is_mended(running: Pair) -> None:
    first, second = running
    with network.losing_large(first.seat):
        for host in running:
            link_event(host)
        says(first, f"MTU 9000 does not cross from here to {second.name}: it is 1500 on this side", 120)
        says(second, f"MTU 9000 does not cross from {first.name} to here: it is 1500 on this side", 60)
        wait_for("1500 on both", lambda: [mtu(host) for host in running] == [1500, 1500], 10)
        assert [seen(host)["condition"] for host in running] == ["ok", "ok"]
        assert all("strixd-cli apply" in seen(host)["hint"] for host in running)
        first.run("systemctl", "restart", "strixd")
        says(first, "MTU 9000 does not cross")
    first.run("ping", "-c", "1", "-W", "2", second.seat.fabric_address)
    time.sleep(5)
    assert [mtu(host) for host in running] == [1500, 1500], "it is not tried again by itself, nor by a new daemon"
    for host in running:
        host.run("strixd-cli", "apply")
    both_cross(running)
    assert [mtu(host) for host in running] == [9000, 9000]
    assert first.attempt("test", "-e", "/var/lib/strixd/mtu.json").rc


def test_a_card_that_is_absent_at_the_start_and_comes_and_goes(running: Pair) -> None:
    host, other = running
    both_cross(running)
    host.run("systemctl", "stop", "strixd")
    network.take_card(host.seat)
    host.run("systemctl", "start", "strixd")
    wait_for("blocked", lambda: seen(host).get("condition") == "blocked", 20)
    assert f"no link is interface {FABRIC}" in seen(host)["why"]
    for _ in range(2):
        network.give_card(host.seat)
        says(host, CROSSES.format(other.name), 20)
        network.take_card(host.seat)
        wait_for("blocked", lambda: seen(host).get("condition") == "blocked", 20)
    network.give_card(host.seat)
    both_cross(running)


def test_a_card_that_is_called_otherwise_after_a_boot_keeps_its_address(running: Pair) -> None:
    host, other = running[1], running[0]
    both_cross(running)
    host.write("/etc/systemd/system/rename.service", RENAMING)
    host.run("systemctl", "enable", "rename.service")
    host.reboot()
    says(host, f"{FABRIC} of the file is called {RENAMED} now (same card, MAC {host.seat.fabric_mac})")
    says(host, CROSSES.format(other.name))
    assert f"{host.seat.fabric_address}/" in host.sh(f"ip -br -4 addr show {RENAMED}")
    assert mtu(host, RENAMED) == 9000
    wait_for("the firewall finds it, too", lambda: seen(host, "firewall").get("condition") == "ok", 10)
