"""The fence: from a second network nothing of the cluster is reachable, and everything else is as it was.

The stranger is the far end of the management network. There the host's zone is like that of Fedora Workstation, which
opens 1025 to 65535. Small servers stand for Ray and the ranks; that the real ones listen only behind the fence is
looked at in tests/e2e.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.lab.cluster import lay_cluster
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.judge import Judge
from tests.lab.layout import FABRIC, MANAGEMENT, MANAGEMENT_NETNS
from tests.lab.shell import attempt, run

pytestmark = pytest.mark.lab

CLUSTER = (6379, 23000, 23150, 32768, 45000, 60999)  # Ray's, its workers', and what ranks let the kernel choose
OTHERS = (8000, 9090, 20022)  # the model's API, and services that are not ours
LISTEN = f"""
import selectors, socket
ready = selectors.DefaultSelector()
for port in {(*CLUSTER, *OTHERS)}:
    ready.register(socket.create_server(("", port), backlog=64), selectors.EVENT_READ)
while True:
    for key, _ in ready.select():
        key.fileobj.accept()[0].close()
"""
CONNECT = """
import socket, sys
for port in map(int, sys.argv[2:]):
    try:
        socket.create_connection((sys.argv[1], port), timeout=2).close()
        print(port)
    except OSError:
        pass
"""
WORKSTATION = "FedoraWorkstation"
ZONE = f"""
firewall-cmd -q --permanent --new-zone={WORKSTATION}
firewall-cmd -q --permanent --zone={WORKSTATION} --add-service=ssh
firewall-cmd -q --permanent --zone={WORKSTATION} --add-port=1025-65535/tcp --add-port=1025-65535/udp
firewall-cmd -q --reload
nmcli connection modify {MANAGEMENT} connection.zone {WORKSTATION}
nmcli -w 20 connection up {MANAGEMENT}
firewall-cmd -q --zone={WORKSTATION} --add-rich-rule='rule family="ipv4" source address="10.77.0.99" drop'
firewall-cmd -q --zone=public --add-port=4242/tcp
"""
NEVER_PULLED = {"image": {"pull": "never", "reference": "registry.lab:5000/none:none"}}  # so that no Ray starts


def stranger(address: str) -> tuple[int, ...]:
    """The ports that the second network reaches at this address."""
    argv = ["nsenter", f"--net=/run/netns/{MANAGEMENT_NETNS}", "python3", "-c", CONNECT, address]
    return tuple(map(int, run([*argv, *map(str, (*CLUSTER, *OTHERS))]).stdout.split()))


def reached(host: Host, address: str) -> tuple[int, ...]:
    """The ports that a lab host reaches."""
    return tuple(map(int, host.run("python3", "-c", CONNECT, address, *map(str, (*CLUSTER, *OTHERS))).stdout.split()))


def listen(host: Host) -> None:
    host.run("systemd-run", "--unit=servers", "--collect", "python3", "-c", LISTEN)
    wait_for("the servers listen", lambda: str(OTHERS[-1]) in host.sh("ss -Hltn"), 10)


def zone_of(host: Host, interface: str) -> str:
    return host.attempt("firewall-cmd", f"--get-zone-of-interface={interface}").stdout.strip()


def about(host: Host) -> dict[str, str]:
    """The firewall's line in status, its facts in one text."""
    status = json.loads(host.run("strixd-cli", "status", "--json").stdout)
    view = next(each for each in status["resources"] if each["name"] == "firewall")
    return {"condition": view["condition"], "why": view["why"], "hint": view["hint"], "facts": "\n".join(view["facts"])}


def settled(host: Host, condition: str = "ok", timeout: float = 20) -> None:
    wait_for(f"the firewall is {condition}", lambda: about(host)["condition"] == condition, timeout, pause=0.1)


def whole(host: Host) -> None:
    """Closed to the stranger, by both addresses, and only the cluster's."""
    wait_for("the fence stands", lambda: stranger(host.seat.management_address) == OTHERS, 10)
    assert stranger(host.seat.fabric_address) == OTHERS


@pytest.fixture(scope="module")
def before(pair: Pair) -> Iterator[tuple[tuple[int, ...], ...]]:
    """What the stranger reached by each address when strixd had not run yet; then it runs."""
    head = pair[0]
    head.sh(ZONE)
    listen(head)
    route = ["ip", "-n", MANAGEMENT_NETNS, "route"]
    way = [head.seat.fabric_address, "via", head.seat.management_address]
    head.sh(f"nmcli -w 20 con add type ethernet con-name cable ifname {FABRIC} ip4 {head.seat.fabric_address}/29")
    head.sh("nmcli -w 20 con up cable")
    run([*route, "replace", *way])
    open_before = stranger(head.seat.management_address), stranger(head.seat.fabric_address)
    head.sh("nmcli con del cable")
    lay_cluster(pair, NEVER_PULLED)
    for host in pair:
        host.run("systemctl", "start", "strixd.socket", "strixd.service")
    for host in pair:
        settled(host)
    yield open_before
    attempt([*route, "del", *way])


@pytest.fixture(autouse=True)
def _no_image(judge: Judge) -> None:
    judge.expect("systemd: .*strixd-image.service")


@pytest.fixture
def head(pair: Pair, before: object) -> Host:
    return pair[0]


