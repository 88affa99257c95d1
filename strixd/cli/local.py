"""logs and shell: the right command of somebody else, in place of this process."""

from __future__ import annotations

import os
import sys

from strixd.cli.parse import Asked
from strixd.errors import NotPermitted, Unavailable

_UNITS = {"daemon": "strixd.service", "ray": "strixd-ray.service", "vllm": "strixd-vllm.service"}
_PACKAGES = {"journalctl": "systemd", "podman": "podman"}
TOOLBOX = "strixd-ray"


def logs(asked: Asked) -> int:
    chosen = asked.words.get("UNIT")
    units = [_UNITS[chosen]] if chosen else list(_UNITS.values())
    lines = asked.number("--lines")
    command = ["journalctl", f"--lines={100 if lines is None else lines}", *(f"--unit={unit}" for unit in units)]
    return become([*command, "--follow"] if asked.has("--follow") else command)


def shell(_asked: Asked) -> int:
    if os.geteuid() != 0:
        raise NotPermitted("Cannot open a shell in the container: it belongs to root", hint="sudo strixd-cli shell")
    terminal = ["--interactive", "--tty"] if sys.stdin.isatty() else ["--interactive"]
    return become(["podman", "exec", *terminal, TOOLBOX, "bash", "-l"])


def become(command: list[str]) -> int:
    """Does not return."""
    sys.stdout.flush()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        hint = f"dnf install {_PACKAGES[command[0]]}"
        raise Unavailable(f"Cannot run {command[0]}: {error.strerror}", hint=hint) from None
