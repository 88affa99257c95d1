"""What must never happen, whatever else does: looked at whenever a strixd in the simulation starts or stops a unit."""

from __future__ import annotations

import asyncio

from strixd.engine.supervise import DELAYS, STABLE
from strixd.sim.gate import Call
from strixd.sim.vllm import OWN
from strixd.sim.world import RAY, VLLM
from tests.sim.node import Node

BELOW = {RAY: ("network", "firewall", "image"), VLLM: ("network", "firewall", "image", "ray")}


class Watched(list[Call]):
    """The list of a world's writing calls. `broken`: the laws that were, in words."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._rows: dict[str, tuple[object, list[float]]] = {}
        self.broken: list[str] = []

    def append(self, call: Call) -> None:
        super().append(call)
        if call.method in ("start", "stop") and call.args[0] in BELOW:
            self._judge(call.method, str(call.args[0]))

    def _judge(self, method: str, unit: str) -> None:
        wrong = [*self._below(unit)]
        if method == "start":
            wrong += [*self._pace(unit), *(self._beside() if unit == VLLM else ())]
        self.broken += [f"{method} {unit}: {each}" for each in wrong]

    def _below(self, unit: str) -> list[str]:
        """Nothing is started or stopped while something it stands on is not ok, as the pass itself has seen it."""
        views = self._node.loop._views if self._node.loop else {}
        return [
            f"{name} is {views[name].condition if name in views else 'unknown'}"
            for name in BELOW[unit]
            if name not in views or views[name].condition != "ok"
        ]

    def _beside(self) -> list[str]:
        """Never two servers: of the one before nothing is left, on any node."""
        world = self._node.world
        ranks = [node.name for node in world.cluster.nodes if node.ranks]
        there = [f"ranks on {', '.join(ranks)}"] if ranks else []
        if world.systemd.active(VLLM) or any(each.holder == OWN for each in world.serving.listeners.values()):
            there.append("a server is there")
        return there

    def _pace(self, unit: str) -> list[str]:
        """In a row of starts that stable service cannot have come between, each waits longer than the one before;
        whoever gives an order, starts strixd again or sets the clock begins another row."""
        loop, now = self._node.loop, asyncio.get_running_loop().time()
        assert loop
        occasion = (id(loop), loop.wish.orders, self._node.world.clock._epoch)
        before, row = self._rows.get(unit, (None, []))
        if before != occasion or not row or now - row[-1] >= STABLE:
            row = []
        self._rows[unit] = occasion, [*row, now]
        gap, least = (now - row[-1], DELAYS[min(len(row), len(DELAYS)) - 1]) if row else (0.0, 0.0)
        return [f"number {len(row) + 1} in a row, {gap:.1f} s after the last"] if gap < least - 0.01 else []


def watched(node: Node) -> Watched:
    """From now on."""
    before = node.world.calls.writes
    node.world.calls.writes = now = Watched(node)
    now.extend(before)
    return now
