"""A zone of ours as firewalld is told it, and what counts as a difference."""

from __future__ import annotations

from strixd.host.firewalld import differences, to_settings
from strixd.ports import Zone

ZONE = Zone("strixd", "The cluster's ports, for its peers only.", "default", ('rule protocol value="icmp" accept',))


def test_everything_is_named_so_that_nothing_stays_as_it_was() -> None:
    settings = {key: variant.value for key, variant in to_settings(ZONE).items()}
    assert settings["rules_str"] == list(ZONE.rules)
    assert settings["short"] == "strixd"
    assert settings["services"] == settings["ports"] == settings["sources"] == settings["interfaces"] == []
    assert settings["forward"] is settings["masquerade"] is False


def test_the_order_of_a_list_is_no_difference() -> None:
    assert differences({"ports": [["80", "tcp"], ["443", "tcp"]]}, {"ports": [("443", "tcp"), ("80", "tcp")]}) == []


def test_left_out_and_empty_are_the_same() -> None:
    assert differences({}, {"services": [], "masquerade": False}) == []


def test_differences_are_named() -> None:
    assert differences({"services": ["ssh"], "forward": True}, {"services": []}) == ["services", "forward"]
