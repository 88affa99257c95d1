"""The cluster.toml of the tests that need no more than some nodes which are alike."""

from __future__ import annotations

_NODE = """\
[[node]]
name = "halo{number}"
role = "{role}"
address = "192.168.100.{number}/{prefix}"
{card}
"""


def cluster_file(
    more: str = "",
    *,
    count: int = 2,
    name: str = "halo",
    prefix: int = 30,
    card: str = 'interface = "enp194s0np0"',
) -> str:
    """halo1, the head, and its workers. `more`: what else [cluster] says, and further sections; `card`: the
    line that names the fabric's, with {number} for the node's."""
    roles = ("head", *["worker"] * (count - 1))
    nodes = (
        _NODE.format(number=number, role=role, prefix=prefix, card=card.format(number=number))
        for number, role in enumerate(roles, 1)
    )
    return f'[cluster]\nname = "{name}"\n{more}\n{"".join(nodes)}'
