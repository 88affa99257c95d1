"""What packages provide and require, and whether the one meets the other, as dnf's solver decides it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

_PART = re.compile(r"[0-9]+|[A-Za-z]+|~|\^")
_END = (1, 0, "")
_MARKS = {"~": 0, "^": 2}
_SIGNS: Final = {"": "", "EQ": "=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_FLAGS: Final = {sign: flags for flags, sign in _SIGNS.items()}
_OPERATORS = ("and", "or", "with", "without", "if", "unless", "else")


@dataclass(frozen=True, slots=True)
class Capability:
    """As in a repository's primary.xml: `flags` is EQ, LT, LE, GT or GE, "" for any version."""

    name: str
    flags: str = ""
    epoch: str = ""
    version: str = ""
    release: str = ""

    def __str__(self) -> str:
        if not self.flags:
            return self.name
        epoch = f"{self.epoch}:" if self.epoch not in ("", "0") else ""
        return f"{self.name} {_SIGNS[self.flags]} {epoch}{self.version}" + (f"-{self.release}" if self.release else "")


@dataclass(frozen=True, slots=True)
class Package:
    """`version` without epoch and release. A file that it has is among what it provides."""

    name: str
    version: str
    provides: tuple[Capability, ...] = ()
    requires: tuple[Capability, ...] = ()


@dataclass(frozen=True, slots=True)
class Rich:
    """A rich dependency, which stands in one name: "(a >= 1 with a < 2)"."""

    operator: str
    operands: tuple[Capability | Rich, ...]


def meets(provided: Capability, required: Capability) -> bool:
    """A version is met by none that says no version (so libsolv; rpm itself is not so strict)."""
    has, wants = _SIGNS[provided.flags], _SIGNS[required.flags]
    if provided.name != required.name or (wants and not has):
        return False
    mine, other = _key(provided, required), _key(required, provided)
    if not wants or mine == other:
        return not wants or any(sign in wants for sign in has)
    return ">" in has or "<" in wants if mine < other else "<" in has or ">" in wants


def _key(one: Capability, beside: Capability) -> tuple[object, ...]:
    """The release counts only when both name one."""
    release = order(one.release) if one.release and beside.release else ()
    return int(one.epoch or 0), order(one.version), release


def order(version: str) -> tuple[tuple[int, int, str], ...]:
    """A key by which versions sort as rpm's rpmvercmp() sorts them: 1~rc < 1 < 1^git < 1a < 1.1."""
    return (*map(_part, _PART.findall(version)), _END)


def _part(word: str) -> tuple[int, int, str]:
    return (4, int(word), "") if word.isdigit() else (_MARKS.get(word, 3), 0, word)


def read(required: Capability) -> Capability | Rich:
    """What a requirement means: most are what they are."""
    return _read(_words(required.name[1:])) if required.name.startswith("(") else required


def holds(required: Capability | Rich, met: Callable[[Capability], bool]) -> bool:
    """Whether it can be met. What is to be there "if" something else is, is to be there when that can be."""
    if isinstance(required, Capability):
        return met(required)
    truths = [holds(each, met) for each in required.operands]
    if required.operator == "if":
        return truths[0] if truths[1] else all(truths[2:3])
    if required.operator in ("or", "unless"):
        return any(truths)
    return truths[0] if required.operator == "without" else all(truths)


def atoms(required: Capability | Rich) -> Iterator[Capability]:
    """All that are named in it."""
    if isinstance(required, Capability):
        yield required
    else:
        for each in required.operands:
            yield from atoms(each)


def _read(words: Iterator[str]) -> Rich:
    """Up to the parenthesis that ends it."""
    operators: list[str] = []
    operands: list[Capability | Rich] = []
    plain: list[str] = []
    for word in words:
        if word == "(":
            operands.append(_read(words))
        elif word == ")" or word in _OPERATORS:
            operands += [_capability(*plain)] if plain else []
            plain = []
            if word == ")":
                break
            operators.append(word)
        else:
            plain.append(word)
    return Rich(operators[0] if operators else "and", tuple(operands))


def _words(text: str) -> Iterator[str]:
    """A parenthesis is a word of its own unless it belongs to a name: "a(x) >= 1)" → "a(x)", ">=", "1", ")"."""
    for word in text.split():
        name = word.lstrip("(")
        yield from "(" * (len(word) - len(name))
        ends = name.count(")") - name.count("(")
        yield name[: len(name) - ends]
        yield from ")" * ends


def _capability(name: str, sign: str = "", version: str = "") -> Capability:
    epoch, _, rest = version.rpartition(":")
    number, _, release = rest.partition("-")
    return Capability(name, _FLAGS[sign], epoch, number, release)
