"""init: the first cluster.toml, from options, and from questions where somebody sits at a terminal."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from strixd.cli.cards import Card, cards, fitting
from strixd.cli.parse import Asked
from strixd.cli.terminal import put, say
from strixd.cli.whole import create, explained
from strixd.config import EXPECTED_AT, parse
from strixd.config.schema import FEWEST_NODES
from strixd.decode import quoted
from strixd.errors import Refused

NETWORK = "192.168.100.0"
_HEAD = """\
# Written by strixd-cli init; the same file on every node. Every other key has a default: see cluster.toml(5).

[cluster]
name = {cluster}
"""
_NODE = """
[[node]]
name = {name}
role = "{role}"
address = "{address}"
{card}
"""
Ask = Callable[[str, str], str]
"""(question, what an empty answer means): the answer."""


@dataclass(frozen=True, slots=True)
class Answers:
    cluster: str
    nodes: tuple[str, ...]
    card: Card
    alone: bool
    """No other card here has its driver: then the driver finds the card on every node."""
    network: ipaddress.IPv4Network


def init(asked: Asked) -> int:
    path = Path(asked.given.get("--file", EXPECTED_AT))
    found = cards()
    text = compose(answers(asked, found, _typed if sys.stdin.isatty() else _nobody))
    parse(text, "what you said")
    with explained(path, "strixd-cli init"):
        create(path, text, mode=0o644, taken="strixd-cli config check looks at it; --file writes to another place")
    say(f"{path} is written:\n\n{text}")
    if _host_name() not in text:
        say(f"This host is called {_host_name()}, and no node is: on this one strixd will not start.")
    say("Then: strixd-cli key new; copy cluster.toml and cluster.key to the same place on every other node;")
    say("and on every node: systemctl enable --now strixd")
    return 0


def answers(asked: Asked, found: tuple[Card, ...], ask: Ask, host: str = "") -> Answers:
    """Raises Refused where an answer is missing or makes no sense."""
    cluster = asked.given.get("--cluster") or ask("Name of the cluster", "halo")
    names = asked.given.get("--nodes") or ask("Host names of all nodes, the head first", host or _host_name())
    nodes = tuple(names.replace(",", " ").split())
    if len(nodes) < FEWEST_NODES:
        problem = f"init: a cluster has {FEWEST_NODES} nodes at least, and {len(nodes)} is named"
        raise Refused(problem, hint="for example: strixd-cli init --nodes halo1,halo2")
    card = _card(asked.given.get("--card", ""), found, ask)
    network = asked.given.get("--network") or ask("Network of the link", str(_smallest(len(nodes))))
    alone = bool(card.driver) and sum(each.driver == card.driver for each in found) == 1
    return Answers(cluster, nodes, card, alone, _network(network, len(nodes)))


def compose(said: Answers) -> str:
    key, value = ("driver", said.card.driver) if said.alone else ("interface", said.card.interface)
    text = _HEAD.format(cluster=_toml(said.cluster))
    for name, address in zip(said.nodes, said.network.hosts(), strict=False):
        role = "head" if name == said.nodes[0] else "worker"
        whole = f"{address}/{said.network.prefixlen}"
        text += _NODE.format(name=_toml(name), role=role, address=whole, card=f"{key} = {_toml(value)}")
    return text


def _card(wanted: str, found: tuple[Card, ...], ask: Ask) -> Card:
    likely = fitting(found)
    if not wanted and likely is None:
        for card in found:
            say(f"  {card}")
    wanted = wanted or ask("Interface of the link between the nodes", likely.interface if likely else "")
    named = [card for card in found if card.interface == wanted]
    if named:
        return named[0]
    there = "; ".join(map(str, found)) or "none"
    problem = f'there is no card "{wanted}" here' if wanted else "it is not clear which card is the link's"
    raise Refused(f"init: {problem}. There are: {there}", hint="strixd-cli init --card INTERFACE")


def _smallest(nodes: int) -> ipaddress.IPv4Network:
    """With an address for each node, and two that name the network and all of it."""
    return ipaddress.IPv4Network((NETWORK, 32 - max(2, (nodes + 1).bit_length())))


def _network(text: str, nodes: int) -> ipaddress.IPv4Network:
    try:
        network = ipaddress.IPv4Network(text if "/" in text else f"{text}/{_smallest(nodes).prefixlen}")
    except ValueError as error:
        raise Refused(
            f"init: {quoted(text)} is no network: {error}", hint=f"for example: --network {NETWORK}/30"
        ) from None
    if network.num_addresses - 2 < nodes:
        raise Refused(f"init: {network} has no room for {nodes} nodes", hint=f"for example: {_smallest(nodes)}")
    return network


def _typed(question: str, otherwise: str) -> str:
    put(f"{question}{f' [{otherwise}]' if otherwise else ''}: ")
    try:
        return input().strip() or otherwise
    except (EOFError, UnicodeDecodeError):
        return otherwise


def _nobody(_question: str, otherwise: str) -> str:
    return otherwise


def _host_name() -> str:
    return Path("/proc/sys/kernel/hostname").read_text().strip()


def _toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
