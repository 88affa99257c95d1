"""The phase of the node, derived from the conditions of its resources. Pure, never stored."""

from __future__ import annotations

from collections.abc import Mapping

from strixd.engine.incident import PATH
from strixd.engine.status import Phase, ResourceView
from strixd.plan import Condition

_WORST: tuple[tuple[Condition, Phase], ...] = (
    ("stuck", "stuck"),
    ("held", "degraded"),
    ("blocked", "degraded"),
    ("reboot", "degraded"),
    ("ineffective", "degraded"),
    ("waiting", "converging"),
)


def phase(views: Mapping[str, ResourceView], *, paused: bool, drained: bool = False, problem: str) -> Phase:
    """Kernel arguments do not count: a node answers without them, and status names them in their own line.
    Drained is only what would be ready but for the order: whatever else is wrong is told as ever."""
    if paused:
        return "paused"
    conditions = {views[name].condition for name in PATH if name in views}
    if not conditions:
        return "starting"
    for condition, then in _WORST:
        if condition in conditions:
            return then
    if problem:
        return "degraded"
    return "drained" if drained else "ready"
