"""What an installation will do, in words: for each node what it gets and what is erased. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from strixd import kernelpolicy
from strixd.config import ConfigFile, Node
from strixd.decode import listed

_LARGEST = (
    "the largest internal disk of the machine, never the medium nor anything on USB, SD or Thunderbolt; when a second "
    "one has nine tenths of its size or more, the installation stops and names both"
)
_MIRRORS = (
    "the medium where they are on it, and whatever else there is, with Fedora's updates, from its mirrors: that needs "
    "the internet, unless build says that all is on the medium, which then knows no updates"
)
AGAIN: Final = (
    "when it is installed the machine starts again, from its disk, which is then first in UEFI's order; a firmware "
    "that prefers the stick all the same erases the disk and installs again, for ever: take the stick out"
)
_WIDTH = 100


def explain(file: ConfigFile, nodes: Sequence[Node]) -> str:
    """Lines for people."""
    common = "\n".join(_wrapped("- ", line) for line in _common(file))
    return "\n\n".join((*(_node(node) for node in nodes), f"On every node:\n{common}")) + "\n"


def _wrapped(begin: str, text: str) -> str:
    """In lines of a width that people read, the later ones indented."""
    later = " " * (len(begin) + 2)
    lines = textwrap.wrap(text, _WIDTH - len(later), break_on_hyphens=False, break_long_words=False)
    return f"  {begin}" + f"\n{later}".join(lines)


def _node(node: Node) -> str:
    lines = (
        f"{node.name} ({node.role})",
        _wrapped("machine   ", _machine(node)),
        _wrapped("erased    ", _disk(node)),
        _wrapped("fabric    ", f"{node.address} on {_card(node)}"),
    )
    return "\n".join(lines)


def _machine(node: Node) -> str:
    ways = [f"a card with MAC {node.mac}"] if node.mac else []
    ways += [f'the serial number "{node.serial}"'] if node.serial else []
    if not ways:
        return "whichever this node's own kickstart is given to: neither mac nor serial says which"
    return f"the one with {listed(ways)}; any other stops, with its MACs and serial number on the screen"


def _disk(node: Node) -> str:
    if node.disk:
        return f"{node.disk}; a machine without it stops"
    return _LARGEST


def _card(node: Node) -> str:
    if node.interface:
        return f"the interface {node.interface}"
    return f"the card with MAC {node.mac}" if node.mac else f"the card of driver {node.driver}"


def _common(file: ConfigFile) -> Iterator[str]:
    install, config = file.config.install, file.config
    yield "no other disk is written to: neither partitioned nor formatted"
    yield f"Fedora's packages from {install.repository or _MIRRORS}"
    yield f"kernel arguments: {' '.join(kernelpolicy.arguments(config.kernel.policy)) or 'none'}"
    keys = listed([_short(key) for key in install.ssh_keys] or ["nobody: install.ssh-keys is empty"], "and")
    yield f"log-in as root by SSH, without any password: {keys}"
    yield f"time zone {install.time_zone}, keyboard {install.keyboard}; other wired cards ask for an address (DHCP)"
    yield f"strixd, started at boot, with {file.path}; it sets up the link and the firewall"
    yield AGAIN
    yield f"the image {config.image.reference}, from the medium where it is on it"


def _short(key: str) -> str:
    kind, body, *comment = key.split(" ", 2)
    return comment[0] if comment else f"{kind} …{body[-8:]}"
