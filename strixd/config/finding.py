"""A node finds itself in the file, which is the same on all of them: by host name, or by the MAC of its card."""

from __future__ import annotations

from collections.abc import Callable, Collection

from strixd.config.checks import plain_mac
from strixd.config.schema import Config, Node
from strixd.decode import listed
from strixd.errors import CardAway, ConfigError


def find_node(config: Config, hostname: str, macs: Collection[str]) -> Node:
    """The node whose name is this host's or whose `mac` is one of its cards. Raises ConfigError unless exactly one is,
    CardAway where a card that comes later may yet tell.
    The same name in full counts first; after it, one that only lacks or has the domain."""
    cards = {plain_mac(mac) for mac in macs if mac}
    named = _named(config, hostname)
    found = [node for node in config.nodes if node in named or node.mac in cards]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError((f"node: {_ambiguous(found, hostname)}",))
    kind = CardAway if any(node.mac for node in config.nodes) else ConfigError
    raise kind((f"node: {_unknown(config, hostname, cards)}",))


def _named(config: Config, hostname: str) -> list[Node]:
    return _where(config, hostname, _same) or _where(config, hostname, _same_but_for_domain)


def _where(config: Config, hostname: str, alike: Callable[[str, str], bool]) -> list[Node]:
    wanted = _plain(hostname)
    return [node for node in config.nodes if alike(_plain(node.name), wanted)]


def _same(one: str, other: str) -> bool:
    return one == other


def _same_but_for_domain(one: str, other: str) -> bool:
    """halo1 and halo1.lan, but not halo1.lan and halo1.example."""
    one_of_them_is_short = "." not in one or "." not in other
    return one_of_them_is_short and one.partition(".")[0] == other.partition(".")[0]


def _plain(name: str) -> str:
    return name.casefold().rstrip(".")


def _unknown(config: Config, hostname: str, cards: Collection[str]) -> str:
    names = [f"{node.name} ({node.mac})" if node.mac else node.name for node in config.nodes]
    wanted = sorted(node.mac for node in config.nodes if node.mac)
    seen = ", ".join(sorted(cards)) or "none was seen"
    tried = f", and of its cards ({seen}) none is {listed(wanted)}" if wanted else ""
    return (
        f'cannot find this host in the file: its name is "{hostname}"{tried}; the file has {listed(names, "and")}. '
        f"Set the host name (hostnamectl hostname NAME), or name or mac in the file"
    )


def _ambiguous(found: list[Node], hostname: str) -> str:
    why = [f"{node.name} ({node.mac})" if node.mac else node.name for node in found]
    return (
        f'cannot tell which node this host is: its name "{hostname}" and its cards match {listed(why, "and")}. '
        f"Give the nodes full names, or correct mac"
    )
