"""The effective settings: for people with where each came from, and as one hash for the other nodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from strixd.config.lines import Lines
from strixd.config.loading import ConfigFile
from strixd.config.rules import CARD_KEYS, MACHINE_KEYS, SPARE_KEYS
from strixd.config.schema import Config
from strixd.decode import KeyPath, leaves, spelled

_TENSOR_PARALLEL: KeyPath = ("model", "tensor-parallel")


@dataclass(frozen=True, slots=True)
class Setting:
    """One effective value; `origin` is "cluster.toml:12" or "default", and what it was derived from."""

    path: KeyPath
    value: object
    origin: str

    @property
    def key(self) -> str:
        return spelled(self.path)

    @property
    def toml(self) -> str:
        """The line of the file that asks for this."""
        return f"{self.path[-1]} = {_toml(self.value)}"


def settings(file: ConfigFile) -> tuple[Setting, ...]:
    """Every key with its effective value, in the order of the schema but the nodes last."""
    found = [_setting(file, path, value) for path, value in leaves(file.config) if not _absent(path, value)]
    return tuple(sorted(found, key=lambda setting: setting.path[0] == "node"))


def render(found: tuple[Setting, ...]) -> str:
    """The settings as a cluster.toml with the origin of each behind it."""
    width = max((len(setting.toml) for setting in found if len(setting.toml) <= 60), default=0)
    return "\n".join(_text_lines(found, width)).lstrip("\n") + "\n"


def settings_hash(config: Config) -> str:
    """A hash (SHA-256, hexadecimal) of what all nodes must agree on: what is common to the ranks of one model, and
    who belongs. Not what each host may do by itself, so that a change there stops nobody."""
    agreed = {
        "cluster": config.cluster.name,
        "ray-port": config.cluster.ray_port,
        "nodes": sorted([node.name, node.role, str(node.ip), node.gpus] for node in config.nodes),
        "image": config.image.reference,
        "environment": dict(config.image.environment),
        "eager": config.model.eager,
        "tensor-parallel": config.tensor_parallel,
        "port": config.model.port,
        "arguments": config.model.arguments,
    }
    return hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()


def _absent(path: KeyPath, value: object) -> bool:
    """What tells a node's cards and machine and is not given; an empty one could not be pasted back."""
    return path[0] == "node" and path[-1] in (*CARD_KEYS, *SPARE_KEYS, *MACHINE_KEYS) and not value


def _setting(file: ConfigFile, path: KeyPath, value: object) -> Setting:
    origin = _origin(file.path, file.lines, path)
    if path == _TENSOR_PARALLEL and not value:
        return Setting(path, file.config.tensor_parallel, f"{origin}: 0, the number of nodes")
    return Setting(path, value, origin)


def _origin(name: str, lines: Lines, path: KeyPath) -> str:
    return f"{PurePath(name).name}:{lines[path]}" if path in lines else "default"


def _text_lines(found: tuple[Setting, ...], width: int) -> Iterator[str]:
    table: KeyPath = ()
    for setting in found:
        if setting.path[:-1] != table:
            table = setting.path[:-1]
            yield ""
            yield f"[[{table[0]}]]" if table[0] == "node" else f"[{table[0]}]"
        yield f"{setting.toml:<{width}}  # {setting.origin}"


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{name} = {_toml(item)}" for name, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)  # strings without control characters, integers and booleans
