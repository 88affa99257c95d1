"""firewalld's zones and policies in its own words: what it is asked, what it is told, what counts as a difference.

Pure. A zone and a policy are handled alike and named differently in nearly every call; a Kind says how.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strixd.host.dbus import Remote, Variant
from strixd.ports import Policy, Zone

SERVICE = "org.fedoraproject.FirewallD1"
ROOT = "/org/fedoraproject/FirewallD1"
PRIORITY = -100
"""Of a policy of ours: below 0 comes before the zones, and an administrator's own may still come before ours."""

Settings = Mapping[str, Any]
"""The settings of a zone or policy as firewalld tells them, unpacked; empty ones are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """The calls for zones, or for policies. `changeable`: settings that can be changed while firewalld runs, with
    their D-Bus types; `fixed`: those in which only a reload makes a difference; `rules`: where rich rules are.
    There are two, and each equals only itself."""

    word: str
    in_force: Remote
    names: str
    get: str
    set: str
    stored: str  # D-Bus interface of a permanent one
    stored_names: str
    find: str
    add: str
    read: str
    update: str
    rules: str
    fixed: Mapping[str, str]
    changeable: Mapping[str, str]


_COMMON = {
    "services": "as",
    "ports": "a(ss)",
    "icmp_blocks": "as",
    "masquerade": "b",
    "forward_ports": "a(ssss)",
    "protocols": "as",
    "source_ports": "a(ss)",
}
ZONE = Kind(
    word="zone",
    in_force=Remote(SERVICE, ROOT, f"{SERVICE}.zone"),
    names="getZones",
    get="getZoneSettings2",
    set="setZoneSettings2",
    stored=f"{SERVICE}.config.zone",
    stored_names="getZoneNames",
    find="getZoneByName",
    add="addZone2",
    read="getSettings2",
    update="update2",
    rules="rules_str",
    fixed={"target": "s"},
    changeable={**_COMMON, "rules_str": "as", "sources": "as", "icmp_block_inversion": "b", "forward": "b"},
)
POLICY = Kind(
    word="policy",
    in_force=Remote(SERVICE, ROOT, f"{SERVICE}.policy"),
    names="getPolicies",
    get="getPolicySettings",
    set="setPolicySettings",
    stored=f"{SERVICE}.config.policy",
    stored_names="getPolicyNames",
    find="getPolicyByName",
    add="addPolicy",
    read="getSettings",
    update="update",
    rules="rich_rules",
    fixed={"target": "s", "priority": "i"},
    changeable={**_COMMON, "rich_rules": "as", "ingress_zones": "as", "egress_zones": "as"},
)


def kind_of(own: Zone | Policy) -> Kind:
    return ZONE if isinstance(own, Zone) else POLICY


def to_settings(own: Zone | Policy) -> dict[str, Variant]:
    """Everything is named, because a setting that an update is not given stays as it was."""
    texts = {"version": "", "short": own.name, "description": own.description}
    says = {name: Variant("s", text) for name, text in texts.items()}
    empty = {key: Variant(signature, none(signature)) for key, signature in kind_of(own).changeable.items()}
    return says | empty | (_of_zone(own) if isinstance(own, Zone) else _of_policy(own))


def _of_zone(zone: Zone) -> dict[str, Variant]:
    return {
        "target": Variant("s", zone.target),
        "interfaces": Variant("as", []),
        ZONE.rules: Variant("as", list(zone.rules)),
    }


def _of_policy(policy: Policy) -> dict[str, Variant]:
    return {
        "target": Variant("s", "CONTINUE"),
        "priority": Variant("i", PRIORITY),
        "ingress_zones": Variant("as", ["ANY"]),
        "egress_zones": Variant("as", ["HOST"]),
        POLICY.rules: Variant("as", list(policy.rules)),
    }


def to_zone(name: str, permanent: Settings, in_force: Settings | None) -> Zone:
    own = Zone(name, permanent.get("description", ""), permanent["target"], _rules(ZONE, permanent))
    others = _others(own, permanent, in_force)
    others += ("interfaces",) if permanent.get("interfaces") else ()
    return Zone(own.name, own.description, own.target, own.rules, others)


def to_policy(name: str, permanent: Settings, in_force: Settings | None) -> Policy:
    own = Policy(name, permanent.get("description", ""), _rules(POLICY, permanent))
    return Policy(own.name, own.description, own.rules, _others(own, permanent, in_force))


def _rules(of: Kind, settings: Settings) -> tuple[str, ...]:
    return tuple(sorted(settings.get(of.rules, ())))


def _others(own: Zone | Policy, permanent: Settings, in_force: Settings | None) -> tuple[str, ...]:
    """In what it is not as it would be defined, on disk and in force."""
    of, wanted = kind_of(own), plain(to_settings(own))
    others = differences(of, permanent, wanted) + unlike(of, permanent, wanted)
    others += ["short"] if permanent.get("short", "") != own.name else []
    if in_force is None:
        return (*others, "not in force")
    unequal = differences(of, permanent, in_force) + unlike(of, permanent, in_force)
    return (*others, *(f"{key} in force" for key in unequal))


def differences(of: Kind, one: Settings, other: Settings) -> list[str]:
    """Changeable settings in which the two differ; the order within a list means nothing, left out is empty."""
    return [key for key, each in of.changeable.items() if _value(each, one.get(key)) != _value(each, other.get(key))]


def unlike(of: Kind, one: Settings, other: Settings) -> list[str]:
    """Settings in which the two differ and which only a reload can change."""
    return [key for key, each in of.fixed.items() if _value(each, one.get(key)) != _value(each, other.get(key))]


def changes(of: Kind, want: Settings, now: Settings) -> dict[str, Variant]:
    """What to set so that what runs as `now` is as `want`; the interfaces of a zone are not touched."""
    types = of.changeable
    return {key: Variant(types[key], want.get(key, none(types[key]))) for key in differences(of, want, now)}


def plain(settings: Mapping[str, Variant]) -> Settings:
    return {key: variant.value for key, variant in settings.items()}


def none(signature: str) -> Any:
    """The empty value of a D-Bus type."""
    return {"b": False, "i": 0, "s": ""}.get(signature, [])


def _value(signature: str, value: Any) -> object:
    if not signature.startswith("a"):
        return value or none(signature)
    return sorted(tuple(item) if isinstance(item, list) else item for item in value or ())
