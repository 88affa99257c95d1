"""cluster.toml → the text of a kickstart, for one node or for all of them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from strixd import __version__, kernelpolicy
from strixd.config import ConfigFile, Node
from strixd.config.lines import line_of
from strixd.decode import KeyPath, Problem, listed, quoted
from strixd.errors import ConfigError, Refused
from strixd.media.templates import Templates, fill


def chosen(file: ConfigFile, name: str | None) -> tuple[Node, ...]:
    """The node of this name, or all for None."""
    if name is None:
        return file.config.nodes
    found = tuple(node for node in file.config.nodes if node.name.casefold() == name.casefold())
    if not found:
        names = listed((node.name for node in file.config.nodes), "and")
        raise Refused(f'there is no node "{name}" in {file.path}', hint=f"it has {names}")
    return found


def kickstart(file: ConfigFile, nodes: Sequence[Node], templates: Templates) -> str:
    """One file for these nodes. Raises ConfigError when cluster.toml lacks what an installation needs."""
    complaints = sorted((*_lacking(file, nodes), *_unquotable(file)))
    if complaints:
        raise ConfigError(tuple(f"{file.path}:{line}: {words}" for line, words in complaints))
    install = file.config.install
    values = {
        "WHO": _who(file, nodes),
        "VERSION": __version__,
        "KEYBOARD": install.keyboard,
        "TIME_ZONE": install.time_zone,
        "SSH_KEYS": "\n".join(f'sshkey --username=root "{key}"' for key in install.ssh_keys),
        "KERNEL_ARGUMENTS": " ".join(kernelpolicy.arguments(file.config.kernel.policy)),
        "REPOSITORY": shlex.quote(install.repository),
        "NODES": "\n".join(map(row, nodes)),
        "MODELS": shlex.quote(file.config.model.folder),
        "CLUSTER_TOML": file.text.rstrip("\n"),
    }
    scripts = {name: fill(getattr(templates, name.lower()), values) for name in ("PICK", "BRING", "SETTLE")}
    return fill(templates.cluster, values | scripts)


def row(node: Node) -> str:
    """As pick.sh reads it: NAME|MAC|SERIAL|DISK|CARD|ADDRESS|NETMASK. None of these can hold a bar or a quote."""
    card = next(f"{key}:{value}" for key in ("interface", "mac", "driver") if (value := getattr(node, key)))
    network = node.ip
    return "|".join((node.name, node.mac, node.serial, node.disk, card, str(network.ip), str(network.netmask)))


def _who(file: ConfigFile, nodes: Sequence[Node]) -> str:
    names = listed((node.name for node in nodes), "and")
    return f"Installs {names} of cluster {file.config.cluster.name}, each on the machine that cluster.toml tells."


def _lacking(file: ConfigFile, nodes: Sequence[Node]) -> Iterator[tuple[int, str]]:
    """Lines and words of complaints."""
    if not file.config.install.ssh_keys:
        words = "nobody could log in to an installed node; the line of ~/.ssh/id_ed25519.pub is meant"
        yield _complaint(file, ("install", "ssh-keys"), words)
    for node in nodes if len(nodes) > 1 else ():
        if not node.mac and not node.serial:
            words = f"neither mac nor serial says which machine is {node.name}; or render for it alone"
            yield _complaint(file, ("node", file.config.nodes.index(node)), words)


def _unquotable(file: ConfigFile) -> Iterator[tuple[int, str]]:
    """Lines of cluster.toml that would end the script which holds its copy (a string may be continued with one)."""
    for number, line in enumerate(file.text.splitlines(), 1):
        if line.startswith("%"):
            yield number, f"a kickstart cannot hold a line that begins so: {quoted(line)}"


def _complaint(file: ConfigFile, path: KeyPath, words: str) -> tuple[int, str]:
    return line_of(file.lines, path), str(Problem(path, words))
