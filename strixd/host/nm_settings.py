"""strixd's profile as NetworkManager writes it: Profile to settings and back. Pure; no bus.

A profile of ours is written whole, never merged into what is there, so nothing that was read is ever written back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from strixd.host.dbus import Variant
from strixd.ports import Profile

Settings = Mapping[str, Mapping[str, Any]]
"""As GetSettings tells it, unpacked: group, key, value."""

ETHERNET = "802-3-ethernet"
_TOLD = {  # what NetworkManager adds by itself, or tells a second time in an older form
    ("connection", "timestamp"),
    ("connection", "permissions"),
    ("ipv4", "addresses"),
    ("ipv4", "routes"),
    ("ipv4", "dns"),
    ("ipv6", "addresses"),
    ("ipv6", "routes"),
    ("ipv6", "dns"),
    (ETHERNET, "s390-options"),
}


def to_settings(profile: Profile, *, autoconnect: bool = True) -> dict[str, dict[str, Variant]]:
    """For AddConnection2 and Update2. Thunderbolt's network devices are ethernet to NetworkManager.

    Without `ipv4.may-fail` false a duplicate address goes unnoticed: the device becomes "activated" by its IPv6
    link-local address alone, with no IPv4 address at all. With it the activation fails at once."""
    address, _, prefix = profile.address.partition("/")
    data = {"address": Variant("s", address), "prefix": Variant("u", int(prefix))}
    quiet = {"never-default": Variant("b", True), "ignore-auto-dns": Variant("b", True)}
    must = {"may-fail": Variant("b", False)}
    return {
        "connection": _connection(profile, autoconnect=autoconnect),
        ETHERNET: _ethernet(profile),
        "ipv4": {"method": Variant("s", "manual"), "address-data": Variant("aa{sv}", [data]), **must, **quiet},
        "ipv6": {"method": Variant("s", "link-local"), **quiet},
    }


def _connection(profile: Profile, *, autoconnect: bool) -> dict[str, Variant]:
    """An interface name that is not given must be absent: "" is not a name."""
    texts = {"id": profile.name, "uuid": profile.uuid, "type": ETHERNET}
    texts |= {"interface-name": profile.interface} if profile.interface else {}
    texts |= {"zone": profile.zone} if profile.zone else {}
    return {key: Variant("s", text) for key, text in texts.items()} | {
        "autoconnect": Variant("b", autoconnect),
        "autoconnect-priority": Variant("i", profile.autoconnect_priority),
    }


def _ethernet(profile: Profile) -> dict[str, Variant]:
    card = {"mac-address": Variant("ay", list(bytes.fromhex(profile.mac.replace(":", ""))))} if profile.mac else {}
    return {"mtu": Variant("u", profile.mtu)} | card


def to_profile(settings: Settings, *, on_disk: bool) -> Profile:
    """`others` names what is not as to_settings would have it."""
    connection, ethernet = settings.get("connection", {}), settings.get(ETHERNET, {})
    known = Profile(
        uuid=connection.get("uuid", ""),
        name=connection.get("id", ""),
        interface=connection.get("interface-name", ""),
        mac=":".join(f"{byte:02x}" for byte in ethernet.get("mac-address", ())),
        address=_address(settings.get("ipv4", {})),
        mtu=ethernet.get("mtu", 0),
        zone=connection.get("zone", ""),
        autoconnect_priority=connection.get("autoconnect-priority", 0),
    )
    others = tuple(sorted(_others(settings, known))) + (() if on_disk else ("not on disk",))
    return replace(known, others=others)


def _address(ipv4: Mapping[str, Any]) -> str:
    data = ipv4.get("address-data", ())
    return f"{data[0]['address']}/{data[0]['prefix']}" if data else ""


def _others(settings: Settings, known: Profile) -> Iterator[str]:
    """Keys with a value that to_settings(known) does not give, and keys of it that are missing. Values that are empty,
    and defaults, NetworkManager may leave out or add."""
    ours = {
        (group, key): variant
        for group, keys in (to_settings(known) if known.address else {}).items()
        for key, variant in keys.items()
    }
    theirs = {
        (group, key): value
        for group, keys in settings.items()
        for key, value in keys.items()
        if (group, key) not in _TOLD and value not in ("", [], {}, ())
    }
    for where in ours.keys() | theirs.keys():
        if theirs.get(where, _DEFAULTS.get(where)) != _plain(ours.get(where), _DEFAULTS.get(where)):
            yield ".".join(where)


_DEFAULTS: dict[tuple[str, str], object] = {
    ("connection", "autoconnect"): True,
    ("connection", "autoconnect-priority"): 0,
    (ETHERNET, "mtu"): 0,
    (ETHERNET, "auto-negotiate"): False,
}


def _plain(value: object, default: object = None) -> object:
    """A value of ours as it looks when it comes back unpacked."""
    if value is None:
        return default
    if isinstance(value, Variant):
        return _plain(value.value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
