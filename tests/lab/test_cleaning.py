"""Whatever ends a lab, and whenever: nothing of it stays, or the next start removes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.lab.layout import PROJECT
from tests.lab.shell import Result, attempt

pytestmark = pytest.mark.lab

# A second lab beside the one of this test run: it has a name of its own.
ENVIRONMENT = os.environ | {"STRIXD_LAB_NAME": "strixd-try", "STRIXD_LAB_WAIT": "0"}
ENVIRONMENT.pop("STRIXD_LAB_RUN", None)
LONG_LAB = """\
import time
from tests.lab.lab import running_lab
with running_lab() as lab:
    lab.new_hosts(("solo",))
    print("up", flush=True)
    time.sleep(600)
"""

# Between the look for mounts and the removal of the folder, as a program does that a signal left to itself.
LATE_MOUNT = """
from tests.lab import clean
from tests.lab.layout import run_folder
from tests.lab.shell import run
remove_group, places = clean.remove_group, [run_folder() / "late"]
def mount_once(group):
    remove_group(group)
    if places:
        run(["mount", "-t", "tmpfs", "late", places.pop()])
clean.remove_group = mount_once
places[0].mkdir(parents=True)
clean.sweep()
"""


@contextmanager
def long_lab() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_LAB], cwd=PROJECT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert verb("down").ok


def verb(*words: str) -> Result:
    return attempt([sys.executable, "-m", "tests.lab", *words], env=ENVIRONMENT, timeout=120)


def wait_up(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"


def test_what_a_killed_run_leaves_is_cleaned_up(lab: object) -> None:
    with long_lab() as process:
        wait_up(process)
        process.kill()
        process.wait()
        assert not verb("leftovers").ok
        assert verb("clean").ok
        left = verb("leftovers")
        assert left.ok, left.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0.3, 0.8, 1.5, 3.0, None])
def test_a_signal_at_any_moment_leaves_nothing(number: signal.Signals, after: float | None, lab: object) -> None:
    with long_lab() as process:
        wait_up(process) if after is None else time.sleep(after)
        process.send_signal(number)
        process.wait(60)
        left = verb("leftovers")
        assert left.ok, left.stderr


def test_what_comes_while_it_is_swept_is_swept_too(lab: object) -> None:
    swept = attempt([sys.executable, "-c", LATE_MOUNT], env=ENVIRONMENT)
    assert swept.ok, swept.stderr
    left = verb("leftovers")
    assert left.ok, left.stderr


def test_a_second_lab_is_refused_by_name(lab: object) -> None:
    with long_lab() as process:
        wait_up(process)
        refused = verb("up", "other")
        assert refused.rc == 1
        assert f"a lab is being run by process {process.pid} " in refused.stderr
