"""The daemon as a process, over a simulated node: what it says when it cannot start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import ROOT

NODE = '[[node]]\nname = "{0}"\nrole = "{1}"\naddress = "192.168.100.{2}/30"\ninterface = "enp1s0"\n'


def daemon(*words: str) -> subprocess.CompletedProcess[str]:
    """Only such as ends by itself."""
    line = [sys.executable, "-m", "strixd", "--simulate", *words]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("missing/s", 69, "No such file or directory"),
        ("file/s", 69, "Not a directory"),
        ("a" * 120, 69, "AF_UNIX path too long"),
        ("file", 2, "a file that is no socket is there"),
    ],
)
def test_a_place_where_no_socket_can_be_is_named(tmp_path: Path, path: str, status: int, words: str) -> None:
    (tmp_path / "file").touch()
    done = daemon("--socket", str(tmp_path / path))
    assert done.returncode == status
    assert done.stderr.startswith(f"ERROR: Cannot listen on {tmp_path / path}")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("names", "words"), [(("a", "b"), "cannot find"), (("halo1.a", "halo1.b"), "cannot tell")])
def test_the_file_in_which_this_host_is_not_one_node_is_named(
    tmp_path: Path, names: tuple[str, str], words: str
) -> None:
    file = tmp_path / "cluster.toml"
    nodes = NODE.format(names[0], "head", 1) + NODE.format(names[1], "worker", 2)
    file.write_text(f'[cluster]\nname = "halo"\n{nodes}')
    done = daemon("--socket", str(tmp_path / "s"), "--config", str(file))
    assert done.returncode == 78
    assert done.stderr.startswith(f"ERROR: {file}:0: node: {words}")
