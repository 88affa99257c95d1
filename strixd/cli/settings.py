"""config check and config show: cluster.toml, without a daemon."""

from __future__ import annotations

from pathlib import Path

from strixd.cli.parse import Asked
from strixd.cli.terminal import say
from strixd.config import EXPECTED_AT, read, render, settings


def check(asked: Asked) -> int:
    file = read(_path(asked))
    nodes = file.config.nodes
    head = next(node for node in nodes if node.role == "head")
    say(f"{file.path} is good: cluster {file.config.cluster.name}, {len(nodes)} nodes, head {head.name}")
    return 0


def show(asked: Asked) -> int:
    say(render(settings(read(_path(asked)))).rstrip("\n"))
    return 0


def _path(asked: Asked) -> Path:
    return Path(asked.words.get("FILE", EXPECTED_AT))
