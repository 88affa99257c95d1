"""dict → frozen dataclass, every problem at once; used for cluster.toml and for the parameters of commands.

The dataclass is the schema: names, types and defaults of its fields say what may be written. Types: str, int,
bool, Literal of strings, tuple[X, ...], Mapping[str, X], X | None, and further such dataclasses; a field may
narrow one, `Annotated[int, check]`, where check(value) answers the words of a complaint, or "". Another
annotation is a bug (TypeError). Problems are answered, never raised; how they are shown is the caller's affair.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
KeyPath = tuple[str | int, ...]  # ("node", 0, "role"); positions count from 0 here, from 1 where people read them
Check = Callable[[Any], str]

MOST_PROBLEMS: Final = 200  # beyond these they are counted: a request must not buy memory or time with its mistakes
_BARE_KEY = re.compile("[A-Za-z0-9_-]{1,60}")
_LONGEST_QUOTE = 60
_GREATEST = 1e15  # of a record's numbers: seconds and bytes are less; neither infinity nor NaN is


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with the value at one place."""

    path: KeyPath
    words: str

    def __str__(self) -> str:
        return f"{spelled(self.path)}: {self.words}" if self.path else self.words


@dataclass(frozen=True, slots=True)
class Decoded(Generic[T]):
    """`value` is None when there are problems. `sound` has every field that is right, defaults included, by
    its path, so that rules across keys can be judged beside a mistake somewhere else."""

    value: T | None
    problems: tuple[Problem, ...]
    sound: Mapping[KeyPath, object]


def dashed(name: str) -> str:
    """ray_port → ray-port, as keys are written in TOML."""
    return name.replace("_", "-")


def camel(name: str) -> str:
    """dry_run → dryRun, as fields are written in Varlink."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def decode(kind: type[T], data: object, *, key: Callable[[str], str] = dashed) -> Decoded[T]:
    """Read `data` (as tomllib and json give it) as a `kind`. `key` spells a field's name as it is written in
    the data; the field's metadata may name another: `field(metadata={"key": "node"})`."""
    reader = _Reader(key)
    value = reader.table(kind, data, ())
    problems = reader.all_problems()
    return Decoded(None if problems or isinstance(value, _Bad) else value, problems, reader.sound)


def known(kind: type[object], record: Mapping[str, object]) -> dict[str, Any]:
    """What this version knows of a record of its own: a later version, from which somebody went back, may have written
    more. Words and numbers are of their type, and finite. Raises ValueError where they are not, and where nothing is
    known."""
    assert is_dataclass(kind)
    if not isinstance(record, Mapping):
        raise ValueError(f"{quoted(record)} is no record")
    types = get_type_hints(kind)
    found = {each.name: record[each.name] for each in fields(kind) if each.name in record}
    if record and not found:
        raise ValueError(f"nothing of {listed(tuple(record), 'and')} is known")
    if wrong := [name for name, value in found.items() if not _fits(types[name], value)]:
        raise ValueError(f"{listed(wrong, 'and')} cannot be read")
    return found


def _fits(kind: object, value: object) -> bool:
    """Of words and numbers; what is made of parts is for whoever reads the parts."""
    if kind in (int, float):
        return type(value) in (int, kind) and abs(cast(float, value)) <= _GREATEST
    return type(value) is kind or kind not in (str, bool)


def leaves(
    value: object, path: KeyPath = (), *, key: Callable[[str], str] = dashed
) -> Iterator[tuple[KeyPath, object]]:
    """Every value in a decoded dataclass with its path: the way back from decode()."""
    if is_dataclass(value):
        for each in fields(value):
            yield from leaves(getattr(value, each.name), (*path, _written(each, key)), key=key)
    elif isinstance(value, tuple) and any(is_dataclass(item) for item in value):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index), key=key)
    else:
        yield path, value


def spelled(path: KeyPath) -> str:
    """("node", 1, "role") → node[2].role, always on one line."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            text += ("." if text else "") + (part if _BARE_KEY.fullmatch(part) else quoted(part))
    return text


def quoted(value: object) -> str:
    """A value of somebody else's for a message: on one line, without control characters, not too long."""
    text = str(value)
    short = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"
    return f'"{short}"' if short.isprintable() else json.dumps(short)


def closest(word: str, choices: Iterable[str]) -> str:
    """What was probably meant by a mistyped word, or ""."""
    by_case = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(word[:_LONGEST_QUOTE].casefold(), by_case, n=1)
    return by_case[near[0]] if near else ""


def listed(choices: Iterable[str], last: str = "or") -> str:
    """a, b or c."""
    *rest, end = choices
    return f"{', '.join(rest)} {last} {end}" if rest else end


class _Bad:
    """Stands where no value could be read; the problem has been noted."""


_BAD: Final = _Bad()
_SCALARS: Final[Mapping[object, str]] = {str: "a string", int: "an integer", bool: "true or false"}
_SEEN: Final[Mapping[type, str]] = {
    bool: "a boolean",
    int: "an integer",
    float: "a floating-point number",
    str: "a string",
    list: "an array",
    dict: "a table",
    type(None): "null",
}


def _kind_of(raw: object) -> str:
    return _SEEN.get(type(raw), "a date or time")


