"""What Ray and the nodes' records say, as plain data. Pure."""

from __future__ import annotations

import contextlib
import json
from typing import Any

LABEL = "strixd-node"
STALE_SECONDS = 15.0  # three renewals of a record missed
RECORD_BYTES = 65536  # strixd's own has about 500
RESTLESS = ("cpu", "bytes")  # in a record: they change by themselves


def refused(error: Exception) -> bool:
    """By name: a Ray older than 2.52 has no such class."""
    return type(error).__name__ == "AuthenticationError"


def read_record(text: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):  # whoever has the key can write there
        return dict(json.loads(text).items()) if text.startswith(b"{") and len(text) <= RECORD_BYTES else {}
    return {}


def member(node: Any) -> dict[str, Any]:
    """`state` is 0 for ALIVE in Ray's protocol."""
    return {
        "name": node.labels.get(LABEL, ""),
        "address": node.node_manager_address,
        "alive": node.state == 0,
        "gpus": int(node.resources_total.get("GPU", 0)),
    }


def current(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All that are alive (for 15 s that can be a killed one and its successor), and one dead of a name that no living
    one has: Ray lists every dead node for ever."""
    living = [m for m in members if m["alive"]]
    names = {m["name"] for m in living}
    dead = {m["name"]: m for m in members if m["name"] not in names}
    return sorted([*living, *dead.values()], key=lambda m: (str(m["name"]), str(m["address"])))


def gist(report: dict[str, Any]) -> dict[str, Any]:
    """The report without what changes by itself."""
    return {**report, "members": [calm(one) for one in report["members"]]}


def calm(one: dict[str, Any]) -> dict[str, Any]:
    record = {key: value for key, value in one.get("record", {}).items() if key not in RESTLESS}
    return {**one, "record": record, "age": one["age"] > STALE_SECONDS}
