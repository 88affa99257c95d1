"""doctor and report: programs of their own (strixd/doctor) in place of this process, which needs to know nothing of
them."""

from __future__ import annotations

import os
import sys

from strixd.cli import change, client
from strixd.cli.parse import Asked
from strixd.errors import NotPermitted, StrixdError

_LONGEST = 600.0  # seconds of an apply
_START = "systemctl enable --now strixd.socket strixd.service, then strixd-cli doctor --fix"


def doctor(asked: Asked) -> int:
    if asked.has("--fix"):
        _fix(asked)
    return _become("strixd.doctor", asked, *(each for each in ("--json", "--first-install") if asked.has(each)))


def _fix(asked: Asked) -> None:
    """What strixd does by itself at its next pass, now. What came of it is looked at afterwards, so a failure is told
    and ends nothing."""
    try:
        if asked.has("--json"):  # nothing else may be on the standard output
            client.call(asked.socket, "Apply", patience=_LONGEST)
        else:
            change.apply(asked)
    except StrixdError as error:
        away = error.code == "Unavailable"
        hint = _START if away else error.hint
        sys.stderr.write(f"strixd-cli: {'nothing is fixed: ' * away}{error}\n  {hint}\n")


def report(asked: Asked) -> int:
    if os.geteuid() != 0:
        text = "Cannot make a report: only root sees all that must be masked in it"
        raise NotPermitted(text, hint="sudo strixd-cli report")
    return _become("strixd.doctor.report", asked, *asked.words.values())


def _become(module: str, asked: Asked, *more: str) -> int:
    """Does not return. -s and -P: as the unit files start strixd."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-sP", "-m", module, "--socket", asked.socket, *more])
