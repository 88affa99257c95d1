"""What the file and the orders ask of this node, and the resources in the order in which they are tended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from strixd.config import Config, Node
from strixd.desired import derive
from strixd.orders import Orders
from strixd.plan import Condition, Resource
from strixd.resources.cmdline import Cmdline
from strixd.resources.dscp import Dscp
from strixd.resources.fabric import FabricLink
from strixd.resources.firewall import Firewall
from strixd.resources.image import Image
from strixd.resources.memory import Memory
from strixd.resources.network import Network
from strixd.resources.ray import Ray
from strixd.resources.vllm import Vllm

RESOURCES: tuple[Resource[Any, Any], ...] = (
    Cmdline(),
    Firewall(),
    Network(),
    Dscp(),
    FabricLink(),
    Memory(),
    Image(),
    Ray(),
    Vllm(),
)
"""The firewall comes before the link: a profile that names a zone of ours needs the zone to be there.
The memory limit comes before what it limits."""


@dataclass(frozen=True, slots=True)
class File:
    """cluster.toml as read: what it says, which node of it this host is, and its text (for the last good copy)."""

    config: Config
    node: Node
    text: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """`read` reads cluster.toml now and raises ConfigError. `problem`: why the file in force is not the present one.
    As the last pass saw it, `card`: which one the profile of the fabric link is bound to; `apart`: since when Ray has
    not had all its members, 0 while it has."""

    file: File
    orders: Orders
    read: Callable[[], File]
    problem: str = ""
    card: str = ""
    apart: float = 0.0

    def wanted(self) -> tuple[tuple[Resource[Any, Any], Any], ...]:
        """Each resource that this node has, with what it must be."""
        desired = derive(self.file.config, self.file.node, self.orders, self.card, self.apart)
        pairs = ((resource, getattr(desired, resource.name)) for resource in RESOURCES)
        return tuple((resource, one) for resource, one in pairs if one is not None)

    def after(self, ray: Condition, now: float) -> Wish:
        """A pass that has found Ray in this condition: the next one knows since when the cluster is not together."""
        together = ray == "ok"
        return replace(self, apart=0.0 if together else now) if together == bool(self.apart) else self

    def served(self) -> str:
        """A hash of what shall be served: it changes when, and only when, a person wants another answer, or none."""
        return _hash(f"{self.orders.served} {self.orders.arguments}")

    def fits(self) -> str:
        """A hash of what decides how much memory the model takes here, served or drained."""
        return _hash(f"{self.file.config!r} {self.file.node.name} {self.orders.model} {self.orders.arguments}")

    def basis(self) -> str:
        """A hash that changes when, and only when, a person has strixd do something: what it then does is no fault. A
        pause does nothing."""
        return _hash(
            f"{self.file.config!r} {self.file.node.name} {replace(self.orders, at=0.0, applied=0.0, paused=False)!r}"
        )


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
