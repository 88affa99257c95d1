"""`python3 -m strixd.doctor [--json] [--first-install] [--socket PATH]`: what `strixd-cli doctor` runs.

Needs no running daemon. Exit status: 0, 1 for warnings and for what is not known and matters, 2 for faults.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from pathlib import Path

from strixd.api import wire
from strixd.cli import terminal
from strixd.cli.terminal import say
from strixd.doctor.checks import CHECKS, FIRST_INSTALL
from strixd.doctor.examine import Examination, examine
from strixd.doctor.finding import Verdict, exit_status
from strixd.doctor.gather import Scene
from strixd.doctor.screen import WRONG, as_json, by_hand, screen
from strixd.doctor.surroundings import Real


def main() -> int:
    parser = argparse.ArgumentParser(prog="strixd-cli doctor", description="What keeps this host from serving.")
    parser.add_argument("--json", action="store_true", help="all findings, for programs")
    parser.add_argument("--socket", default=wire.ADDRESS, metavar="PATH", help="strixd's control socket")
    parser.add_argument("--first-install", action="store_true", help="what the installation left, too")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # what adapters log is for the daemon's journal
    checks = FIRST_INSTALL if options.first_install else CHECKS
    examination = examine(Scene(Path("/"), Real(options.socket)), checks)
    if options.json:
        say(json.dumps(as_json(examination), indent=2))
    else:
        say("\n".join(_first_install(examination) if options.first_install else _screen(examination, WRONG)))
    return exit_status(examination.findings)


def _screen(examination: Examination, shown: tuple[Verdict, ...]) -> list[str]:
    return screen(examination, width=terminal.width(), paint=terminal.paint(), shown=shown)


def _first_install(examination: Examination) -> list[str]:
    """What is well is evidence, too."""
    return [*_screen(examination, ("ok", *WRONG)), *by_hand(terminal.width())]


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # whatever still hangs in the kernel is not waited for
