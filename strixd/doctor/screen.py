"""An examination as text for a person, and as JSON for programs. Pure."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby

from strixd.cli.screen import printable
from strixd.cli.terminal import Paint, plain
from strixd.doctor.byhand import TRIALS
from strixd.doctor.examine import Examination
from strixd.doctor.finding import Finding, Verdict, exit_status

_COLOURS = {"fault": "blocked", "warning": "held", "unknown": "waiting"}
"""As which condition of strixd a verdict is painted."""
_INDENT = 10


WRONG: tuple[Verdict, ...] = ("fault", "warning")


def screen(
    examination: Examination, *, width: int = 80, paint: Paint = plain, shown: tuple[Verdict, ...] = WRONG
) -> list[str]:
    """What is wrong (or whatever is to be shown), by layer; what is not known, by reason; and how much is ok."""
    lines: list[str] = []
    told = [each for each in examination.findings if each.verdict in shown]
    for layer, findings in groupby(told, key=lambda finding: finding.layer):
        lines += [layer, *(line for each in findings for line in _finding(each, width, paint)), ""]
    unknown = [each for each in examination.findings if each.verdict == "unknown"]
    if unknown:
        lines += [paint("not known", _COLOURS["unknown"]), *_unknown(unknown, width), ""]
    return [*lines, *_summary(examination)]


def _finding(finding: Finding, width: int, paint: Paint) -> Iterator[str]:
    word = paint(finding.verdict, _COLOURS.get(finding.verdict, finding.verdict)) + " " * (
        _INDENT - 2 - len(finding.verdict)
    )
    mark = " (the cause of what follows from it)" if finding.cause else ""
    head, *rest = _wrapped(f"{finding.name}: {finding.read}{mark}", width)
    yield f"  {word}{head.strip()}"
    yield from rest
    if finding.verdict == "ok":
        return
    if finding.follows:
        yield from _wrapped(f"follows from {finding.follows}: mend that first", width)
        return
    yield from _wrapped(f"wanted: {finding.wanted}; {finding.why}", width)
    if finding.mend:
        yield from _wrapped(f"→ {finding.mend}", width)


def _unknown(findings: list[Finding], width: int) -> Iterator[str]:
    """One thing that cannot be read is often the reason for several."""
    for read, follows in dict.fromkeys((each.read, each.follows) for each in findings):
        alike = [each for each in findings if (each.read, each.follows) == (read, follows)]
        yield from _wrapped(f"{', '.join(each.name for each in alike)}: {read}", width)
        mends = {f"→ {each.mend}" for each in alike if each.mend} if not follows else {f"follows from {follows}"}
        yield from (line for mend in sorted(mends) for line in _wrapped(mend, width))


def _wrapped(text: str, width: int) -> list[str]:
    indent = " " * _INDENT
    return textwrap.wrap(
        printable(text),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(examination: Examination) -> Iterator[str]:
    counted = Counter(each.verdict for each in examination.findings)
    parts = [
        f"{counted['fault']} {'fault' if counted['fault'] == 1 else 'faults'}",
        f"{counted['warning']} {'warning' if counted['warning'] == 1 else 'warnings'}",
        f"{counted['unknown']} not known",
        f"{counted['ok']} ok",
    ]
    yield f"{', '.join(parts)}; looked for {examination.seconds:.1f} s"
    first = next((each for each in examination.findings if each.cause), None)
    if first:
        yield printable(f"begin with {first.name} ({first.layer}): {first.mend or first.read}")


def by_hand(width: int = 80) -> list[str]:
    """The trials, numbered. A command stays on one line, to be copied."""
    lines = ["", "to be tried by hand"]
    for number, trial in enumerate(TRIALS, 1):
        head, *rest = _wrapped(trial.do, width)
        lines += [f"{number:>6}.   {head.strip()}", *rest, " " * _INDENT + trial.command]
        lines += _wrapped(f"to be seen: {trial.expected}", width)
    return lines


def as_json(examination: Examination) -> dict[str, object]:
    return {
        "seconds": round(examination.seconds, 3),
        "exitStatus": exit_status(examination.findings),
        "findings": [asdict(each) for each in examination.findings],
    }