def test_what_a_stranger_reached_before_is_closed_after(head: Host, before: tuple[tuple[int, ...], ...]) -> None:
    assert before == ((*CLUSTER, *OTHERS), (*CLUSTER, *OTHERS))
    whole(head)


def test_the_peer_on_the_fabric_and_the_host_itself_reach_everything(head: Host, pair: Pair) -> None:
    wait_for("the link", lambda: pair[1].attempt("ping", "-c1", "-W1", head.seat.fabric_address).ok, 20)
    assert reached(pair[1], head.seat.fabric_address) == (*CLUSTER, *OTHERS)
    for address in ("127.0.0.1", head.seat.fabric_address, head.seat.management_address):
        assert reached(head, address) == (*CLUSTER, *OTHERS)


def test_the_peer_reaches_the_cluster_over_the_fabric_only(head: Host, pair: Pair) -> None:
    assert reached(pair[1], head.seat.management_address) == OTHERS


def test_other_zones_and_what_others_set_for_now_are_as_they_were(head: Host) -> None:
    assert zone_of(head, MANAGEMENT) == WORKSTATION
    assert zone_of(head, FABRIC) == "strixd"
    assert "10.77.0.99" in head.sh(f"firewall-cmd --zone={WORKSTATION} --list-rich-rules")
    assert "4242/tcp" in head.sh("firewall-cmd --zone=public --list-ports")
    assert "strixd" not in head.read(f"/etc/firewalld/zones/{WORKSTATION}.xml")


def test_the_same_ports_are_closed_in_ipv6(head: Host) -> None:
    rules = head.sh("nft list chain inet firewalld filter_IN_policy_strixd-fence_deny")
    for ports in ("6379", "23000-23999", "32768-60999"):
        assert f"ip saddr != 192.168.100.0/29 tcp dport {ports} reject with tcp reset" in rules
        assert f"\t\ttcp dport {ports} reject with tcp reset" in rules.replace("meta nfproto ipv6 ", "")


def test_status_says_over_which_interface_the_ports_are_reachable(head: Host) -> None:
    assert f"are reachable from 192.168.100.0/29 ({FABRIC}) only" in about(head)["facts"]


@pytest.mark.parametrize(
    "command",
    [
        "firewall-cmd -q --reload",
        "systemctl restart firewalld",
        "systemctl restart NetworkManager",
        "nmcli -w 20 connection up strixd-lab",
        f"nmcli -w 20 connection up {MANAGEMENT}",
    ],
)
def test_it_survives_without_strixd(head: Host, command: str) -> None:
    head.run("systemctl", "stop", "strixd.service", "strixd.socket")
    head.sh(command)
    wait_for("the link is in its zone", lambda: zone_of(head, FABRIC) == "strixd", 20)
    wait_for("the other is in its", lambda: zone_of(head, MANAGEMENT) == WORKSTATION, 20)
    whole(head)
    head.run("systemctl", "start", "strixd.socket", "strixd.service")


def test_it_survives_a_reboot_without_strixd(head: Host) -> None:
    head.reboot()
    listen(head)
    wait_for("the link is in its zone", lambda: zone_of(head, FABRIC) == "strixd", 30)
    whole(head)
    head.run("systemctl", "start", "strixd.socket", "strixd.service")
    settled(head)


def test_a_moved_link_is_moved_back(head: Host) -> None:
    settled(head)
    head.sh(f"firewall-cmd -q --zone=public --change-interface={FABRIC}")
    wait_for("it is back", lambda: zone_of(head, FABRIC) == "strixd", 5)


def test_a_fence_that_somebody_took_away_comes_back(head: Host) -> None:
    settled(head)
    head.sh("firewall-cmd -q --permanent --delete-policy=strixd-fence; firewall-cmd -q --reload")
    wait_for("it is back", lambda: "strixd-fence" in head.sh("firewall-cmd --get-policies"), 10)
    settled(head)
    whole(head)


def test_a_fence_with_a_gate_in_it_is_mended(head: Host) -> None:
    rule = 'rule family="ipv6" port port="6379" protocol="tcp" reject type="tcp-reset"'
    head.run("firewall-cmd", "-q", "--policy=strixd-fence", f"--remove-rich-rule={rule}")
    listed = ("firewall-cmd", "--policy=strixd-fence", "--list-rich-rules")
    wait_for("the rule is back", lambda: rule in head.run(*listed).stdout, 5)


def test_a_masked_firewalld_blocks_and_is_named_with_the_two_ways_out(head: Host, judge: Judge) -> None:
    head.run("systemctl", "stop", "servers")  # with a stranger on its port, that would be what Ray is blocked by
    head.run("systemctl", "mask", "--now", "firewalld")
    settled(head, "blocked")
    said = about(head)
    assert "masked" in said["why"]
    assert "systemctl unmask firewalld" in said["hint"]
    assert "firewall = false" in said["hint"]
    wait_for("Ray waits", lambda: "waits for firewall" in head.sh("strixd-cli status"), 10)
    assert head.attempt("systemctl", "is-active", "strixd-ray").stdout.strip() != "active"
    listen(head)
    head.sh("systemctl unmask firewalld && systemctl start firewalld")
    settled(head)
    assert zone_of(head, FABRIC) == "strixd"
    whole(head)
