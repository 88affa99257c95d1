"""status, plan and version: one question, one answer. `status` is the command whose start is measured."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

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
    steps = [step for each in plans for step in each["steps"]]
    ok = ", ".join(each["resource"] for each in plans if not _steps(each))
    if ok:
        lines.append(f"nothing to do: {ok}")
    if steps:
        reboot = ", and a reboot after that" if any(step["effect"] == "reboot" for step in steps) else ""
        lines.append(f"{len(steps)} step{'s' if len(steps) != 1 else ''}{reboot}; strixd-cli apply takes them")
    return lines


def _steps(each: View) -> list[str]:
    named = [f"{each['resource']} is {each['condition']}: {printable(each['why'])}"] if each["why"] else []
    if each["steps"] and not named:
        named = [each["resource"]]
    return named + [line for step in each["steps"] for line in _step(step)]


def _step(step: View) -> Iterator[str]:
    yield f"  {printable(step['text'])}{' (needs a reboot)' if step['effect'] == 'reboot' else ''}"
    if step["undo"]:
        yield f"    back: {printable(step['undo'])}"


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
