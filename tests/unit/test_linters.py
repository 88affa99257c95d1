"""The linters are tests: layers, types, style, shell. (The unit files are judged by systemd in tests/lab.)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def run(*command: str) -> None:
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "command", [("ruff", "check"), ("ruff", "format", "--check"), ("mypy",), ("lint-imports",)], ids=" ".join
)
def test_python(command: tuple[str, ...]) -> None:
    run(*command)


def test_shell() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [name for name in listed.stdout.split("\0") if name and _is_shell(ROOT / name)]
    assert files
    run("shellcheck", *files)


def _is_shell(file: Path) -> bool:
    with file.open("rb") as opened:
        first = opened.readline()
    return first.startswith(b"#!") and first.rstrip().endswith((b"sh", b"bash"))
