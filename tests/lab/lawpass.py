"""Runs inside a lab host: one pass of strixd over its settings with a fault at one of the writing calls, or a snapshot
of all that such a pass may touch. For tests/lab/test_laws.py.

    python3 -m tests.lab.lawpass pass [fail|kill NUMBER|CALL before|after]
    python3 -m tests.lab.lawpass snapshot
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from strixd import config
from strixd.engine.settings import Settings
from strixd.engine.wish import File, Wish
from strixd.errors import Rejected
from strixd.host.bus import Bus
from strixd.host.networkmanager import NetworkManager
from strixd.node import real_host
from strixd.orders import Orders
from strixd.ports import Host

CLUSTER = Path("/etc/strixd/cluster.toml")
CHECKPOINT = 5
"""Seconds until NetworkManager takes back what nobody confirmed."""
WRITES = {
    "network": {"stage", "save", "delete", "activate", "give_back", "disconnect", "checkpoint", "extend", "confirm"},
    "firewall": {"define", "remove", "move"},
    "boot": {"change"},
    "files": {"write", "remove"},
}
FILES = (
    "etc/NetworkManager/system-connections",
    "run/NetworkManager/system-connections",
    "etc/firewalld",
    "boot/loader/entries",
    "etc/kernel",
    "etc/default",
    "run/motd.d",
    "var/lib/strixd",
)
TOLD = ("history.json", ".old")  # the one differs in its times; the other are firewalld's own copies of what it removes
VARYING = ("connection.timestamp", "GENERAL", "IP4", "IP6")


@dataclass
class Fault:
    """`at`: the number of the writing call, from 1, or what it is ("network.activate")."""

    how: str = ""
    at: str = ""
    when: str = ""
    calls: list[str] = field(default_factory=list)

    def counted(self, call: str) -> int:
        """Its number; several may be under way at a time."""
        self.calls.append(call)
        return len(self.calls)

    def strike(self, number: int, when: str) -> None:
        if self.at not in (str(number), self.calls[number - 1]) or when != self.when:
            return
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise Rejected("Cannot go on: the test said no")


class Faulty:
    """A port whose writing calls are counted, and one of which goes wrong."""

    def __init__(self, port: object, name: str, fault: Fault) -> None:
        self._port, self._name, self._fault = port, name, fault

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._port, method)
        return self._writing(method, call) if method in WRITES[self._name] else call

    def _writing(self, method: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def writing(*args: Any, **named: Any) -> Any:
            where = f" {args[0]}" if self._name == "files" else ""
            number = self._fault.counted(f"{self._name}.{method}{where}")
            self._fault.strike(number, "before")
            result = await call(*args, **named)
            self._fault.strike(number, "after")
            return result

        return writing


def faulty(host: Host, bus: Bus, fault: Fault) -> Host:
    ports = {name: getattr(host, name) for name in WRITES} | {"network": NetworkManager(bus, time=CHECKPOINT)}
    wrapped = {name: cast("Any", Faulty(port, name, fault)) for name, port in ports.items()}
    return replace(host, **wrapped)


async def one_pass(fault: Fault) -> dict[str, Any]:
    async with Bus() as bus, real_host() as found:
        host = faulty(found, bus, fault)
        read = config.read(CLUSTER)
        node = config.find_node(read.config, host.identity.hostname, host.identity.macs)
        wish = Wish(File(read.config, node, read.text), Orders(), read=lambda: wish.file)
        pairs = [(resource, desired) for resource, desired in wish.wanted() if not resource.supervised]
        settings = Settings(host, lambda name, doing, step: None)
        await settings.load()
        tended = await settings.tend(wish.orders, pairs)
        left = [str(step) for view in tended.views.values() for step in view.steps]
    conditions = {name: [view.condition, view.why] for name, view in tended.views.items()}
    return {"calls": fault.calls, "left": left, "conditions": conditions}


def snapshot() -> dict[str, Any]:
    return {
        "profiles": {uuid: _profile(uuid) for uuid in _said("nmcli", "-g", "UUID", "connection")},
        "devices": sorted(_said("nmcli", "-g", "DEVICE,STATE,CONNECTION", "device")),
        "addresses": sorted(_said("ip", "-o", "-4", "address", "show")),
        "mtus": [line.split(" qdisc")[0] for line in _said("ip", "-o", "link", "show")],
        "ruleset": sorted(_rules()),
        "files": dict(sorted(item for folder in FILES for item in _files(Path("/", folder)))),
    }


def _rules() -> Iterator[str]:
    """Each rule with its chain. Those that sort packets by interface stand in the order in which interfaces came."""
    chain = ""
    for line in _said("nft", "-s", "list", "ruleset"):
        words = line.split()
        chain = words[1] if words[:1] == ["chain"] else chain
        yield f"{chain}: {line.strip()}"


def _profile(uuid: str) -> list[str]:
    """Its settings; what is in force now has names in capitals."""
    return [line for line in _said("nmcli", "connection", "show", uuid) if not line.startswith(VARYING)]


def _files(folder: Path) -> list[tuple[str, str]]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(TOLD))
    return [(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in found]


def _said(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.splitlines()


def main(arguments: list[str]) -> None:
    if arguments == ["snapshot"]:
        told = snapshot()
    else:
        how, at, when = arguments[1:] or ["", "", ""]
        told = asyncio.run(one_pass(Fault(how, at, when)))
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
