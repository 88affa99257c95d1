"""`python3 -m strixd.doctor [--json] [--socket PATH]`: what `strixd-cli doctor` runs. Needs no running daemon.

Exit status: 0, 1 for warnings and for what is not known and matters, 2 for faults.
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
from strixd.doctor.examine import examine
from strixd.doctor.finding import exit_status
from strixd.doctor.gather import Scene
from strixd.doctor.screen import as_json, screen
from strixd.doctor.surroundings import Real


def main() -> int:
    parser = argparse.ArgumentParser(prog="strixd-cli doctor", description="What keeps this host from serving.")
    parser.add_argument("--json", action="store_true", help="all findings, for programs")
    parser.add_argument("--socket", default=wire.ADDRESS, metavar="PATH", help="strixd's control socket")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # what adapters log is for the daemon's journal
    examination = examine(Scene(Path("/"), Real(options.socket)))
    if options.json:
        say(json.dumps(as_json(examination), indent=2))
    else:
        say("\n".join(screen(examination, width=terminal.width(), paint=terminal.paint())))
    return exit_status(examination.findings)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # whatever still hangs in the kernel is not waited for
