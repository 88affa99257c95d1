"""All facts, all checks, and how long it took."""

from __future__ import annotations

import time
from dataclasses import dataclass

from strixd.doctor.causes import marked
from strixd.doctor.checks import CHECKS
from strixd.doctor.finding import Check, Finding, found
from strixd.doctor.gather import Scene, gather, needed
from strixd.doctor.read.table import READERS


@dataclass(frozen=True, slots=True)
class Examination:
    """`seconds`: that it took."""

    findings: tuple[Finding, ...]
    seconds: float


def examine(scene: Scene, checks: tuple[Check, ...] = CHECKS) -> Examination:
    began = time.monotonic()
    readers = needed(READERS, (name for check in checks for name in check.facts))
    findings = marked(found(checks, gather(readers, scene)))
    return Examination(findings, time.monotonic() - began)
