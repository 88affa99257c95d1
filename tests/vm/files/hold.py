"""hold.py MIB SCORE FILE: takes so much memory, with this OOM score, and keeps it; FILE is there when it has it.

The main process stands for conmon, podman's: it takes nothing, is the last that the kernel would kill, and ends as its
child did.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

CHUNK = 8  # MiB


def score(value: str) -> None:
    Path("/proc/self/oom_score_adj").write_text(value)


def hold(count: int, told: Path) -> None:
    held = [b"x" * (CHUNK << 20) for _ in range(count // CHUNK)]
    told.write_text(str(len(held)))
    time.sleep(600)


def main(count: str, value: str, told: str) -> int:
    child = os.fork()
    if not child:
        score(value)
        hold(int(count), Path(told))
    score("-1000")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256


sys.exit(main(*sys.argv[1:]))
