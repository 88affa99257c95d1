"""strixd-media as a program of its own: what is said to it, and that it needs nothing of the daemon."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.media.lab import ROOT, TOOLS, cluster, media, rendered

PACKAGE = ("__init__.py", "errors.py", "decode.py", "kernelpolicy.py", "config", "media")
"""What strixd-media and python3-strixd have of strixd; packaging/strixd.spec says so, too."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "cluster.toml").write_text(cluster())
    return tmp_path / "cluster.toml"


@pytest.mark.parametrize("words", [("--all",), ("--node", "halo2")])
def test_a_kickstart_comes_on_standard_output(file: Path, words: tuple[str, ...]) -> None:
    done = media("kickstart", "--cluster", file, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == rendered(cluster(), None if words == ("--all",) else "halo2")


def test_explain(file: Path) -> None:
    done = media("explain", "--cluster", file, "--node", "halo2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "halo2 (worker)\n  machine   the one with a card with MAC b4:96:91:00:00:02; any other"
    )
    assert "halo1" not in done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("kickstart", "--all"), "the following arguments are required: --cluster"),
        (("kickstart", "--cluster", "x"), "one of the arguments --node --all is required"),
        (("kickstart", "--cluster", "x", "--all", "--node", "y"), "not allowed with argument"),
        (("biuld",), "invalid choice: 'biuld'"),
    ],
)
def test_what_makes_no_sense(words: tuple[str, ...], complaint: str) -> None:
    done = media(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(rf"strixd-media: .*{re.escape(complaint)}.*\n  strixd-media.* --help\n$", done.stderr), done.stderr


def test_nobody_reads(file: Path) -> None:
    line = f"{sys.executable} -m strixd.media kickstart --all --cluster {file} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.parametrize("installed", [False, True], ids=["checkout", "installed"])
def test_it_needs_nothing_of_the_daemon(file: Path, tmp_path: Path, installed: bool) -> None:
    """A folder with the files of its package alone, and a Python without the virtual environment's libraries."""
    for name in PACKAGE:
        place = tmp_path / "site" / "strixd" / name
        place.parent.mkdir(exist_ok=True, parents=True)
        copy = shutil.copytree if (ROOT / "strixd" / name).is_dir() else shutil.copy
        copy(ROOT / "strixd" / name, place)
    shutil.copytree(ROOT / "kickstart", tmp_path / "site" / "kickstart")
    if not installed:
        (tmp_path / "site" / "pyproject.toml").touch()
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); from strixd.media import main; sys.exit(main())"
    )
    line = [sys.executable, "-I", "-S", "-c", program, "kickstart", "--all", "--cluster", str(file)]
    done = subprocess.run(line, cwd="/", env=os.environ | TOOLS, capture_output=True, text=True, check=False)
    if installed:  # a folder of that name beside the package is anybody's
        assert (done.returncode, "/usr/share/strixd/kickstart is not there" in done.stderr) == (69, True)
    else:
        assert (done.returncode, done.stderr, done.stdout) == (0, "", rendered(cluster()))


def test_the_templates_are_named_when_they_are_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from strixd.errors import Unavailable
    from strixd.media import templates

    monkeypatch.setattr(templates, "FOLDERS", (tmp_path / "away",))
    with pytest.raises(Unavailable, match="away is not there") as caught:
        templates.load()
    assert caught.value.hint == "dnf reinstall strixd-media"
