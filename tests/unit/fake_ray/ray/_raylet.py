"""A GCS client over a file: {"session", "cluster", "nodes", "refuse"}; the key-value store is kv/ beside it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ray.exceptions import AuthenticationError, RayError

STATE = Path(os.environ["FAKE_RAY"])
KEYS = STATE.with_name("kv")


class InnerGcsClient:
    def __init__(self) -> None:
        self.cluster = json.loads(STATE.read_text()).get("cluster", "")

    @classmethod
    def standalone(cls, address: str, cluster: str | None, milliseconds: int) -> InnerGcsClient:
        client = cls()
        client.state()
        return client

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(STATE.read_text())
        if state.get("refuse") == "key" or state.get("cluster", "") != self.cluster:
            raise AuthenticationError("RPC error: InvalidAuthToken: Authentication token is missing or incorrect")
        if state.get("refuse"):
            raise RayError(state["refuse"])
        return state

    def internal_kv_get(self, key: bytes, namespace: bytes, timeout: float) -> bytes:
        return str(self.state()["session"]).encode()

    def internal_kv_put(self, key: bytes, value: bytes, overwrite: bool, namespace: bytes, timeout: float) -> None:
        KEYS.mkdir(exist_ok=True)
        (KEYS / key.decode()).write_bytes(value)

    def internal_kv_multi_get(self, keys: list[bytes], namespace: bytes, timeout: float) -> dict[bytes, bytes]:
        files = {key: KEYS / key.decode() for key in keys}
        return {key: file.read_bytes() for key, file in files.items() if file.exists()}

    def get_all_node_info(self, timeout: float) -> dict[int, Any]:
        return dict(enumerate(map(node, self.state()["nodes"])))


def node(told: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(
        labels={"strixd-node": told["name"]},
        node_manager_address=told["address"],
        state=0 if told.get("alive", True) else 1,
        resources_total={"GPU": 1.0},
        start_time_ms=told.get("since", 0),
    )
