"""What systemd's properties mean, and who is left in a control group; the calls are proven by the contract tests."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from strixd.host.cgroup import survivors
from strixd.host.systemd import to_unit, unit_path
from strixd.host.titles import Titles
from strixd.resources.drain import ENGINE

RUN = bytes(range(16))
STATE = {
    "LoadState": "loaded",
    "ActiveState": "failed",
    "InvocationID": list(RUN),
    "StateChangeTimestampMonotonic": 470_253_008,
    "NeedDaemonReload": False,
}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("strixd-vllm.service", "strixd_2dvllm_2eservice"),
        ("q1.service", "q1_2eservice"),
        ("7up.service", "_37up_2eservice"),
        ("ü.service", "_c3_bc_2eservice"),
    ],
)
def test_object_paths(name: str, path: str) -> None:
    assert unit_path(name) == f"/org/freedesktop/systemd1/unit/{path}"


def test_a_run_that_failed() -> None:
    unit = to_unit("x.service", STATE, {"Result": "exit-code", "ExecMainStatus": 137}, zero=1_795_968_000.0)
    assert (unit.loaded, unit.active, unit.result, unit.status) == (True, "failed", "exit-code", 137)
    assert (unit.invocation, unit.since) == (RUN.hex(), 1_795_968_470.253008)


def test_a_unit_that_never_ran() -> None:
    never = STATE | {"ActiveState": "inactive", "InvocationID": [], "StateChangeTimestampMonotonic": 0}
    unit = to_unit("x.service", never, {}, zero=1_795_968_000.0)
    assert (unit.invocation, unit.since, unit.result) == ("", 0.0, "")


def test_a_unit_without_a_file() -> None:
    assert not to_unit("x.service", STATE | {"LoadState": "not-found"}, {}, zero=0.0).loaded


@pytest.mark.parametrize(("said", "active"), [("refreshing", "active"), ("maintenance", "deactivating")])
def test_states_that_the_port_does_not_know(said: str, active: str) -> None:
    assert to_unit("x.service", STATE | {"ActiveState": said}, {}, zero=0.0).active == active


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A unit's control group with a container's below it, in which this very process is said to live."""
    below = tmp_path / "a.slice/x.service/libpod-payload-1"
    below.mkdir(parents=True)
    (below / "cgroup.procs").write_text(f"{os.getpid()}\n999999999\n")
    (below.parent / "cgroup.procs").write_text("")
    (below.parent / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    return tmp_path


def test_survivors_are_named_from_the_whole_tree(tree: Path) -> None:
    found = survivors("/a.slice/x.service", tree)
    assert found == (f"{os.getpid()} ({Path('/proc/self/comm').read_text().strip()})", "999999999 (gone)")


def test_an_empty_group_has_none(tree: Path) -> None:
    (tree / "a.slice/x.service/cgroup.events").write_text("populated 0\nfrozen 0\n")
    assert survivors("/a.slice/x.service", tree) == ()


@pytest.mark.parametrize("group", ["", "/", "/a.slice/gone.service"])
def test_no_group_has_none(tree: Path, group: str) -> None:
    (tree / "cgroup.events").write_text("populated 1\n")
    assert survivors(group, tree) == ()


@pytest.mark.parametrize("title", ["VLLM::EngineCore", ENGINE])
def test_an_interrupt_goes_to_the_processes_of_one_title_and_to_nobody_else(tree: Path, title: str) -> None:
    """argv[0] is what a program titles itself with."""
    engine, other = (
        subprocess.Popen([called, "60"], executable="/bin/sleep") for called in ("VLLM::EngineCore_DP0", "VLLM::Router")
    )
    with engine, other:
        procs = tree / "a.slice/x.service/libpod-payload-1/cgroup.procs"
        procs.write_text(f"{engine.pid}\n{other.pid}\n999999999\n")
        asyncio.run(Titles(tree).interrupt("/a.slice/x.service", title))
        assert engine.wait(10) == -signal.SIGINT
        assert other.poll() is None
        other.kill()
