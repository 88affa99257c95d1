"""The lab itself: its hosts are what the other lab tests take them for."""

from __future__ import annotations

import os
import re

import pytest

from tests.lab import registry
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.judge import Judge
from tests.lab.layout import FABRIC, MANAGEMENT

pytestmark = pytest.mark.lab

PROFILE = (
    "nmcli connection add type ethernet con-name cable ifname {fabric} ipv4.method manual ipv4.addresses {address}/29 "
    "ipv4.never-default yes 802-3-ethernet.mtu 9000 connection.zone trusted && nmcli connection up cable"
)
# Without DefaultDependencies=false it would wait for network-online.target, and that for DHCP on the cable: a minute.
QUADLET = f"""\
[Quadlet]
DefaultDependencies=false

[Container]
Image={registry.REFERENCE}
Network=host
Exec=bash -lc 'command -v ray; sleep 60'
"""


@pytest.fixture(scope="module")
def cabled(bare_pair: Pair) -> Pair:
    for host in bare_pair:
        host.sh(PROFILE.format(fabric=FABRIC, address=host.seat.fabric_address))
    return bare_pair


def test_hosts_boot_with_nothing_failed(bare_pair: Pair) -> None:
    for host in bare_pair:
        assert host.run("systemctl", "is-system-running").stdout == "running\n"


def test_the_default_route_is_on_the_management_network(bare_pair: Pair) -> None:
    for host in bare_pair:
        assert f"dev {MANAGEMENT}" in host.sh("ip route show default")


def test_each_host_has_its_own_machine_and_boot_id(bare_pair: Pair) -> None:
    first, second = bare_pair
    assert first.boot_id() != second.boot_id()
    assert first.read("/etc/machine-id") != second.read("/etc/machine-id")


def test_large_packets_cross_the_cable_whole(cabled: Pair) -> None:
    first, second = cabled
    wait_for("8972 bytes cross", lambda: _ping(first, second, "-M", "do", "-s", "8972"))


def test_a_pulled_cable_takes_the_carrier_from_both(cabled: Pair) -> None:
    first, second = cabled
    first.pull_cable()
    for host in cabled:
        wait_for("no carrier", lambda host=host: _carrier(host) == "0")  # type: ignore[misc]
    first.push_cable()
    wait_for("carrier again", lambda: _carrier(second) == "1")
    wait_for("the cable carries", lambda: _ping(first, second))


def test_power_loss_and_boot(cabled: Pair) -> None:
    first, second = cabled
    before = second.boot_id()
    second.kill()
    wait_for("the other host has no carrier", lambda: _carrier(first) == "0")
    keeper = second.seat.folder / "keeper.pid"
    keeper.write_text(f"{os.getpid()} {keeper.read_text().split()[1]}")  # its number has come round to another process
    second.boot()
    assert second.boot_id() != before
    wait_for("its profile is back", lambda: _ping(first, second))


def test_reboot_from_inside_keeps_the_journal(bare_pair: Pair) -> None:
    host = bare_pair[1]
    host.run("logger", "-t", "lab-test", "before the reboot")
    before = host.boot_id()
    host.reboot()
    assert host.boot_id() != before
    assert any(entry.get("MESSAGE") == "before the reboot" for entry in host.journal())


def test_a_frozen_host_answers_ping_and_nothing_else(cabled: Pair) -> None:
    first, second = cabled
    hello = ("timeout", "2", "bash", "-c", f"read -r line < /dev/tcp/{second.seat.fabric_address}/22")
    wait_for("ssh says hello", lambda: first.attempt(*hello).ok)
    second.freeze()
    try:
        assert _ping(first, second)
        assert not first.attempt(*hello).ok
    finally:
        second.thaw()
    wait_for("ssh says hello again", lambda: first.attempt(*hello).ok)


def test_the_image_is_pulled_and_sees_the_model_environment(bare_pair: Pair) -> None:
    host = bare_pair[0]
    host.run("podman", "pull", "--quiet", registry.REFERENCE, timeout=120)
    run = ("podman", "run", "--rm", "--network=host", "--ulimit", "memlock=-1:-1", registry.REFERENCE)
    assert host.run(*run, "bash", "-lc", "command -v vllm ray").stdout.split() == [
        "/opt/venv/bin/vllm",
        "/opt/venv/bin/ray",
    ]


def test_a_moved_tag_and_a_registry_that_is_off(bare_pair: Pair) -> None:
    host = bare_pair[0]
    pull = ("podman", "pull", "--quiet", "--retry=0", registry.REFERENCE)
    first = host.run(*pull, timeout=120).stdout
    registry.move_tag("second")
    assert host.run(*pull, timeout=120).stdout != first
    registry.stop()
    assert "connection refused" in host.attempt(*pull).stderr
    registry.start()
    registry.move_tag("first")
    assert host.run(*pull, timeout=120).stdout == first


def test_a_quadlet_container_gets_the_lab_folders_too(bare_pair: Pair) -> None:
    host = bare_pair[0]
    host.write("/run/containers/systemd/try.container", QUADLET)
    host.run("podman", "pull", "--quiet", registry.REFERENCE, timeout=120)
    host.sh("systemctl daemon-reload && systemctl start try.service")
    seen = lambda: any(entry.get("MESSAGE") == "/opt/venv/bin/ray" for entry in host.journal())  # noqa: E731
    wait_for("the container found ray", seen)
    host.sh("systemctl kill -s KILL try.service; systemctl reset-failed; rm /run/containers/systemd/try.container")


def test_the_judge_sees_a_failed_unit_an_error_and_a_traceback(bare_pair: Pair, judge: Judge) -> None:
    host = bare_pair[0]
    host.attempt("systemd-run", "--wait", "--quiet", "--unit=lab-fails", "false")
    host.run("systemctl", "reset-failed")
    host.run("logger", "-p", "daemon.err", "-t", "lab-test", "this is an error")
    host.run("logger", "-t", "lab-test", "Traceback (most recent call last): nothing")
    found = "\n".join(judge.complaints())
    assert len(re.findall("failed unit: .*lab-fails", found)) == 1
    assert "error line: lab-test: this is an error" in found
    assert "traceback: lab-test" in found
    judge.expect("lab-fails", "^lab-test: ")
    assert judge.complaints() == []


def _carrier(host: Host) -> str:
    """ "1", "0", or nothing while the interface is down."""
    return host.attempt("cat", f"/sys/class/net/{FABRIC}/carrier").stdout.strip()


def _ping(host: Host, other: Host, *options: str) -> bool:
    return host.attempt("ping", "-c1", "-W1", *options, other.seat.fabric_address).ok
