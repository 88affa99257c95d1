"""What stands between the spec and real Fedora, as far as a machine that is none can tell."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab import machine

ROOT = Path(__file__).parents[2]
SPEC = (ROOT / "packaging/strixd.spec").read_text()
AFTER = {
    "pyproject_check_import": "pyproject_save_files",
    "pyproject_files": "pyproject_save_files",
}
"""Macros of pyproject-rpm-macros that end the build unless another one was called before; packaging/debian.macros
cannot know that."""
PROGRAMS = {
    "rpmspec": """
        echo python3-devel
        echo selinux-policy-devel
        if grep -qx selinux-policy-devel "$HERE/have"; then echo "pkgconfig(systemd) >= 1"; fi
    """,
    "rpm": 'for name; do :; done; grep -Fqx -- "$name" "$HERE/have"',
    "dnf": """
        echo "$*" >>"$HERE/asked"
        for name; do echo "${name%% *}" >>"$HERE/have"; done
    """,
}


def test_no_macro_is_called_without_the_one_that_it_needs() -> None:
    called = [needed for macro, needed in AFTER.items() if f"%{macro}" in SPEC or f"%{{{macro}}}" in SPEC]
    assert [needed for needed in called if f"%{needed}" not in SPEC] == []


def test_on_fedora_what_the_spec_asks_for_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what it asks for only when the macros of the first lot are there; and nothing twice."""
    for name, script in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{script}")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "have").touch()
    monkeypatch.setenv("HERE", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(machine, "DEBIAN", False)
    monkeypatch.setattr(machine, "NEEDED", {})
    monkeypatch.setattr(machine, "MODULES", {})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("sys.argv", ["machine.py"])
    for _ in range(2):
        assert machine.main() == 0
        asked = [
            line.partition("install_weak_deps=False ")[2] for line in (tmp_path / "asked").read_text().splitlines()
        ]
        assert asked == ["python3-devel selinux-policy-devel", "pkgconfig(systemd) >= 1"]
