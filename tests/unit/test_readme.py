"""What README and doctor's checklist tell people to type: every command of ours is there, with these options."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from strixd.cli.parse import parse
from strixd.doctor.byhand import TRIALS
from strixd.doctor.checks import CHECKS, FIRST_INSTALL
from strixd.media.program import parser

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text().replace("\\\n", " ")
_SPAN = re.compile(r"`([^`\n]+)`")
_LINE = re.compile(r"^    (\S.*)$", re.M)
_END = re.compile(r"\s+#.*|[;|&<>].*$")
"""Of one command on a line of shell: a comment, or another command."""
_PLACES = re.compile(r"\[[^\[\]]*\]")
"""What stands for words that the reader puts there."""


def _said() -> Iterator[str]:
    yield from _SPAN.findall(TEXT)
    yield from _LINE.findall(TEXT)
    yield from (trial.command for trial in TRIALS)


def _commands(program: str) -> list[str]:
    found = (part for said in _said() for part in re.split(rf"\b(?={program} )", said.replace("\\|", " "))[1:])
    return sorted({_END.sub("", part).strip().removeprefix(program).strip() for part in found})


@pytest.mark.parametrize("line", _commands("strixd-cli"))
def test_it_can_be_said_to_strixd_cli(line: str) -> None:
    words = shlex.split(_PLACES.sub("", line).replace("--timeout S", "--timeout 5"))
    assert parse(words).command.name


@pytest.mark.parametrize("line", _commands("strixd-media"))
def test_it_can_be_said_to_strixd_media(line: str) -> None:
    assert parser().parse_args(shlex.split(line)).command


def test_its_list_of_what_only_fedora_can_prove_is_doctors() -> None:
    table = TEXT.partition("| to be proven | by |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z-]+)`", table))
    names = {check.name for check in FIRST_INSTALL}
    assert names - {check.name for check in CHECKS} <= named <= names


def test_its_alias_of_a_checkout_runs_what_becomes_another_program_from_any_folder() -> None:
    alias = next(line for line in _LINE.findall(TEXT) if "alias strixd-cli=" in line)
    script = f"shopt -s expand_aliases\n{alias}\ncd /\nstrixd-cli doctor --json"
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert json.loads(done.stdout), done.stderr
