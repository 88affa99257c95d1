"""Every wrong file gets all of its complaints, each with its line and key, and no others."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strixd import config
from strixd.errors import ConfigError

CASES = Path(__file__).parents[1] / "cases" / "config"
WRONG: list[dict[str, Any]] = [
    case for name in ("wrong.toml", "more-wrong.toml") for case in tomllib.loads((CASES / name).read_text())["case"]
]
COMPLAINT = re.compile(r'FILE:(\d+): (?:((?:[\w-]|\[\d+\]|"[^"]*"|\.)+): )?(.+)')


def complaints_about(text: str) -> list[tuple[int, str, str]]:
    """Line, key and whole complaint; the key of broken TOML is ""."""
    with pytest.raises(ConfigError) as caught:
        config.parse(text, "FILE")
    assert str(caught.value).splitlines() == list(caught.value.complaints)
    matches = [COMPLAINT.fullmatch(complaint) for complaint in caught.value.complaints]
    return [(int(match[1]), match[2] or "", match[0]) for match in matches if match]


def test_there_are_many_wrong_files() -> None:
    assert len({case["text"] for case in WRONG}) == len(WRONG) >= 40


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case["name"])
def test_wrong_file(case: dict[str, Any]) -> None:
    found = complaints_about(case["text"])
    wanted = sorted((want["line"], want["key"]) for want in case["wants"])
    assert sorted((line, key) for line, key, _ in found) == wanted
    assert [line for line, _, _ in found] == sorted(line for line, _, _ in found)
    for want in case["wants"]:
        here = [text.casefold() for line, key, text in found if (line, key) == (want["line"], want["key"])]
        assert any(all(word.casefold() in text for word in want["words"]) for text in here), here


def test_lines_are_the_same_with_other_line_ends() -> None:
    for case in WRONG:
        assert complaints_about(case["text"].replace("\n", "\r\n")) == complaints_about(case["text"])


def test_a_whole_file_of_mistakes_is_told_at_once() -> None:
    """All that the wrong files of the cases have to say about nodes and sections, in one."""
    text = (CASES / "full.toml").read_text()
    for good, bad in [("6379", '"6379"'), ("9000 ", "9000.0 "), ('"124GiB"', '"124"'), ('"head"  ', '"wroker"')]:
        text = text.replace(good, bad, 1)
    text = text.replace("halo3", "halo2").replace("192.168.100.3/29", "192.168.100.2/29")
    keys = [key for _, key, _ in complaints_about(text)]
    assert keys == [
        "cluster.ray-port",
        "fabric.mtu",
        "kernel.gtt",
        "node[1].role",
        "node[3].name",
        "node[3].address",
    ]


VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["head", "10.0.0.1/29", "eth0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
SECTIONS = {
    "cluster": ["name", "ray-port"],
    "fabric": ["kind", "mtu", "zone", "management", "dscp"],
    "kernel": ["gtt", "arguments", "iommu"],
    "image": ["reference", "devices", "environment"],
    "model": ["port", "listen", "arguments", "folder", "tensor-parallel"],
    "metrics": ["listen"],
    "install": ["ssh-keys", "time-zone", "keyboard", "repository"],
}
CARDS = ["interface", "mac", "driver", "spare-interface", "spare-mac", "spare-driver"]
NODE_KEYS = ["name", "role", "address", *CARDS, "gpus", "serial", "disk", "nmae"]


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    if isinstance(value, list):
        return "[" + ",\n".join(toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items()) + "}"
    return str(value)


def pairs(keys: list[str]) -> st.SearchStrategy[str]:
    chosen = st.dictionaries(st.sampled_from(keys), VALUES, max_size=4)
    return chosen.map(lambda table: "".join(f"{key} = {toml(value)}\n" for key, value in table.items()))


SECTION = st.sampled_from(list(SECTIONS)).flatmap(lambda name: st.tuples(st.just(name), pairs(SECTIONS[name])))


@given(st.lists(SECTION, unique_by=lambda section: section[0]), st.lists(pairs(NODE_KEYS), max_size=4))
def test_any_file_is_good_or_has_complaints_that_can_be_read(sections: list[tuple[str, str]], nodes: list[str]) -> None:
    text = "".join(f"[{name}]\n{body}" for name, body in sections)
    text += "".join(f"[[node]]\n{body}" for body in nodes)
    tomllib.loads(text)
    complaints = complaints_of(text)
    lines = [int(complaint.split(":")[1]) for complaint in complaints]
    assert lines == sorted(lines)
    assert max(lines, default=0) <= text.count("\n") + 1
    assert all(len(complaint.splitlines()) == 1 for complaint in complaints)


def complaints_of(text: str) -> tuple[str, ...]:
    try:
        config.parse(text, "FILE")
    except ConfigError as error:
        return error.complaints
    return ()


@given(st.text(max_size=50))
def test_any_text_is_answered_by_name(text: str) -> None:
    with pytest.raises(ConfigError):
        config.parse(text, "FILE")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a = " + "9" * 5000, "too many digits"),
    ],
)
def test_what_python_cannot_read_is_no_crash(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config.parse(text, "FILE")
