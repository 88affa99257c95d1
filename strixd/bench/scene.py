"""What this node knows of itself: from the running strixd, or, where none answers, from cluster.toml."""

from __future__ import annotations

import socket as sockets
from pathlib import Path
from typing import Any

from strixd.bench.plan import Peer, Scene
from strixd.cli import client
from strixd.config import EXPECTED_AT, Config, Node, find_node, load
from strixd.errors import Refused, Unavailable
from strixd.probe.link import card


def read(socket: str) -> Scene:
    """Raises StrixdError. Without strixd nobody knows who is a member: then the other end is started by hand."""
    try:
        return of_status(status(socket))
    except Unavailable:
        config = load(Path(EXPECTED_AT))
        return of_config(config, find_node(config, sockets.gethostname(), _macs()))


def status(socket: str) -> dict[str, Any]:
    told = client.call(socket, "Status")["status"]
    assert isinstance(told, dict)
    return told


def of_status(told: dict[str, Any]) -> Scene:
    """A model that is ordered counts as served until it is drained: it may be loading."""
    own = next((member["address"] for member in told["members"] if member["name"] == told["node"]), "")
    if not own:
        raise Refused("Cannot measure: strixd does not know yet which node this is", hint="strixd-cli status")
    others = (member for member in told["members"] if member["name"] != told["node"])
    peers = tuple(Peer(each["name"], each["address"], each["joined"]) for each in others)
    served = told["model"]["name"] if told["model"] and not told["drained"] else ""
    return Scene(told["node"], own, peers, served, _driver(own))


def of_config(config: Config, node: Node) -> Scene:
    peers = tuple(Peer(each.name, str(each.ip.ip), joined=False) for each in config.nodes if each != node)
    return Scene(node.name, str(node.ip.ip), peers, driver=_driver(str(node.ip.ip)))


def _driver(address: str) -> str:
    return card.driver(card.interface(address))


def _macs() -> tuple[str, ...]:
    return tuple(path.read_text().strip() for path in (card.SYS / "class/net").glob("*/address"))
