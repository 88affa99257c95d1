"""What may go wrong with a node and its cluster, by name. Most are switches: a second time they are undone, and `cease`
undoes all. What only a person can mend is in FOR_A_PERSON."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from strixd.errors import StrixdError
from strixd.resources.vllm import ONLY_WORKS
from strixd.sim.faults import WORDS
from strixd.sim.hardware import Fault as RdmaFault
from strixd.sim.vllm import STRANGER, Listener
from strixd.sim.world import FABRIC, RAY, SPARE, VLLM
from tests.sim.node import Node

Fault = Callable[[Node, str], None]
"""`str`: the name of another node, where it is about one."""
API = 8000


def _engine(node: Node, hangs: bool = False) -> None:
    if server := node.world.server():
        (server.hang if hangs else server.fail)()


def _starts(fault: str) -> Fault:
    """From now on starts end, or do not end, like that."""

    def begins(node: Node, other: str) -> None:
        node.world.serving.fault = fault

    return begins


def _switch(node: Node, other: str) -> None:
    node.world.cluster.switch(other, on=not node.world.cluster.others[other].on)


def _reboot_there(node: Node, other: str) -> None:
    node.world.cluster.switch(other, on=False)
    node.world.clock.after(20.0, lambda: node.world.cluster.switch(other, on=True))


def _service(port: str) -> Fault:
    def away(node: Node, other: str) -> None:
        node.world.calls.down ^= {port}
        node.world.changed(port)

    return away


def _no_answer(port: str) -> Fault:
    def hung(node: Node, other: str) -> None:
        node.world.calls.hung ^= {port}

    return hung


def _taken(node: Node, other: str) -> None:
    nic = node.world.network.nics[FABRIC]
    if nic.profile:
        node.world.network.deactivate(nic)


def _stranger(node: Node, other: str) -> None:
    """Comes to a port that nobody has, or goes."""
    listeners = node.world.serving.listeners
    if API in listeners and listeners[API].holder == STRANGER:
        del listeners[API]
    elif not node.world.systemd.active(VLLM):
        listeners[API] = Listener("")


def _rays_port(node: Node, other: str) -> None:
    node.world.cluster.port_taken ^= True


def _wrong_key(node: Node, other: str) -> None:
    node.world.cluster.wrong_key ^= True


def _stuck_here(node: Node, other: str) -> None:
    node.world.cluster.own.stuck ^= True


def _stuck_there(node: Node, other: str) -> None:
    node.world.cluster.others[other].stuck ^= True


def _deaf(node: Node, other: str) -> None:
    node.world.cluster.others[other].deaf ^= True


def _mute(node: Node, other: str) -> None:
    node.world.cluster.others[other].mute ^= True
    node.world.changed("records")


def _other_image(node: Node, other: str) -> None:
    record = node.world.cluster.others[other].record
    if not record.pop("digest", ""):
        record["digest"] = "sha256:another"
    node.world.changed("records")


def _full(node: Node, other: str) -> None:
    node.world.disk.full ^= True


def _rdma(kind: RdmaFault) -> Fault:
    """From now on the card is like that."""

    def becomes(node: Node, other: str) -> None:
        node.world.rdma.fault = kind
        node.world.changed("rdma")

    return becomes


def _gid_moves(node: Node, other: str) -> None:
    node.world.rdma.index += 2


def _rdma_there(node: Node, other: str) -> None:
    record = node.world.cluster.others[other].record
    if not record.pop("rdma", ""):
        record["rdma"] = "irdma0 port 1 is DOWN, Polling"
    node.world.changed("records")


FAULTS: dict[str, Fault] = {
    "kill server": lambda node, _: node.world.kill(VLLM),
    "kill engine": lambda node, _: _engine(node),
    "engine hangs": lambda node, _: _engine(node, hangs=True),
    "kill raylet": lambda node, _: node.world.kill(RAY),
    "starts crash": _starts("crash"),
    "starts stand still": _starts("silent"),
    "starts spin": _starts("spinning"),
    "starts are mute": _starts("mute"),
    "starts are good": _starts(""),
    "cable out": lambda node, _: node.world.plug(cable=False),
    "cable in": lambda node, _: node.world.plug(cable=True),
    "worker off or on": _switch,
    "worker reboots": _reboot_there,
    "worker's ranks killed": lambda node, _: WORDS["ranks lost"][1](node.world),
    "worker's ranks stay": _stuck_there,
    "worker's strixd is deaf": _deaf,
    "worker's probe is mute": _mute,
    "worker has another image": _other_image,
    "ranks stay": _stuck_here,
    "network": _service("network"),
    "firewall": _service("firewall"),
    "units": _service("units"),
    "boot entries": _service("boot"),
    "links": _service("links"),
    "network hangs": _no_answer("network"),
    "firewall hangs": _no_answer("firewall"),
    "units hang": _no_answer("units"),
    "profile": _taken,
    "fence": lambda node, _: node.world.firewalld.policies.clear(),
    "zone": lambda node, _: node.world.firewalld.bind(FABRIC, "drop"),
    "kernel": lambda node, _: node.world.install_kernel("6.19.0", "ro quiet"),
    "stranger": _stranger,
    "stranger on Ray's port": _rays_port,
    "another key": _wrong_key,
    "disk full or not": _full,
    "rdma port down": _rdma("down"),
    "rdma gids gone": _rdma("gids"),
    "no rdma": _rdma("none"),
    "iwarp": _rdma("iwarp"),
    "rdma is good": _rdma(""),
    "gid moves": _gid_moves,
    "worker has no rdma": _rdma_there,
    "hardware": _service("hardware"),
    "hardware hangs": _no_answer("hardware"),
}
SPARED: dict[str, Fault] = {
    "spare out": lambda node, _: node.world.plug(cable=False, link=SPARE),
    "spare in": lambda node, _: node.world.plug(cable=True, link=SPARE),
}
"""Where there is a spare link."""
FOR_A_PERSON: dict[str, Fault] = {"no such model": _starts("missing"), "no memory for it": _starts("memory")}
STRIXD = ("restart strixd", "killed in the middle", "reboot")
ORDERS = ("undo", "apply", "restart vllm", "restart ray")


async def inject(node: Node, word: str, other: str) -> None:
    """Orders may be refused."""
    if word == "restart strixd":
        await node.restart()
    elif word == "killed in the middle":
        node.world.kill_at(3)
        await _wait_and_start(node)
    elif word == "reboot":
        await node.reboot()
    elif word in ORDERS:
        with suppress(StrixdError):
            await _order(node, word)
    else:
        (FAULTS | SPARED | FOR_A_PERSON)[word](node, other)


async def _order(node: Node, word: str) -> None:
    assert node.engine
    by = f"uid 0: {word}"
    if word == "undo":
        await node.engine.undo(by)
    elif word == "apply":
        await node.engine.apply(by)
    else:
        await node.engine.restart("ray" if word == "restart ray" else "vllm", by)


async def _wait_and_start(node: Node) -> None:
    """It is killed within this time, or was to do nothing."""
    for _ in range(20):
        if node.dead:
            break
        await node.world.clock.sleep(1)
    node.world.calls.faults.clear()
    await node.restart()


def cease(node: Node) -> None:
    """The world allows it again. What has come to be so, strixd must mend."""
    world, cluster = node.world, node.world.cluster
    world.calls.down.clear()
    world.calls.hung.clear()
    world.disk.full = cluster.port_taken = cluster.wrong_key = cluster.own.stuck = False
    world.serving.fault = world.rdma.fault = ""
    world.serving.listeners = {port: each for port, each in world.serving.listeners.items() if each.holder != STRANGER}
    world.peers_on = ""
    for link in {FABRIC, SPARE} & set(world.network.nics):
        world.plug(cable=True, link=link)
    for name, other in cluster.others.items():
        other.stuck = other.deaf = other.mute = False
        other.record.clear()
        if not other.on:
            cluster.switch(name, on=True)
    world.changed("the faults have ceased")


def patience(node: Node) -> float:
    """Seconds within which tokens come again after an apply. A start that spins is only known by that."""
    server = node.world.server()
    spins = server is not None and server.works and not server.moves
    return 700.0 + ONLY_WORKS * spins
