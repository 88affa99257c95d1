"""What must hold between keys of cluster.toml. A rule is a function from what is sound in the file to complaints.

A rule sees every value that is right by itself, so a mistake somewhere hides no other; where it needs all nodes it
says nothing until all of them can be read.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from strixd.config.checks import plain_mac
from strixd.config.lines import Lines
from strixd.config.schema import FEWEST_NODES, MOST_NODES
from strixd.decode import KeyPath, Problem, listed, quoted, spelled

V = TypeVar("V", str, int)
CARD_KEYS = ("interface", "mac", "driver")
SPARE_KEYS = ("spare-interface", "spare-mac", "spare-driver")
MACHINE_KEYS = ("serial", "disk")


@dataclass(frozen=True, slots=True)
class Written:
    """What a rule may look at: the sound values, and where what is written stands."""

    sound: Mapping[KeyPath, object]
    lines: Lines

    @property
    def nodes(self) -> int:
        """How many there are, sound or not."""
        return sum(path[0] == "node" and len(path) == 2 and isinstance(path[1], int) for path in self.lines)

    def column(self, key: str, kind: type[V]) -> dict[KeyPath, V]:
        """The sound values that the nodes have under one key."""
        return {
            path: value
            for path, value in self.sound.items()
            if len(path) == 3 and path[0] == "node" and path[2] == key and isinstance(value, kind)
        }


def check(written: Written) -> tuple[Problem, ...]:
    """All complaints of all rules."""
    return tuple(problem for rule in _RULES for problem in rule(written))


def _enough_nodes(written: Written) -> Iterator[Problem]:
    listed_at_all = written.nodes or ("node",) in written.sound
    if listed_at_all and not FEWEST_NODES <= written.nodes <= MOST_NODES:
        words = f"a cluster has {FEWEST_NODES} to {MOST_NODES} nodes, and this file has {written.nodes}"
        yield Problem(("node",), words)


def _one_head(written: Written) -> Iterator[Problem]:
    roles = written.column("role", str)
    heads = [path[:2] for path, role in roles.items() if role == "head"]
    for extra in heads[1:]:
        name = written.sound.get((*heads[0], "name"), "")
        yield Problem((*extra, "role"), f"a second head; {spelled(heads[0])} ({name}) is the head already")
    if roles and not heads and len(roles) == written.nodes:
        yield Problem(("node",), 'no node is the head; exactly one needs role = "head"')


def _one_card(written: Written) -> Iterator[Problem]:
    for index in range(written.nodes):
        node: KeyPath = ("node", index)
        given = _given(written, node, CARD_KEYS)
        yield from _only_one(node, given, CARD_KEYS)
        if not given and (*node, CARD_KEYS[0]) in written.sound:  # its default is: so the node is a table
            yield Problem(node, f"one of {listed(CARD_KEYS)} is missing, which says which card is the fabric's")


def _given(written: Written, node: KeyPath, keys: tuple[str, ...]) -> list[str]:
    return [key for key in keys if (*node, key) in written.lines]


def _only_one(node: KeyPath, given: list[str], keys: tuple[str, ...]) -> Iterator[Problem]:
    for extra in given[1:]:
        yield Problem((*node, extra), f"{given[0]} is given too; only one of {listed(keys)} can be")


def _spares(written: Written) -> Iterator[Problem]:
    """Both ends of the second cable, or none."""
    nodes: list[KeyPath] = [("node", index) for index in range(written.nodes)]
    given = {node: _given(written, node, SPARE_KEYS) for node in nodes}
    having = [node for node in nodes if given[node]]
    for node in having:
        yield from _only_one(node, given[node], SPARE_KEYS)
        yield from _same_link(written, node)
    for node in nodes if having else ():
        if not given[node] and (*node, SPARE_KEYS[0]) in written.sound:
            words = f"{spelled(having[0])} has a spare link, and it ends here: one of {listed(SPARE_KEYS)} is missing"
            yield Problem(node, words)
    if having:
        yield from _spare_possible(written, (*having[0], given[having[0]][0]))


def _same_link(written: Written, node: KeyPath) -> Iterator[Problem]:
    """As far as the file tells; of MACs _macs_differ does."""
    for card in ("interface", "driver"):
        spare: KeyPath = (*node, f"spare-{card}")
        value = written.sound.get(spare)
        if value and value == written.sound.get((*node, card)):
            yield Problem(spare, f"{quoted(str(value))} is what {card} says; the spare is another link")


def _spare_possible(written: Written, first: KeyPath) -> Iterator[Problem]:
    """`first`: the first key of a spare in the file."""
    if written.nodes > FEWEST_NODES:
        yield Problem(first, f"a spare link joins two nodes, and this file has {written.nodes}; leave it out")
    kind = written.sound.get(("fabric", "kind"), "auto")
    if kind != "auto":
        words = f'"{kind}" is demanded of the link, also of the spare one; write kind = "auto", or leave the spare out'
        yield Problem(("fabric", "kind"), words)
    if written.sound.get(("fabric", "allow-tcp")) is False:
        words = "false forbids what the spare link is for; write allow-tcp = true, or leave the spare out"
        yield Problem(("fabric", "allow-tcp"), words)


def _names_differ(written: Written) -> Iterator[Problem]:
    return _differ(written.column("name", str), str.casefold)


def _addresses_differ(written: Written) -> Iterator[Problem]:
    return _differ(written.column("address", str), lambda address: address.partition("/")[0])


def _macs_differ(written: Written) -> Iterator[Problem]:
    columns = {**written.column("mac", str), **written.column("spare-mac", str)}
    return _differ({path: mac for path, mac in columns.items() if mac}, plain_mac)


def _machines_differ(written: Written) -> Iterator[Problem]:
    for key in MACHINE_KEYS:
        yield from _differ({path: value for path, value in written.column(key, str).items() if value}, str.casefold)


def _differ(column: Mapping[KeyPath, str], same: Callable[[str], str]) -> Iterator[Problem]:
    first: dict[str, KeyPath] = {}
    for path, value in column.items():
        earlier = first.setdefault(same(value), path)
        if earlier != path:
            yield Problem(path, f"{quoted(value)} is used twice; {spelled(earlier)} has it too")


def _one_network(written: Written) -> Iterator[Problem]:
    networks = {path: _network(address) for path, address in written.column("address", str).items()}
    first, wanted = next(iter(networks.items()), ((), None))
    for path, network in networks.items():
        if network != wanted:
            yield Problem(path, f"is in {network}, but {spelled(first[:2])} is in {wanted}; they must be in one")


def _room(written: Written) -> Iterator[Problem]:
    addresses = written.column("address", str)
    if not addresses:
        return
    path, address = next(iter(addresses.items()))
    network = _network(address)
    room = network.num_addresses - (0 if network.prefixlen == 31 else 2)
    if room < written.nodes:
        yield Problem(path, f"{network} has room for {room} nodes, and this file has {written.nodes}")


def _network(address: str) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Interface(address).network


def _not_management(written: Written) -> Iterator[Problem]:
    management = written.sound.get(("fabric", "management"), ())
    if not isinstance(management, tuple):
        return
    for path, interface in {**written.column("interface", str), **written.column(SPARE_KEYS[0], str)}.items():
        if interface in management:
            yield Problem(path, f"{interface} is a management interface (fabric.management)")


def _ports_differ(written: Written) -> Iterator[Problem]:
    holders: dict[int, KeyPath] = {}
    for path, port in _ports(written):
        other = holders.setdefault(port, path)
        if other != path:
            yield Problem(path, f"port {port} is used twice; {spelled(other)} has it too")


def _ports(written: Written) -> Iterator[tuple[KeyPath, int]]:
    """Every TCP port; the defaults first, so that the complaint is about something that somebody wrote."""
    paths: list[KeyPath] = [("cluster", "ray-port"), ("model", "port"), ("metrics", "listen")]
    for path in sorted(paths, key=lambda path: written.lines.get(path, 0)):
        port = str(written.sound.get(path, "")).rpartition(":")[2]
        if port:
            yield path, int(port)


def _rdma_possible(written: Written) -> Iterator[Problem]:
    kind, allow = written.sound.get(("fabric", "kind")), written.sound.get(("fabric", "allow-tcp"))
    if allow is False and kind in ("thunderbolt", "ethernet"):
        words = f'kind = "{kind}" carries TCP only; without TCP nothing could ever be served'
        yield Problem(("fabric", "allow-tcp"), words)


def _enough_gpus(written: Written) -> Iterator[Problem]:
    path: KeyPath = ("model", "tensor-parallel")
    wanted = written.sound.get(path)
    gpus = written.column("gpus", int)
    if not isinstance(wanted, int) or len(gpus) != written.nodes or not gpus:
        return
    if wanted > sum(gpus.values()):
        yield Problem(path, f"{wanted} is more than the {sum(gpus.values())} GPUs that the nodes have")


_RULES: tuple[Callable[[Written], Iterator[Problem]], ...] = (
    _enough_nodes,
    _one_head,
    _one_card,
    _spares,
    _names_differ,
    _addresses_differ,
    _macs_differ,
    _machines_differ,
    _one_network,
    _room,
    _not_management,
    _ports_differ,
    _rdma_possible,
    _enough_gpus,
)
