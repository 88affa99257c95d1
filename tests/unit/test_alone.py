"""The lock by which only one strixd keeps a host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strixd.errors import Refused, Unavailable
from strixd.host.alone import alone

HOLD = """
import pathlib, sys
from strixd.host.alone import alone
with alone(pathlib.Path(sys.argv[1])):
    print(flush=True)
    input()
"""


def test_the_second_is_refused_with_who_is_there_and_comes_in_when_that_one_is_killed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout
        assert first.stdout.readline() == b"\n"
        with pytest.raises(Refused, match=f"another strixd keeps this host: process {first.pid}"), alone(lock):
            pass
        first.kill()
    with alone(lock):
        assert lock.read_text() == f"{os.getpid()}\n"
    assert lock.stat().st_mode & 0o777 == 0o600


def test_where_no_lock_can_be_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file or directory"), alone(tmp_path / "none" / "lock"):
        pass
