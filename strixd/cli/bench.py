"""bench: measured by strixd/bench, told here."""

from __future__ import annotations

import json
import os
import sys

from strixd.bench import link, model, table
from strixd.bench.plan import Wanted
from strixd.cli.parse import Asked
from strixd.cli.terminal import say
from strixd.errors import NotPermitted, Refused


def bench(asked: Asked) -> int:
    wanted = _wanted(asked)
    if os.geteuid() != 0:
        words = "Cannot measure: it enters the container, which belongs to root"
        raise NotPermitted(words, hint="sudo strixd-cli bench")
    return _model(asked) if asked.words.get("WHAT") == "model" else _link(asked, wanted)


def _wanted(asked: Asked) -> Wanted:
    rung = asked.given.get("--rung", "")
    if rung and asked.words.get("WHAT") == "model":
        problem = "bench: --rung is of link, not of model"
        raise Refused(problem, hint="for example: strixd-cli bench link --rung rdma")
    return Wanted(rung, asked.has("--force"))


def _link(asked: Asked, wanted: Wanted) -> int:
    """Status 1 when something failed, or nothing could be measured; that a tool is not there is no failure."""
    outcome = link.measure(wanted, asked.socket, _tell)
    lines = table.link_lines(outcome)
    say(json.dumps(table.link_json(outcome), indent=2) if asked.has("--json") else "\n".join(lines))
    return 1 if outcome.readings.failed or not outcome.readings.rows else 0


def _model(asked: Asked) -> int:
    outcome = model.measure(asked.socket, _tell)
    lines = table.model_lines(outcome)
    say(json.dumps(table.model_json(outcome), indent=2) if asked.has("--json") else "\n".join(lines))
    return 0


def _tell(text: str) -> None:
    """To a person who waits, beside the result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
