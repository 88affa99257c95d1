"""Which ports are behind the fence, and what the firewall says about them."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from strixd import fence
from strixd.config.loading import parse
from strixd.config.schema import Config
from strixd.decode import decode
from strixd.desired import derive
from strixd.fabric import Pick
from strixd.host.sessions import ssh_ports
from strixd.orders import Orders
from strixd.ports import Link, Running, Zone
from strixd.resources.firewall import Define, Firewall, Observed, Own, Revive
from tests.cluster_file import cluster_file


def config(more: str = "") -> Config:
    return parse(cluster_file(more, name="lab", prefix=29), "cluster.toml").config


def test_ray_gets_one_range_and_says_every_port() -> None:
    head, worker = (fence.ray_arguments(config(), node) for node in config().nodes)
    said = dict(each.split("=") for each in head)
    assert {"--min-worker-port", "--max-worker-port", "--ray-client-server-port"} < said.keys()
    assert len(set(said.values())) == len(said), "two of them would share a port"
    assert all(23000 <= int(port) <= 23999 for port in said.values())
    assert str(fence.autoscaler_port(config())) not in said.values()
    assert int(said["--min-worker-port"]) > max(int(port) for name, port in said.items() if "worker" not in name)
    assert set(worker) < set(head)


@pytest.mark.parametrize(
    ("more", "first"),
    [
        ("", 23000),
        ("ray-port = 23500", 29000),
        ("[model]\nport = 23000", 29000),
        ('ray-port = 29999\n[model]\nport = 23999\n[metrics]\nlisten = "127.0.0.1:21001"', 31000),
    ],
)
def test_the_range_keeps_clear_of_the_ports_of_the_file(more: str, first: int) -> None:
    assert fence.ray_ports(config(more)) == range(first, first + 1000)


def test_ports_of_the_file_that_others_may_reach_are_not_fenced() -> None:
    assert fence.fenced(config()) == ("6379", "23000-23999", "32768-60999")
    assert fence.fenced(config("[model]\nport = 40000"))[2:] == ("32768-39999", "40001-60999")
    assert fence.fenced(config("[model]\nport = 32768"))[2:] == ("32769-60999",)
    assert fence.fenced(config("[model]\nport = 32769"))[2:] == ("32768", "32770-60999")
    assert fence.fenced(config("[model]\nport = 60999"))[2:] == ("32768-60998",)
    both = '[model]\nport = 40000\n[metrics]\nlisten = "0.0.0.0:40001"'
    assert fence.fenced(config(both))[2:] == ("32768-39999", "40002-60999")


def test_the_fence_only_rejects_and_names_no_interface() -> None:
    policy = fence.policy(config(), config().head)
    assert policy.name != "strixd", "firewalld refuses a policy with the name of a zone"
    for rule in policy.rules:
        assert rule.endswith(' reject type="tcp-reset"')
        assert "enp1s0" not in rule
    assert sum('source NOT address="192.168.100.0/29"' in rule for rule in policy.rules) == 3
    assert sum(rule.startswith('rule family="ipv6" port') for rule in policy.rules) == 3


LINK = Link("enp1s0", "02:00:00:00:00:01", carrier=True)
FIREWALL = Firewall()
WANTED = derive(config(), config().head, Orders()).firewall
OFF = derive(config("[fabric]\nfirewall = false"), config().head, Orders()).firewall
LINKS = ("enp1s0", "wlan0")


def facts(observed: Observed) -> str:
    return "\n".join(FIREWALL.plan(WANTED, observed).facts)


def test_status_says_over_what_the_ports_are_reachable() -> None:
    there = Observed(Pick(LINK), LINKS, now="trusted", own=WANTED.own)
    assert FIREWALL.plan(WANTED, there).steps == ()
    assert "(TCP 6379, 23000-23999, 32768-60999) are reachable from 192.168.100.0/29 (enp1s0) only" in facts(there)
    open_zones = {"wlan0": "FedoraWorkstation"}
    missing = Observed(Pick(LINK), LINKS, now="trusted", zones=open_zones)
    assert "as open as its zone leaves them on wlan0 (zone FedoraWorkstation)" in facts(missing)
    assert FIREWALL.plan(WANTED, missing).steps == (Define(WANTED.own, Own()),)


def test_the_fence_is_put_up_without_the_link() -> None:
    """Ray of an earlier day may still run when the cable is out."""
    out = Observed(Pick(Link("enp1s0", "02:00:00:00:00:01")), LINKS)
    assert FIREWALL.plan(WANTED, out).condition == "waiting"
    assert FIREWALL.plan(WANTED, out).steps == (Define(WANTED.own, Own()),)
    nowhere = Observed(Pick(why="no link is interface enp1s0"), LINKS)
    assert FIREWALL.plan(WANTED, nowhere).condition == "blocked"
    assert FIREWALL.plan(WANTED, nowhere).steps == (Define(WANTED.own, Own()),)


def test_a_firewall_that_is_not_ours_is_left_alone_and_said_so() -> None:
    plan = FIREWALL.plan(OFF, Observed(Pick(LINK), LINKS))
    assert (plan.condition, plan.steps) == ("ok", ())
    assert "firewall = false" in plan.facts[0]
    assert "over any interface: enp1s0, wlan0" in plan.facts[1]


def test_a_fence_of_an_earlier_day_goes_when_the_file_says_so() -> None:
    plan = FIREWALL.plan(OFF, Observed(Pick(LINK), LINKS, own=Own(policy=WANTED.own.policy)))
    assert [str(step) for step in plan.steps] == ["remove firewall policy strixd-fence (6 rules)"]
    assert plan.steps[0].undo() == Define(Own(policy=WANTED.own.policy), Own())


@pytest.mark.parametrize(("said", "named"), [("", False), ("32768\t60999\n", False), ("15000\t60999\n", True)])
def test_a_kernel_that_chooses_ports_elsewhere_is_named(said: str, named: bool) -> None:
    there = Observed(Pick(LINK), LINKS, now="trusted", own=WANTED.own, ephemeral=said)
    assert ("chooses ports 15000-60999" in facts(there)) == named


def test_the_step_survives_the_record_on_disk() -> None:
    step = Define(Own(Zone("strixd", rules=("a",)), WANTED.own.policy), Own())
    assert decode(Define, json.loads(json.dumps(asdict(step)))).value == step


@pytest.mark.parametrize(
    ("running", "condition", "words"),
    [
        ("masked", "blocked", "systemctl unmask firewalld && systemctl start firewalld"),
        ("stopped", "blocked", "systemctl start firewalld"),
        ("absent", "blocked", "dnf install firewalld"),
        ("starting", "waiting", ""),
    ],
)
def test_without_firewalld_it_is_blocked_with_the_two_ways_out(running: Running, condition: str, words: str) -> None:
    plan = FIREWALL.plan(WANTED, Observed(Pick(LINK), LINKS, running))
    assert (plan.condition, plan.steps) == (condition, ())
    assert words in plan.hint
    assert ("firewall = false" in plan.hint) == (condition == "blocked")
    assert "firewalld" in plan.why


def test_firewalld_that_has_failed_is_started_unless_the_file_does_without() -> None:
    failed = Observed(Pick(LINK), LINKS, "failed")
    assert FIREWALL.plan(WANTED, failed).steps == (Revive(),)
    assert FIREWALL.plan(OFF, failed).steps == ()


def test_whoever_comes_in_by_ssh_on_a_fenced_port_is_not_shut_out() -> None:
    plan = FIREWALL.plan(WANTED, Observed(Pick(LINK), LINKS, now="trusted", ssh=(22, 50022)))
    (step,) = plan.steps
    assert isinstance(step, Define)
    assert step.own.policy
    ports = [rule.partition('port="')[2].partition('"')[0] for rule in step.own.policy.rules]
    assert sorted(set(ports)) == ["23000-23999", "32768-50021", "50023-60999", "6379"]
    assert len(ports) == 8, "for IPv4 and IPv6"
    there = Observed(Pick(LINK), LINKS, now="trusted", own=step.own, ssh=(22, 50022))
    assert FIREWALL.plan(WANTED, there).steps == ()
    assert "32768-60999, but for SSH on 50022) are reachable from 192.168.100.0/29 (enp1s0) only" in facts(there)


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("", set()),
        ("Port 50022\n#Port 40000\n", {50022}),
        ("  port=2222 # comment\nPort 2223\r\n", {2222, 2223}),
        ('Port "50022"\n', {50022}),
        (
            "ListenAddress 0.0.0.0:50022\nListenAddress [::]:50023\nListenAddress 10.0.0.5\nListenAddress ::\n",
            {50022, 50023},
        ),
        ("GatewayPorts 5\nPermitListen 0.0.0.0:3\n", set()),
    ],
)
def test_where_sshd_listens_is_read_from_its_files(text: str, ports: set[int]) -> None:
    assert ssh_ports([text]) == {22, *ports}
