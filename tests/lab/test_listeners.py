"""A port that somebody else has, on a real host under the real daemon, which may look into no process of root's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.cluster import lay_cluster
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for

pytestmark = pytest.mark.lab

LISTEN = """
import signal, socket
kept = [socket.create_server(("127.0.0.1", port)) for port in (6379, 8000)]
signal.pause()
"""


def seen(host: Host, name: str) -> dict[str, Any]:
    """A resource in the status; empty while there is none."""
    said = host.attempt("strixd-cli", "status", "--json")
    resources = json.loads(said.stdout)["resources"] if said.ok else []
    return next((each for each in resources if each["name"] == name), {})


def test_a_stranger_on_our_ports_is_named_and_ray_starts_when_it_has_gone(pair: Pair) -> None:
    host = pair[0]
    lay_cluster(pair)
    host.run("systemd-run", "--unit=stranger", "--collect", "python3", "-c", LISTEN)
    wait_for("it listens", lambda: ":8000" in host.sh("ss -Hltn"), 10)
    stranger = f"python3 (pid {host.sh('systemctl show -P MainPID stranger').strip()}, stranger.service)"
    host.run("systemctl", "enable", "--now", "strixd.socket", "strixd.service")
    wait_for("ray is blocked", lambda: seen(host, "ray").get("condition") == "blocked", 60, pause=0.5)
    host.attempt("timeout", "3", "strixd-cli", "serve", "tiny")  # it would wait for the first completion
    wait_for("vllm is blocked", lambda: seen(host, "vllm").get("condition") == "blocked", 10, pause=0.5)
    assert seen(host, "ray")["why"] == f"port 6379 is taken by {stranger}"
    assert seen(host, "vllm")["why"] == f"port 8000 is taken by {stranger}"
    assert "systemctl status stranger.service" in seen(host, "ray")["hint"]
    wait_for("the image is there", lambda: seen(host, "image")["condition"] == "ok", 120, pause=0.5)
    assert seen(host, "ray")["condition"] == "blocked"
    assert host.sh("systemctl show -P InvocationID strixd-ray").strip() == "", "Ray was started into a taken port"
    host.run("systemctl", "stop", "stranger")
    wait_for("Ray listens", lambda: bool(host.sh("ss -Hltn sport = :6379")), 60, pause=0.5)
    assert seen(host, "vllm")["condition"] == "waiting"
