"""What the laboratory runs on this machine comes with a package that it installs, or is on every machine: a program
that is there by chance here is missing on the next."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import machine

TESTS = Path(__file__).parents[1]
MODULES = sorted(path for folder in ("lab", "e2e", "rpm", "vm", "faults") for path in (TESTS / folder).glob("*.py"))
RUNNERS = {"run", "attempt", "Popen"}
# coreutils, util-linux, dpkg and bash, which Debian cannot be without, and the Python that runs all this.
ALWAYS = {"bash", "chroot", "cp", "env", "mount", "python3", "rm", "sh", "truncate", "umount", "unshare"}
ALWAYS |= {"apt-get", "dpkg-deb"}  # where there is no apt-get the laboratory does not ask for them
BROUGHT_ALONG = {"mmd": "mcopy", "mtype": "mcopy", "rpm": "rpmbuild"}
# Where the program may begin that they run.
WRAPPERS = {"nsenter": 1, "unshare": 1, "ip": 4}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(TESTS)))
def test_a_program_is_one_that_a_named_package_brings(module: Path) -> None:
    named = {BROUGHT_ALONG.get(program, program) for program in programs(module.read_text())}
    assert named <= ALWAYS | {*machine.NEEDED} | {*machine.NEEDED_BY_VM}


def test_what_a_program_runs_in_a_namespace_counts() -> None:
    assert programs('run(["ip", "netns", "exec", "cable", "nft"])') == {"ip", "nft"}
    assert programs('way = ("nsenter", f"--net={place}", "tcpdump", "-n")') == {"nsenter", "tcpdump"}
    assert programs('attempt(["ip", "link", "add", "x", "type", "dummy"]); host.run(["podman"])') == {"ip"}


def programs(source: str) -> set[str]:
    return {name for node in ast.walk(ast.parse(source)) for words in _commands(node) for name in _named(words)}


def _commands(node: ast.AST) -> Iterator[list[ast.expr]]:
    """Displays that a runner is called with, and those that begin with a wrapper, wherever they stand."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RUNNERS:
        yield from [each.elts for each in node.args[:1] if isinstance(each, ast.List)]
    elif isinstance(node, ast.List | ast.Tuple) and node.elts and _word(node.elts[0]) in WRAPPERS:
        yield node.elts


def _named(words: list[ast.expr]) -> Iterator[str]:
    first = _word(words[0])
    yield from [first] if first else []
    if first == "ip" and [_word(each) for each in words[1:3]] != ["netns", "exec"]:
        return
    if first in WRAPPERS:
        inner = [_word(each) for each in words[WRAPPERS[first] :]]
        yield from [word for word in inner if word and not word.startswith("-") and word != "private"][:1]


def _word(element: ast.expr) -> str:
    return element.value if isinstance(element, ast.Constant) and isinstance(element.value, str) else ""
