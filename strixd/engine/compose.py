"""The status as one value, from what the last pass saw. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from strixd import __version__
from strixd.desired import api_url
from strixd.engine.phase import phase
from strixd.engine.status import ChangeView, Incident, MemberView, ModelView, ResourceView, Status
from strixd.engine.wish import Wish
from strixd.ports import Member
from strixd.resources import ray, vllm


@dataclass(frozen=True, slots=True)
class Told:
    """What the loop knows. `seen`: the last observation of each resource; `wanted`: what it was to be then."""

    views: Mapping[str, ResourceView]
    seen: Mapping[str, object]
    wanted: Mapping[str, object]
    incident: Incident | None
    usual: float
    change: ChangeView | None
    passes: int
    since: float
    at: float


def status(wish: Wish, told: Told) -> Status:
    config, node = wish.file.config, wish.file.node
    return Status(
        version=__version__,
        node=node.name,
        role=node.role,
        cluster=config.cluster.name,
        head=config.head.name,
        head_address=str(config.head.ip.ip),
        phase=phase(told.views, paused=wish.orders.paused, drained=wish.orders.drained, problem=wish.problem),
        since=told.since,
        at=told.at,
        passes=told.passes,
        ordered=wish.orders.at,
        problem=wish.problem,
        resources=tuple(told.views.values()),
        members=_members(wish, told.seen.get("ray")),
        model=_model(wish, told),
        incident=told.incident,
        change=told.change,
        released=wish.orders.released,
        drained=wish.orders.drained,
    )


def _members(wish: Wish, seen: object) -> tuple[MemberView, ...]:
    report = seen.report if isinstance(seen, ray.Observed) else None
    listed: dict[str, Member] = {m.name: m for m in report.members if m.alive} if report else {}
    views = []
    for node in wish.file.config.nodes:
        member = listed.get(node.name)
        gpus = member.gpus if member else node.gpus
        note = "" if member else "not a member now"
        views.append(MemberView(node.name, node.role, str(node.ip.ip), member is not None, gpus, note))
    return tuple(views)


def _model(wish: Wish, told: Told) -> ModelView | None:
    if not wish.orders.model:
        return None
    seen, view = told.seen.get("vllm"), told.views.get("vllm")
    config = wish.file.config
    over, better = _way(told.seen.get("ray"), told.wanted.get("ray"))
    model = ModelView(
        wish.orders.model, config.tensor_parallel, api_url(config), 0.0, 0.0, 0.0, told.usual, over=over, better=better
    )
    if not isinstance(seen, vllm.Observed) or view is None:
        return model
    answering = view.since if view.condition == "ok" else 0.0
    return replace(model, answered_at=seen.answer.at, seconds=seen.answer.seconds, since=answering)


def _way(seen: object, wanted: object) -> tuple[str, str]:
    """Of the ranks, in words, and the better one that is there."""
    if not isinstance(seen, ray.Observed) or not isinstance(wanted, ray.Desired):
        return "", ""
    return ray.way(seen), ray.choice(wanted, seen).better
