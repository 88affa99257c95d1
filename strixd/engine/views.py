"""How a resource came out of a pass, as plain data and as lines in the journal."""

from __future__ import annotations

import logging
from collections.abc import Callable

from strixd import messages
from strixd.engine.hold import Hold
from strixd.engine.status import ResourceView, StepView
from strixd.errors import StrixdError, Unavailable
from strixd.plan import Condition, Plan, Step

log = logging.getLogger("strixd")

_LEVELS: dict[Condition, int] = {
    "ok": logging.INFO,
    "waiting": logging.INFO,
    "blocked": logging.WARNING,
    "reboot": logging.WARNING,
    "ineffective": logging.WARNING,
    "held": logging.WARNING,
    "stuck": logging.ERROR,
}

_SERVICES = {"network": "NetworkManager", "firewall": "firewalld"}
"""Whom a resource is read from, where that is not systemd or a file."""


def steps(plan: Plan) -> tuple[StepView, ...]:
    return tuple(StepView(str(step), str(step.undo() or ""), step.effect.value) for step in plan.steps)


def from_plan(plan: Plan, now: float) -> ResourceView:
    """A plan that still has steps although it says ok is on its way."""
    condition: Condition = "waiting" if plan.steps and plan.condition == "ok" else plan.condition
    why = plan.why or (f"to do: {plan.steps[0]}" if plan.steps else "")
    again = now + plan.again if plan.again else 0.0
    return ResourceView(plan.resource, condition, why, plan.hint, plan.facts, now, now, again, steps(plan))


def found(plan: Plan) -> str:
    """What somebody else has changed, in words: what was read, and what must be done about it."""
    seen = "; ".join((*plan.facts, f"to do: {plan.steps[0]}"))
    return f"{plan.resource} was changed by somebody else: {seen}"


def unseen(name: str, failure: StrixdError, now: float) -> ResourceView:
    """It could not be read: the service is not there (its coming wakes the loop), or it said no."""
    condition: Condition = "blocked" if isinstance(failure, Unavailable) else "held"
    hint = failure.hint or f"systemctl status {_SERVICES.get(name, 'strixd')}"
    return ResourceView(name, condition, str(failure), hint, (), now, now)


def held(name: str, hold: Hold, plan: Plan, now: float) -> ResourceView:
    why, hint = str(hold.failure), hold.failure.hint or "journalctl -u strixd -n 30; strixd-cli apply tries at once"
    return ResourceView(name, "held", why, hint, plan.facts, now, now, next_try=hold.until, steps=steps(plan))


def log_failure(name: str, hold: Hold, undone: bool) -> None:
    if hold.times > 1:
        log.debug("%s failed again (%d times): %s", name, hold.times, hold.failure)
        return
    what = "what was done is taken back" if undone else "and not all could be taken back"
    extra = messages.fields("ROLLED_BACK", resource=name, code=hold.failure.code)
    log.warning("%s: %s; %s", name, hold.failure, what, extra=extra)


def log_step(name: str, doing: str, step: Step, number: int) -> None:
    verb = "taking back: " if doing == "undo" else ""
    extra = messages.fields("STEP_TAKEN", resource=name, step=str(step), **{"pass": number})
    log.info("%s: %s%s", name, verb, step, extra=extra)


def log_condition(view: ResourceView) -> None:
    """A failure is logged when it begins and when it ends."""
    hint = f" - {view.hint}" if view.hint else ""
    text = f": {view.why}{hint}" if view.why else (f": {view.facts[0]}" if view.facts else "")
    extra = messages.fields(_MESSAGES.get(view.condition, "CONDITION"), resource=view.name)
    _say(_LEVELS[view.condition])("%s is %s%s", view.name, view.condition, text, extra=extra)


_MESSAGES: dict[Condition, str] = {
    "blocked": "BLOCKED",
    "held": "HELD",
    "stuck": "STUCK",
    "reboot": "REBOOT_NEEDED",
    "ineffective": "INEFFECTIVE",
}


def _say(level: int) -> Callable[..., None]:
    return {logging.INFO: log.info, logging.WARNING: log.warning, logging.ERROR: log.error}[level]
