"""strixd-cli as a process of its own, as a person starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENTRY = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from strixd.cli import main; sys.exit(main())"


def command(*words: str) -> list[str]:
    return [sys.executable, "-I", "-c", ENTRY, *words]


def environment(socket: Path | str = "/nonexistent", **more: str) -> dict[str, str]:
    return {**os.environ, "STRIXD_SOCKET": str(socket), "LC_ALL": "C.UTF-8", "TZ": "UTC", **more}


def cli(
    *words: str, socket: Path | str = "/nonexistent", stdin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        env=environment(socket, **more),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
