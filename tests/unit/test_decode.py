"""decode() names every problem of arbitrary input and raises none."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strixd import decode
from strixd.decode import KeyPath, Problem


def even(value: int) -> str:
    return "" if value % 2 == 0 else "is odd"


@dataclass(frozen=True, slots=True)
class Wheel:
    size: int
    spokes: Annotated[int, even] = 32


@dataclass(frozen=True, slots=True)
class Bike:
    frame_name: str
    colour: Literal["red", "green", "blue"] = "red"
    sold: bool = False
    bell: str | None = None
    bags: tuple[Annotated[str, lambda bag: "" if bag else "is empty"], ...] = ()
    parts: Mapping[Annotated[str, lambda name: "" if name.islower() else "is not lower case"], int] = field(
        default_factory=dict
    )
    stand: Wheel = Wheel(10)
    wheels: tuple[Wheel, ...] = field(default=(), metadata={"key": "wheel"})


GOOD: dict[str, Any] = {
    "frame-name": "f",
    "colour": "blue",
    "sold": True,
    "bell": "ding",
    "bags": ["a", "b"],
    "parts": {"nut": 3},
    "stand": {"size": 1, "spokes": 2},
    "wheel": [{"size": 26}, {"size": 28, "spokes": 36}],
}
BIKE = Bike(
    "f", "blue", True, "ding", ("a", "b"), {"nut": 3}, Wheel(1, 2), (Wheel(26), Wheel(28, 36))
)  # fmt: skip


def problems(data: object) -> dict[str, str]:
    found = decode.decode(Bike, data)
    assert found.value is None
    assert found.problems
    return {decode.spelled(problem.path): problem.words for problem in found.problems}


def test_everything_given() -> None:
    found = decode.decode(Bike, GOOD)
    assert found.problems == ()
    assert found.value == BIKE


def test_defaults_are_filled_in_and_are_sound() -> None:
    found = decode.decode(Bike, {"frame-name": "f"})
    assert found.value == Bike("f")
    assert found.sound[("stand", "size")] == 10
    assert found.sound[("wheel",)] == ()


def test_null_is_a_missing_optional() -> None:
    assert decode.decode(Bike, {"frame-name": "f", "bell": None}).value == Bike("f")


def test_keys_are_spelled_as_the_caller_says() -> None:
    assert decode.decode(Bike, {"frameName": "f"}, key=decode.camel).value == Bike("f")
    assert decode.decode(Bike, {"frame_name": "f"}, key=str).value == Bike("f")
    assert "frameName" in str(decode.decode(Bike, {}, key=decode.camel).problems[0])


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"frame-name": 3}, "frame-name", ["must be a string", "an integer"]),
        ({"frame-name": None}, "frame-name", ["must be a string", "null"]),
        ({"sold": 1}, "sold", ["true or false", "an integer"]),
        ({"sold": "yes"}, "sold", ["true or false", "a string"]),
        ({"stand": {"size": True}}, "stand.size", ["an integer", "a boolean"]),
        ({"stand": {"size": 9000.0}}, "stand.size", ["an integer", "a floating-point"]),
        ({"stand": {}}, "stand.size", ["missing"]),
        ({"stand": {"size": 1, "spokes": 3}}, "stand.spokes", ["is odd"]),
        ({"stand": [1]}, "stand", ["a table", "an array"]),
        ({"stand": {"size": 1, "spoke": 4}}, "stand.spoke", ["unknown", "did you mean spokes?"]),
        ({"colour": "gren"}, "colour", ["red, green or blue", '"gren"', "did you mean green?"]),
        ({"colour": 7}, "colour", ["red, green or blue", "an integer"]),
        ({"colour": ["red"]}, "colour", ["red, green or blue", "an array"]),
        ({"bell": 1}, "bell", ["a string"]),
        ({"bags": "a"}, "bags", ["an array", "a string"]),
        ({"bags": ["a", ""]}, "bags[2]", ["is empty"]),
        ({"bags": ["a", 1]}, "bags[2]", ["a string"]),
        ({"parts": {"nut": "3"}}, "parts.nut", ["an integer"]),
        ({"parts": {"NUT": 3}}, "parts.NUT", ["lower case"]),
        ({"parts": []}, "parts", ["a table"]),
        ({"wheel": {"size": 1}}, "wheel", ["an array", "a table"]),
        ({"wheel": [{"size": 1}, 5]}, "wheel[2]", ["a table", "an integer"]),
        ({"wheel": [{"size": 1}, {"size": ""}]}, "wheel[2].size", ["an integer"]),
        ({"frame_name": "f"}, "frame_name", ["did you mean frame-name?"]),
        ({"Colour": "red"}, "Colour", ["did you mean colour?"]),
        ({"COLOUR": "red"}, "COLOUR", ["did you mean colour?"]),
        ({"zzz": 1}, "zzz", ["unknown key", "known here: frame-name, colour"]),
        ({"two\nlines": 1}, '"two\\nlines"', ["unknown key"]),
    ],
)
def test_one_problem_by_name(change: dict[str, Any], key: str, words: list[str]) -> None:
    found = problems(GOOD | change)
    assert list(found) == [key]
    for word in words:
        assert word in found[key]


def test_every_problem_at_once() -> None:
    data = {"sold": 1, "colour": "x", "wheel": [{"spokes": 1}], "bogus": 2}
    assert set(problems(data)) == {
        "frame-name",
        "sold",
        "colour",
        "wheel[1].size",
        "wheel[1].spokes",
        "bogus",
    }


def test_what_is_right_beside_a_mistake_is_sound() -> None:
    sound = decode.decode(Bike, {"frame-name": "f", "wheel": [{"size": 1, "spokes": 3}]}).sound
    assert sound[("wheel", 0, "size")] == 1
    assert ("wheel", 0, "spokes") not in sound
    assert ("wheel",) not in sound


@pytest.mark.parametrize("data", [None, 5, "x", [1], True])
def test_no_table_at_all(data: object) -> None:
    found = decode.decode(Bike, data)
    assert [problem.path for problem in found.problems] == [()]
    assert str(found.problems[0]).startswith("must be a table")


@dataclass(frozen=True, slots=True)
class Weird:
    value: complex = 0j


def test_an_annotation_it_does_not_know_is_a_bug() -> None:
    with pytest.raises(TypeError, match=r"value: .*complex"):
        decode.decode(Weird, {"value": 1})


def test_leaves_is_the_way_back() -> None:
    found = decode.decode(Bike, GOOD)
    pairs = dict(decode.leaves(found.value))
    assert pairs[("wheel", 1, "spokes")] == 36
    assert pairs[("parts",)] == {"nut": 3}
    assert pairs.items() <= found.sound.items()


def test_many_mistakes_are_counted_and_cost_little() -> None:
    wrong = {"frame-name": "f", "bags": [1] * 100_000} | {f"colou{n}": n for n in range(100_000)}
    began = time.process_time()
    found = decode.decode(Bike, wrong)
    assert time.process_time() - began < 2
    assert len(found.problems) == decode.MOST_PROBLEMS + 1
    assert str(found.problems[-1]) == f"{200_000 - decode.MOST_PROBLEMS} further problems are not listed"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("node", 1, "role"), "node[2].role"),
        ((), ""),
        (("a b", "c"), '"a b".c'),
        (("\x1b[31m",), '"\\u001b[31m"'),
        (("x" * 100,), '"' + "x" * 60 + '…"'),
    ],
)
def test_paths_as_people_read_them(path: KeyPath, text: str) -> None:
    assert decode.spelled(path) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
NEAR = st.fixed_dictionaries({}, optional={key: st.just(value) | JSON for key, value in GOOD.items()})


@given(JSON | NEAR)
def test_any_input_gives_a_value_or_named_problems(data: object) -> None:
    found = decode.decode(Bike, data)
    assert (found.value is None) == bool(found.problems)
    for problem in found.problems:
        assert isinstance(problem, Problem)
        assert problem.words
        assert len(str(problem).splitlines()) == 1


@given(NEAR.filter(lambda data: isinstance(data.get("frame-name"), str)))
def test_what_decodes_goes_round(data: dict[str, object]) -> None:
    found = decode.decode(Bike, data)
    if found.value is not None:
        written = dict(decode.leaves(found.value))
        assert json.dumps(written[("frame-name",)]) == json.dumps(data["frame-name"])
        assert all(found.sound[path] == value for path, value in written.items())


@given(st.text(), st.lists(st.sampled_from(["serve", "status", "stop"]), unique=True))
def test_closest_answers_a_choice_or_nothing(word: str, choices: list[str]) -> None:
    assert decode.closest(word, choices) in (*choices, "")
