"""ports.Ray over the simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping

from strixd.ports import RayReport
from strixd.sim.gate import Gate
from strixd.sim.ray import Cluster


class SimRay:
    """ports.Ray. What was published is said again to every new probe."""

    def __init__(self, cluster: Cluster, gate: Gate) -> None:
        self._cluster = cluster
        self._gate = gate
        self._record: dict[str, str] = {}

    async def report(self) -> RayReport | None:
        async with self._gate.read("ray", "report"):
            if not self._cluster.probe:
                return None
            if not self._cluster.kept:
                self._cluster.kept = dict(self._record)
                self._cluster.heed()
            return self._cluster.report()

    async def publish(self, record: Mapping[str, str]) -> None:
        async with self._gate.write("ray", "publish", dict(record)):
            self._record = dict(record)
            if self._cluster.probe:
                self._cluster.kept = dict(record)
                self._cluster.heed()

    async def published(self) -> Mapping[str, str]:
        async with self._gate.read("ray", "published"):
            return dict(self._record)
