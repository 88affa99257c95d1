"""What strixd would do with cluster.toml as it is now. Only looks: what the watchers ask goes on as it was, although
another file may name another port to ask, or another size to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from strixd.engine import views
from strixd.engine.status import PlanView
from strixd.engine.wish import Wish
from strixd.errors import StrixdError
from strixd.plan import Resource
from strixd.ports import Answer, Crossing, Host, Served, Way
from strixd.resources import vllm


@dataclass(frozen=True, slots=True)
class Heard:
    """Stands for ports.Model: what is known of the server that runs, whichever is asked about."""

    answer: Answer

    async def look(self, served: Served | None) -> Answer:
        return self.answer if served else Answer()


class Untried:
    """Stands for ports.Crossings: of another way nothing is known yet."""

    async def look(self, way: Way | None) -> tuple[Crossing, ...]:
        return tuple(map(Crossing, way.peers)) if way else ()


async def preview(host: Host, wish: Wish, seen: Mapping[str, object]) -> tuple[PlanView, ...]:
    """`wish`: what is in force; `seen`: the last observations. Raises ConfigError."""
    server = seen.get(vllm.Vllm.name)
    heard = Heard(server.answer if isinstance(server, vllm.Observed) else Answer())
    aside = replace(host, model=heard, crossings=Untried())
    now = {resource.name: desired for resource, desired in wish.wanted()}
    then = replace(wish, file=wish.read()).wanted()
    return tuple([await _look(host if now.get(one.name) == desired else aside, one, desired) for one, desired in then])


async def _look(host: Host, resource: Resource[Any, Any], desired: object) -> PlanView:
    try:
        plan = resource.plan(desired, await resource.observe(host, desired))
    except StrixdError as failure:
        return PlanView(resource.name, (), "blocked", str(failure))
    return PlanView(resource.name, views.steps(plan), plan.condition, plan.why)
