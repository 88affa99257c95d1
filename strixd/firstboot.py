"""`python3 -m strixd.firstboot`: after an installation, what the node waits for until it is ready for the first time.

The work of strixd-firstboot.service. Each change is a line for journal and console, and one for whoever logs in; it
ends when the node is ready, and then never runs again: the folder that calls for it is gone.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any, Final

from strixd.api.wire import ADDRESS
from strixd.cli import client
from strixd.cli.screen import printable
from strixd.errors import StrixdError

CALLED: Final = Path("/var/lib/strixd/install")
"""Made by the installation (kickstart/settle.sh); the unit looks for it."""
MOTD: Final = Path("/run/motd.d/60-strixd-firstboot")
LOADING: Final = Path("/run/strixd-load")
"""There while strixd-load.service is at work, for which strixd waits."""
PACE: Final = 5.0
"""Seconds between two looks."""
_OK = ("ok", "reboot", "ineffective")  # none of these keeps a model from answering


def said(status: dict[str, Any]) -> str:
    """What one look tells: ready, or the lowest layer that is not, and what to do about it. Pure."""
    node = status["node"] or "this host"
    if status["phase"] == "ready":
        return f"{node} is installed and ready"
    if status["problem"]:
        return f"{node} is installed, but its file cannot be used: {printable(status['problem'].splitlines()[0])}"
    amiss = [each for each in status["resources"] if each["condition"] not in _OK]
    if not amiss:
        return f"{node} is installed, and {status['phase']}"
    first = amiss[0]
    hint = f"; {first['hint']}" if first["hint"] else ""
    return printable(f"{node} is installed; {first['name']} is {first['condition']}: {first['why']}{hint}")


def main(address: str = ADDRESS, called: Path = CALLED, motd: Path = MOTD, loading: Path = LOADING) -> int:
    before = ""
    while True:
        ready, words = _look(address, loading)
        if words != before:
            sys.stdout.write(f"strixd: {words}\n")
            sys.stdout.flush()
            motd.write_text(f"strixd: {words}\n")
            before = words
        if ready:
            shutil.rmtree(called)
            motd.unlink()
            return 0
        time.sleep(PACE)


def _look(address: str, loading: Path) -> tuple[bool, str]:
    if loading.exists():  # the question would hang until strixd starts
        words = "this host is installed; the container image that came with the medium is being loaded"
        return False, f"{words}; systemctl status strixd-load says since when"
    try:
        status = client.call(address, "Status")["status"]
    except StrixdError as error:
        return False, f"strixd does not answer yet: {error}"
    assert isinstance(status, dict)
    return status["phase"] == "ready", said(status)


if __name__ == "__main__":
    sys.exit(main())
