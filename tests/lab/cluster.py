"""Makes lab hosts into a cluster: the same cluster.toml and key on each, as an administrator would lay them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.lab import registry
from tests.lab.host import Host
from tests.lab.layout import FABRIC

FILE = "/etc/strixd/cluster.toml"
KEY = "/etc/strixd/cluster.key"
PREFIX_LENGTH = 29
ENVIRONMENT = {
    "TORCHDYNAMO_DISABLE": "1",  # no C++ compiler in the image: else every completion is a 500
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; the default would be most of the machine
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
Table = Mapping[str, Any]


def lay_cluster(hosts: Sequence[Host], changes: Mapping[str, Table] | None = None, key: str = "") -> None:
    """Write both files on every host. `changes` adds or replaces keys by section, e.g. {"model": {"port": 8001}}; those
    of "node" are every node's."""
    text, secret = cluster_toml(hosts, changes), key or secrets.token_hex(32)
    for host in hosts:
        host.write(FILE, text)
        host.write(KEY, secret + "\n", 0o600)


def cluster_toml(hosts: Iterable[Host], changes: Mapping[str, Table] | None = None) -> str:
    sections: dict[str, dict[str, Any]] = {
        "cluster": {"name": "lab"},
        "fabric": {"kind": "ethernet"},
        "image": {"reference": registry.REFERENCE, "environment": ENVIRONMENT},
        "model": {"arguments": ["--max-model-len", "1024"]},
    }
    for name, table in (changes or {}).items():
        sections[name] = sections.get(name, {}) | dict(table)
    every = sections.pop("node", {})
    tables = [_table(f"[{name}]", table) for name, table in sections.items()]
    return "\n".join([*tables, *(_table("[[node]]", {**_node(host), **every}) for host in hosts)])


def _node(host: Host) -> Table:
    role = "head" if host.seat.number == 1 else "worker"
    address = f"{host.seat.fabric_address}/{PREFIX_LENGTH}"
    return {"name": host.name, "role": role, "address": address, "interface": FABRIC}


def _table(header: str, table: Table) -> str:
    return "\n".join([header, *(f"{key} = {_value(value)}" for key, value in table.items()), ""])


def _value(value: Any) -> str:
    """A value as TOML writes it; strings here hold no quotes, backslashes or control characters."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case Mapping():
            return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(_value(each) for each in value) + "]"
        case _:
            return str(value)
