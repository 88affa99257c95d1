"""What is measured, and what is refused. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from strixd.errors import Refused

THUNDERBOLT = "thunderbolt-net"  # the driver
TCP = ("ping", "stream")
RDMA = ("ib_write_lat", "ib_send_lat", "ib_write_bw")
ROUNDS = 5000  # of the ping-pong
STREAM = 5.0  # seconds of bandwidth by TCP
SECONDS = 420.0  # for all measurements with one peer: three programs of 30 s, and a person who starts the other end


@dataclass(frozen=True, slots=True)
class Peer:
    """`joined`: a member of the Ray cluster now."""

    name: str
    address: str
    joined: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """What is known of this node. `model`: the one that is served from here, "" for none; `driver`: of the fabric's
    interface, "" when nothing has the address or it has no device."""

    node: str
    address: str
    peers: tuple[Peer, ...]
    model: str = ""
    driver: str = ""

    @property
    def tcp(self) -> str:
        """What TCP over this link is called."""
        return "thunderbolt" if self.driver == THUNDERBOLT else "tcp"


@dataclass(frozen=True, slots=True)
class Wanted:
    """`rung` "" stands for all."""

    rung: str = ""
    force: bool = False


def jobs(scene: Scene, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """One for each peer, as strixd/probe/link wants it. Raises Refused."""
    refuse(scene, wanted)
    measure = (*(TCP if wanted.rung != "rdma" else ()), *(RDMA if wanted.rung in ("", "rdma") else ()))
    for peer in scene.peers:
        yield {
            "node": scene.node,
            "address": scene.address,
            "peer": {"name": peer.name, "address": peer.address},
            "ray": peer.joined,
            "measure": list(measure),
            "rounds": ROUNDS,
            "stream": STREAM,
            "force": wanted.force,
            "seconds": SECONDS,
        }


def refuse(scene: Scene, wanted: Wanted) -> None:
    if not scene.peers:
        raise Refused("Cannot measure the link: cluster.toml names no other node")
    if wanted.rung == "thunderbolt" and scene.tcp != "thunderbolt":
        driver = f"driver {scene.driver}" if scene.driver else "no driver known"
        hint = "strixd-cli bench link measures what is there"
        raise Refused(f"Cannot measure Thunderbolt: {scene.address} is on another link ({driver})", hint=hint)
    if scene.model and not wanted.force:
        words = f"Cannot measure the link while {scene.model} is served: both would be slower"
        raise Refused(words, hint="strixd-cli drain, measure, strixd-cli undrain; or strixd-cli bench link --force")
