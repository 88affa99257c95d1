"""Faults by hand, for `python3 -m strixd --simulate`: one line per fault on the unix socket PATH.faults.

    $ echo "kill vllm" | nc -UN /tmp/strixd.sock.faults
    ok

`help` lists the words (WORDS below).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from strixd.sim.hardware import Fault as RdmaFault
from strixd.sim.hotplug import spared
from strixd.sim.vllm import STRANGER, Listener
from strixd.sim.world import RAY, SPARE, VLLM, World

Action = Callable[[World], None]


def _others(world: World, *, on: bool) -> None:
    for name in world.cluster.others:
        world.cluster.switch(name, on=on)


def _engine(world: World) -> None:
    if server := world.server():
        server.fail()


def _hang(world: World) -> None:
    if server := world.server():
        server.hang()


def _orphan(world: World) -> None:
    """One that serves ends for it."""
    world.cluster.orphan()
    if (server := world.server()) and server.listens:
        server.fail()


def _stuck(world: World, *, stuck: bool) -> None:
    for node in world.cluster.others.values():
        node.stuck = stuck


def _full(world: World, *, full: bool) -> None:
    world.disk.full = full


def _spare(world: World, *, there: bool) -> None:
    """It comes when it is first plugged in."""
    if SPARE in world.network.nics:
        world.plug(cable=there, link=SPARE)
    elif there:
        spared(world)


def _narrow(world: World, size: int) -> None:
    world.wire.there = size


def _service(world: World, port: str, *, down: bool) -> None:
    (world.calls.down.add if down else world.calls.down.discard)(port)
    world.changed(port)


def _ending(world: World, fault: str) -> None:
    world.serving.fault = fault


def _port(world: World, *, taken: bool) -> None:
    listeners = world.serving.listeners
    if taken:
        listeners.setdefault(8000, Listener(""))
    elif 8000 in listeners and listeners[8000].holder == STRANGER:
        del listeners[8000]


def _rdma(world: World, fault: RdmaFault) -> None:
    world.rdma.fault = fault
    world.changed("rdma")


WORDS: Mapping[str, tuple[str, Action]] = {
    "kill vllm": ("SIGKILL to the model server", lambda world: world.kill(VLLM)),
    "kill engine": ("SIGKILL to vLLM's engine: 500, then exit status 0", _engine),
    "kill ray": ("SIGKILL to this node's raylet", lambda world: world.kill(RAY)),
    "hang": ("the engine hangs: the port is open, no completion comes", _hang),
    "cable out": ("pull the fabric cable", lambda world: world.plug(cable=False)),
    "cable in": ("plug it in again", lambda world: world.plug(cable=True)),
    "spare in": ("plug in the cable of the spare link, by Thunderbolt", partial(_spare, there=True)),
    "spare out": ("pull it", partial(_spare, there=False)),
    "jumbo off": ("a device in the path drops large packets from this node", partial(_narrow, size=1500)),
    "jumbo on": ("large packets cross again (then: strixd-cli apply)", partial(_narrow, size=65535)),
    "rdma down": ("the RDMA port of the card is down, its link is not", partial(_rdma, fault="down")),
    "rdma gids": ("the card's GIDs are gone", partial(_rdma, fault="gids")),
    "rdma none": ("there is no RDMA device", partial(_rdma, fault="none")),
    "rdma iwarp": ("the card is in iWARP mode", partial(_rdma, fault="iwarp")),
    "rdma flaps": ("the link is lost again and again", partial(_rdma, fault="flaps")),
    "rdma good": ("the card's RDMA is well", partial(_rdma, fault="")),
    "worker off": ("the other nodes lose power", partial(_others, on=False)),
    "worker on": ("the other nodes come back", partial(_others, on=True)),
    "ranks lost": ("SIGKILL to the ranks on the other nodes; a server that starts goes on", _orphan),
    "ranks stay": ("ranks on the other nodes end only with their Ray", partial(_stuck, stuck=True)),
    "ranks go": ("they end with their engine again", partial(_stuck, stuck=False)),
    "disk full": ("no file can be written", partial(_full, full=True)),
    "disk free": ("files can be written again", partial(_full, full=False)),
    "port taken": ("a stranger listens on port 8000, unless the model does", partial(_port, taken=True)),
    "port free": ("it has gone", partial(_port, taken=False)),
    "network down": ("NetworkManager is away", partial(_service, port="network", down=True)),
    "network up": ("NetworkManager is back", partial(_service, port="network", down=False)),
    "network restart": (
        "NetworkManager is restarted, and forgets its checkpoints",
        lambda world: world.network.restart(),
    ),
    "firewall down": ("firewalld is away", partial(_service, port="firewall", down=True)),
    "firewall up": ("firewalld is back", partial(_service, port="firewall", down=False)),
    "firewall failed": ("firewalld ends, and nobody stopped it", lambda world: world.firewalld.fail()),
    "model missing": ("from now on the model does not exist", partial(_ending, fault="missing")),
    "model memory": ("from now on it lacks memory for its cache", partial(_ending, fault="memory")),
    "model crash": ("from now on every start crashes after 15 s", partial(_ending, fault="crash")),
    "model good": ("from now on starts succeed", partial(_ending, fault="")),
}


def inject(world: World, line: str) -> str:
    """Does what the line says and answers "ok", or what may be said."""
    words = " ".join(line.split())
    if words in WORDS:
        WORDS[words][1](world)
        return "ok\n"
    known = "".join(f"  {word:14} {meaning}\n" for word, (meaning, _) in WORDS.items())
    return ("" if words == "help" else f"unknown: {words}\n") + known


async def _serve(world: World, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(inject(world, line.decode(errors="replace")).encode())
        await writer.drain()
    writer.close()


@asynccontextmanager
async def listening(world: World, listener: socket.socket) -> AsyncIterator[None]:
    """Takes over a bound socket and makes it root's or its owner's alone, for as long as the context lasts."""
    path = listener.getsockname()
    _restrict(path)
    server = await asyncio.start_unix_server(partial(_serve, world), sock=listener)
    try:
        yield
    finally:
        server.close()
        _remove(path)


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def _restrict(path: str) -> None:
    Path(path).chmod(0o600)
