"""A process is the one that was written down, or none: its number alone may be another's by now."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.lab import pidfile


def test_a_process_lives_until_it_ends_waited_for_or_not(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    assert pidfile.living(file) is None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        pidfile.write(file, process.pid)
        assert pidfile.living(file) == process.pid
        assert process.stdin
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
        assert pidfile.living(file) is None
    assert pidfile.living(file) is None


def test_another_process_with_the_number_is_not_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    pidfile.write(file, os.getpid())
    pid, began = file.read_text().split()
    file.write_text(f"{pid} {int(began) - 1}")
    assert pidfile.living(file) is None


def test_what_was_cut_off_in_the_middle_names_nobody(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    for text in ("", f"{os.getpid()}", "a b"):
        file.write_text(text)
        assert pidfile.living(file) is None
