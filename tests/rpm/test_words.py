"""Manuals and completions, by the programs that read them on Fedora. (bash: tests/unit/test_completions.py.)"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.lab.layout import PROJECT
from tests.lab.shell import run
from tests.rpm.stage import Stage

pytestmark = pytest.mark.lab

LINES = {
    "strixd-cli st": "status stop",
    "strixd-cli config ": "check show",
    "strixd-cli wait re": "ready",
    "strixd-cli --socket /x logs --f": "--follow",
    "strixd-cli bench --rung t": "tcp thunderbolt",
    "strixd-cli logs ray ": "",
    "strixd-media e": "explain",
    "strixd-media build --cluster ask.zs": "ask.zsh",
    "strixd-media build --cluster x --m": "--model",
}
FISH = """
source strixd-cli.fish
source strixd-media.fish
for line in $argv
    echo (complete -C "$line" | string replace -r '\\t.*' '')
end
"""


@pytest.fixture(scope="module")
def place(fedora: Stage, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("words")
    environment = {"PYTHONPATH": str(PROJECT), "SOURCE_DATE_EPOCH": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    run([sys.executable, PROJECT / "packaging/generate.py", made], env=environment)
    (made / "ask.fish").write_text(FISH)
    ours = (PROJECT / "packaging").glob("*.[158]")
    return fedora.put("words", [*made.iterdir(), *ours, *(Path(__file__).parent / "files").glob("*.zsh")])


def test_manuals_are_mdoc(fedora: Stage, place: str) -> None:
    assert fedora.sh(f"cd {place}; mandoc -T lint -W warning *.[158]") == ""


@pytest.mark.parametrize("shell", ["fish --no-config ask.fish", "zsh -f $PWD/ask.zsh"], ids=["fish", "zsh"])
def test_shells_complete(fedora: Stage, place: str, shell: str) -> None:
    said = fedora.sh(f'cd {place}; {shell} "$@"', *LINES)
    assert [" ".join(sorted(line.split())) for line in said.splitlines()] == list(LINES.values())
