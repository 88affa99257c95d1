"""What the main job's demo and tests do with a cluster of lab hosts: start it, ask it, hurt it, wait for tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from strixd.api import wire
from strixd.cli import client
from tests.lab.cluster import Table, lay_cluster
from tests.lab.host import Host, wait_for
from tests.lab.shell import Result

MODEL = "tiny"
URL = "http://127.0.0.1:8000/v1"
TOKENS = 300.0  # seconds for a cold start of everything; 60 on a quiet machine
ANSWER = 30.0  # seconds for a word of strixd's
PROMPT = {"model": MODEL, "prompt": "hello world", "max_tokens": 8, "temperature": 0, "ignore_eos": True}


class Cluster:
    """`head` and `workers` are lab hosts on which strixd is installed."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.head, *self.workers = hosts
        self.hosts = tuple(hosts)

    def lay(self, changes: Mapping[str, Table] | None = None) -> None:
        lay_cluster(self.hosts, changes)

    def start(self) -> None:
        for host in self.hosts:
            host.run("systemctl", "enable", "--now", "strixd.socket", "strixd.service")

    def cli(self, *words: str, host: Host | None = None, timeout: float = TOKENS) -> Result:
        return (host or self.head).attempt("strixd-cli", *words, timeout=timeout)

    def ask(self, method: str, host: Host | None = None, **parameters: object) -> dict[str, Any]:
        """What strixd-cli is told, without a process per question: many of them would slow down what is looked at."""
        socket = (host or self.head).path(wire.ADDRESS)
        return client.call(str(socket), method, parameters, patience=ANSWER)

    def status(self, host: Host | None = None) -> dict[str, Any]:
        told: dict[str, Any] = self.ask("Status", host)["status"]
        return told

    def serve(self) -> Result:
        return self.cli("serve", MODEL).check()

    def complete(self, timeout: float = 20) -> str:
        """The text of one completion, "" when none came."""
        result = self.head.attempt(*self.asking(timeout), timeout=timeout + 5)
        return str(json.loads(result.stdout)["choices"][0]["text"]) if result.ok else ""

    def asking(self, timeout: float) -> list[str]:
        """The words of the curl that asks for one completion, to be run in the head."""
        ask = ("curl", "-sf", "-m", str(timeout), f"{URL}/completions", "-H", "content-type: application/json")
        return [*ask, "-d", json.dumps(PROMPT)]

    def wait_for_tokens(self, timeout: float = TOKENS) -> str:
        """Until a completion comes, with nobody giving a command."""
        wait_for("a completion", lambda: self.head.is_up() and bool(self.complete()), timeout, pause=1.0)
        return self.complete()

    def stream(self, tokens: int) -> list[str]:
        """The words of the curl that streams a completion of so many tokens, to be run in the head."""
        body = json.dumps(PROMPT | {"stream": True, "max_tokens": tokens})
        return ["curl", "-sfN", "-m", "120", f"{URL}/completions", "-H", "content-type: application/json", "-d", body]

    def server_pid(self) -> int:
        """The host's number of the process that answers, found by what it listens on."""
        line = self.head.sh("ss -Hltnp sport = :8000")
        return int(line.partition("pid=")[2].partition(",")[0])

    def kill_server(self) -> None:
        self.head.run("kill", "-KILL", str(self.server_pid()))


def pieces(stream: str) -> list[str]:
    """The texts of a streamed completion, one per event (which may hold several tokens); it must come to its end."""
    events = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]
    assert events, f"no event in {stream[:300]!r}"
    assert events[-1] == "[DONE]", f"the stream broke off after {len(events)} events"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert choices[-1]["finish_reason"] == "length", choices[-1]
    return [choice["text"] for choice in choices]