def _written(each: Field[Any], key: Callable[[str], str]) -> str:
    return str(each.metadata.get("key") or key(each.name))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


class _Reader:
    """One decode under way: what has been read and what was wrong so far."""

    def __init__(self, key: Callable[[str], str]) -> None:
        self.key = key
        self.problems: list[Problem] = []
        self.unlisted = 0
        self.sound: dict[KeyPath, object] = {}

    def bad(self, path: KeyPath, words: str) -> _Bad:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(path, words))
        else:
            self.unlisted += 1
        return _BAD

    def all_problems(self) -> tuple[Problem, ...]:
        more = [Problem((), f"{self.unlisted} further problems are not listed")] if self.unlisted else []
        return (*self.problems, *more)

    def table(self, kind: type[T], raw: object, path: KeyPath) -> T | _Bad:
        if not isinstance(raw, Mapping):
            return self.bad(path, f"must be a table, not {_kind_of(raw)}")
        known = {_written(each, self.key): each for each in fields(kind)}  # type: ignore[arg-type]
        self.unknown(raw, known, path)
        values = {each.name: self.member(kind, each, raw, (*path, name)) for name, each in known.items()}
        return _BAD if any(value is _BAD for value in values.values()) else kind(**values)

    def unknown(self, raw: Mapping[str, object], known: Iterable[str], path: KeyPath) -> None:
        for name in raw:
            if name not in known:
                full = len(self.problems) >= MOST_PROBLEMS
                self.bad((*path, name), "" if full else f"unknown key; {_meant(name, known)}")

    def member(self, kind: type, each: Field[Any], raw: Mapping[str, object], path: KeyPath) -> object:
        name = path[-1]
        if name in raw:
            value = self.value(_hints(kind)[each.name], raw[str(name)], path)
            if value is not _BAD:
                self.sound[path] = value
            return value
        value = each.default if each.default_factory is MISSING else each.default_factory()
        if value is MISSING:
            return self.bad(path, "missing, and there is no default")
        self.sound.update(leaves(value, path, key=self.key))
        return value

    def value(self, hint: Any, raw: object, path: KeyPath) -> object:
        origin = get_origin(hint)
        if origin in _READERS:
            return _READERS[origin](self, hint, raw, path)
        if is_dataclass(hint):
            return self.table(hint, raw, path)  # type: ignore[arg-type]
        return self.scalar(hint, raw, path)

    def scalar(self, hint: Any, raw: object, path: KeyPath) -> object:
        if hint not in _SCALARS:
            raise TypeError(f"{spelled(path)}: decode does not know the annotation {hint}")
        if type(raw) is not hint:  # exactly: a bool is an int to Python, and not to anybody who writes a file
            return self.bad(path, f"must be {_SCALARS[hint]}, not {_kind_of(raw)}")
        return raw

    def narrowed(self, hint: Any, raw: object, path: KeyPath) -> object:
        inner, *checks = get_args(hint)
        value = self.value(inner, raw, path)
        if value is _BAD:
            return _BAD
        complaints = [words for check in checks if (words := check(value))]
        for words in complaints:
            self.bad(path, words)
        return _BAD if complaints else value

    def choice(self, hint: Any, raw: object, path: KeyPath) -> object:
        choices = get_args(hint)
        if raw in choices and isinstance(raw, str):
            return raw
        seen = quoted(raw) if isinstance(raw, str) else _kind_of(raw)
        near = closest(raw, choices) if isinstance(raw, str) else ""
        meant = f"; did you mean {near}?" if near else ""
        return self.bad(path, f"must be {listed(choices)}, not {seen}{meant}")

    def array(self, hint: Any, raw: object, path: KeyPath) -> object:
        if not isinstance(raw, list):
            return self.bad(path, f"must be an array, not {_kind_of(raw)}")
        inner = get_args(hint)[0]
        values = tuple(self.value(inner, item, (*path, index)) for index, item in enumerate(raw))
        return _BAD if any(value is _BAD for value in values) else values

    def mapping(self, hint: Any, raw: object, path: KeyPath) -> object:
        if not isinstance(raw, Mapping):
            return self.bad(path, f"must be a table, not {_kind_of(raw)}")
        name_hint, inner = get_args(hint)
        names = [self.value(name_hint, name, (*path, name)) for name in raw]
        values = [self.value(inner, item, (*path, name)) for name, item in raw.items()]
        good = all(part is not _BAD for part in (*names, *values))
        return dict(zip(raw, values, strict=True)) if good else _BAD

    def optional(self, hint: Any, raw: object, path: KeyPath) -> object:
        inner = next(each for each in get_args(hint) if each is not type(None))
        return None if raw is None else self.value(inner, raw, path)


def _meant(name: str, known: Iterable[str]) -> str:
    near = closest(name, known)
    return f"did you mean {near}?" if near else f"known here: {', '.join(known)}"


_READERS: Final[Mapping[Any, Callable[[_Reader, Any, object, KeyPath], object]]] = {
    Annotated: _Reader.narrowed,
    Literal: _Reader.choice,
    tuple: _Reader.array,
    Mapping: _Reader.mapping,
    dict: _Reader.mapping,
    typing.Union: _Reader.optional,
    types.UnionType: _Reader.optional,
}
