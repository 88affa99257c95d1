"""What a check is, and what comes of it. Pure.

A fact that could not be read makes every check that asks for it "unknown": no judge ever sees it, so none can take it
for good.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "fault", "unknown"]
Layer = Literal[
    "strixd",
    "installation",
    "firmware",
    "kernel",
    "pcie",
    "link",
    "rdma",
    "addresses",
    "firewall",
    "container",
    "image",
    "host",
    "ray",
    "model",
    "sleep",
]
LAYERS: tuple[Layer, ...] = Layer.__args__  # type: ignore[attr-defined]
"""In the order in which they break: what is wrong in one shows in later ones."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Stands for a fact that could not be read. `mend`: what would make it readable, if anything is known."""

    why: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge says. `read`: the fact; `mend`: a command or setting; `wanted`: where the check's own words are not
    exact enough."""

    verdict: Verdict
    read: str
    mend: str = ""
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be so. `judge`: its parameters are named as the facts that it needs; None when there is
    nothing here that it is about. `doubt`: what not knowing it counts as."""

    name: str
    layer: Layer
    judge: Callable[..., Judged | None]
    wanted: str
    why: str
    doubt: Literal["ok", "warning"] = "warning"

    @property
    def facts(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.judge).parameters)


@dataclass(frozen=True, slots=True)
class Finding:
    """`cause`: later findings follow from this one; `follows`: the name of the finding that explains this one, "" for
    none. `doubt` as in Check."""

    name: str
    layer: Layer
    verdict: Verdict
    read: str
    wanted: str
    why: str
    mend: str
    doubt: Literal["ok", "warning"] = "warning"
    cause: bool = False
    follows: str = ""


def found(checks: tuple[Check, ...], facts: Mapping[str, object]) -> tuple[Finding, ...]:
    """One finding for each check that has something to be about, by layer."""
    ordered = sorted(checks, key=lambda check: LAYERS.index(check.layer))
    return tuple(finding for check in ordered for finding in _finding(check, facts))


def _finding(check: Check, facts: Mapping[str, object]) -> Iterator[Finding]:
    wanted = {name: facts[name] for name in check.facts}
    unread = next((fact for fact in wanted.values() if isinstance(fact, Unread)), None)
    judged = Judged("unknown", unread.why, unread.mend) if unread else check.judge(**wanted)
    if judged is not None:
        yield Finding(
            name=check.name,
            layer=check.layer,
            verdict=judged.verdict,
            read=judged.read,
            wanted=judged.wanted or check.wanted,
            why=check.why,
            mend=judged.mend,
            doubt=check.doubt,
        )


def exit_status(findings: tuple[Finding, ...]) -> int:
    """0: nothing; 1: warnings, or something that is not known and matters; 2: faults."""
    verdicts = {each.verdict for each in findings if each.verdict != "unknown" or each.doubt == "warning"}
    if "fault" in verdicts:
        return 2
    return 1 if verdicts & {"warning", "unknown"} else 0
