"""strixd's profile, written for NetworkManager and read back. READ_BACK is what NetworkManager 1.52 answered."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from strixd.host.dbus import Variant
from strixd.host.nm_settings import ETHERNET, to_profile, to_settings
from strixd.host.nm_words import reason, state
from strixd.ports import Profile

UUID = "3f1b0a9e-0000-4000-8000-00000000fab1"
PROFILE = Profile(
    uuid=UUID,
    name="strixd halo",
    mac="26:b5:62:62:36:15",
    address="192.168.100.1/29",
    mtu=9000,
    zone="trusted",
    autoconnect_priority=100,
)
STATES = {0: "unavailable", 10: "unavailable", 20: "unavailable", 30: "disconnected", 40: "activating"} | {
    70: "activating",
    90: "activating",
    100: "activated",
    110: "deactivating",
    120: "failed",
}
READ_BACK: dict[str, dict[str, Any]] = {
    ETHERNET: {
        "auto-negotiate": False,
        "mac-address": [38, 181, 98, 98, 54, 21],
        "mtu": 9000,
        "s390-options": {},
    },
    "connection": {
        "autoconnect-priority": 100,
        "id": "strixd halo",
        "permissions": [],
        "type": ETHERNET,
        "uuid": UUID,
        "zone": "trusted",
    },
    "ipv4": {
        "address-data": [{"address": "192.168.100.1", "prefix": 29}],
        "addresses": [[23374016, 29, 0]],
        "ignore-auto-dns": True,
        "may-fail": False,
        "method": "manual",
        "never-default": True,
        "route-data": [],
        "routes": [],
    },
    "ipv6": {
        "address-data": [],
        "addresses": [],
        "ignore-auto-dns": True,
        "method": "link-local",
        "never-default": True,
        "route-data": [],
        "routes": [],
    },
    "proxy": {},
}


def test_what_was_saved_is_read_back_exactly() -> None:
    assert to_profile(READ_BACK, on_disk=True) == PROFILE


def test_the_time_of_the_last_use_is_no_difference() -> None:
    used = deepcopy(READ_BACK)
    used["connection"]["timestamp"] = 1795967474
    assert to_profile(used, on_disk=True) == PROFILE


@pytest.mark.parametrize(
    ("group", "key", "value", "other"),
    [
        ("ipv4", "gateway", "192.168.100.6", "ipv4.gateway"),
        ("ipv4", "never-default", None, "ipv4.never-default"),
        ("ipv4", "may-fail", None, "ipv4.may-fail"),
        ("ipv4", "dns-data", ["1.1.1.1"], "ipv4.dns-data"),
        ("ipv4", "method", "auto", "ipv4.method"),
        ("ipv6", "method", "auto", "ipv6.method"),
        ("connection", "autoconnect", False, "connection.autoconnect"),
        ("connection", "controller", "br0", "connection.controller"),
        (ETHERNET, "cloned-mac-address", "random", f"{ETHERNET}.cloned-mac-address"),
    ],
)
def test_whatever_else_is_in_it_is_named(group: str, key: str, value: object, other: str) -> None:
    changed = deepcopy(READ_BACK)
    changed[group].pop(key, None)
    changed[group] |= {} if value is None else {key: value}
    assert to_profile(changed, on_disk=True) == replace(PROFILE, others=(other,))


def test_a_profile_that_a_reboot_loses_says_so() -> None:
    assert to_profile(READ_BACK, on_disk=False).others == ("not on disk",)


def test_a_second_address_is_not_overlooked() -> None:
    changed = deepcopy(READ_BACK)
    changed["ipv4"]["address-data"].append({"address": "10.0.0.1", "prefix": 8})
    assert to_profile(changed, on_disk=True).others == ("ipv4.address-data",)


def test_a_profile_without_an_address_can_be_read() -> None:
    assert to_profile({"connection": {"uuid": UUID, "id": "x"}}, on_disk=True).address == ""


def test_names_that_are_not_given_are_absent() -> None:
    settings = to_settings(replace(PROFILE, mac="", zone="", interface="eth0"))
    assert settings["connection"]["interface-name"] == Variant("s", "eth0")
    assert "zone" not in settings["connection"]
    assert "mac-address" not in settings[ETHERNET]


@pytest.mark.parametrize(("number", "word"), sorted(STATES.items()))
def test_device_states_in_words(number: int, word: str) -> None:
    assert state(number) == word


def test_reasons_in_words() -> None:
    assert reason(40) == "no carrier"
    assert reason(0) == ""
    assert reason(999) == "device state reason 999"
