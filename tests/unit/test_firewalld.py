"""A zone of ours as firewalld is told it, and what counts as a difference."""

from __future__ import annotations

from strixd.host.firewalld_words import POLICY, ZONE, changes, differences, plain, to_policy, to_settings, to_zone
from strixd.ports import Policy, Zone

OWN = Zone("strixd", "The cluster's ports, for its peers only.", "default", ('rule protocol value="icmp" accept',))
FENCE = Policy("strixd-fence", "The cluster's ports.", ('rule family="ipv6" port port="1" protocol="tcp" reject',))


def test_everything_is_named_so_that_nothing_stays_as_it_was() -> None:
    settings = plain(to_settings(OWN))
    assert settings["rules_str"] == list(OWN.rules)
    assert settings["short"] == "strixd"
    assert settings["services"] == settings["ports"] == settings["sources"] == settings["interfaces"] == []
    assert settings["forward"] is settings["masquerade"] is False


def test_a_policy_comes_before_the_zones_and_leaves_the_rest_to_them() -> None:
    settings = plain(to_settings(FENCE))
    assert settings["rich_rules"] == list(FENCE.rules)
    assert (settings["ingress_zones"], settings["egress_zones"]) == (["ANY"], ["HOST"])
    assert settings["target"] == "CONTINUE"
    assert settings["priority"] < 0


def test_what_was_told_is_read_back() -> None:
    zone, policy = plain(to_settings(OWN)), plain(to_settings(FENCE))
    assert to_zone("strixd", zone, zone) == OWN
    assert to_policy("strixd-fence", policy, policy) == FENCE


def test_what_else_is_in_it_is_named() -> None:
    settings = dict(plain(to_settings(FENCE)))
    assert to_policy("strixd-fence", settings, None).others == ("not in force",)
    assert to_policy("strixd-fence", settings | {"services": ["ssh"]}, settings).others == (
        "services",
        "services in force",
    )
    assert to_policy("strixd-fence", settings, settings | {"priority": 5}).others == ("priority in force",)
    assert to_policy("strixd-fence", settings | {"target": "ACCEPT"}, settings).others == ("target", "target in force")
    own = dict(plain(to_settings(OWN)))
    assert to_zone("strixd", own | {"interfaces": ["eth0"]}, own).others == ("interfaces",)


def test_the_order_of_a_list_is_no_difference() -> None:
    one, other = {"ports": [["80", "tcp"], ["443", "tcp"]]}, {"ports": [("443", "tcp"), ("80", "tcp")]}
    assert differences(ZONE, one, other) == []


def test_left_out_and_empty_are_the_same() -> None:
    assert differences(ZONE, {}, {"services": [], "masquerade": False}) == []
    assert differences(POLICY, {}, {"ingress_zones": []}) == []


def test_differences_are_named() -> None:
    assert differences(ZONE, {"services": ["ssh"], "forward": True}, {"services": []}) == ["services", "forward"]


def test_only_what_differs_is_changed() -> None:
    want, now = {"services": ["ssh"], "ports": []}, {"services": ["ssh"], "ports": [("80", "tcp")], "masquerade": True}
    assert plain(changes(ZONE, want, now)) == {"ports": [], "masquerade": False}
