"""status, plan and version: one question, one answer. `status` is the command whose start is measured."""

from __future__ import annotations

import json
import time

from strixd import __version__
from strixd.cli import client, terminal
from strixd.cli.parse import Asked
from strixd.cli.screen import View, printable, screen
from strixd.cli.terminal import say
from strixd.errors import StrixdError


def status(asked: Asked) -> int:
    reply = client.call(asked.socket, "Status")["status"]
    assert isinstance(reply, dict)
    if asked.has("--json"):
        say(json.dumps(reply, indent=2))
    else:
        lines = screen(reply, time.time(), width=terminal.width(), paint=terminal.paint())
        say("\n".join(lines))
    return 0


def plan(asked: Asked) -> int:
    plans = client.call(asked.socket, "Plan", patience=300)["plans"]
    assert isinstance(plans, list)
    if asked.has("--json"):
        say(json.dumps(plans, indent=2))
    else:
        say("\n".join(rollback_lines(plans) if asked.has("--rollback") else plan_lines(plans)))
    return 0


def plan_lines(plans: list[View]) -> list[str]:
    """What would be done, resource by resource; pure."""
    lines = [line for each in plans for line in _steps(each)]
    steps = sum(len(each["steps"]) for each in plans)
    ok = ", ".join(each["resource"] for each in plans if not _steps(each))
    if ok:
        lines.append(f"nothing to do: {ok}")
    if steps:
        lines.append(f"{steps} step{'s' if steps != 1 else ''}; strixd-cli plan --rollback shows the way back")
    return lines


def _steps(each: View) -> list[str]:
    named = [f"{each['resource']} is {each['condition']}: {printable(each['why'])}"] if each["why"] else []
    if each["steps"] and not named:
        named = [each["resource"]]
    later = {"now": "", "reboot": " (takes effect with a reboot)"}
    return named + [f"  {printable(step['text'])}{later[step['effect']]}" for step in each["steps"]]


def rollback_lines(plans: list[View]) -> list[str]:
    """The inverses, in the order in which they would be taken; pure."""
    lines = []
    for each in reversed(plans):
        back = [f"  {printable(step['undo'])}" for step in reversed(each["steps"]) if step["undo"]]
        lines += [each["resource"], *back] if back else []
    return lines or ["nothing to take back"]


def version(asked: Asked) -> int:
    say(f"strixd-cli {__version__}")
    try:
        theirs = client.call(asked.socket, "Version")["version"]
    except StrixdError as error:
        say(f"strixd     not known: {error}")
    else:
        say(f"strixd     {theirs}")
    return 0
