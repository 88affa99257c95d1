"""cluster.toml → Config, or every complaint about it: `FILE:LINE: KEY: what is wrong`, sorted by line.

Only read() touches the disk. Line 0 is what is not in the file at all.
"""

from __future__ import annotations

import codecs
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strixd.config import rules
from strixd.config.lines import Lines, line_of, locate
from strixd.config.schema import Config
from strixd.decode import Problem, decode
from strixd.errors import ConfigError

EXPECTED_AT: Final = "/etc/strixd/cluster.toml"
ABSENT: Final = (
    f"there is no such file: strixd-cli init writes {EXPECTED_AT} by asking; cluster.toml(5) says what is in it"
)
LARGEST_FILE: Final = 1 << 20  # 64 nodes take 10 KiB
_POSITION = re.compile(r" \(at (?:line ([0-9]+), column [0-9]+|end of document)\)$")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A good file: what it says, where it says it, and its text."""

    path: str
    config: Config
    lines: Lines
    text: str


def load(path: Path) -> Config:
    """The settings in a file; raises ConfigError with every complaint."""
    return read(path).config


def read(path: Path, name: str = "") -> ConfigFile:
    """As load(), with the lines on which the settings stand; `name` is the FILE of the complaints, `path` if empty."""
    name = name or str(path)
    return parse(_text(path, name), name)


def parse(text: str, name: str) -> ConfigFile:
    """As read(), for a text; `name` is the FILE of the complaints."""
    data, lines = _values(text, name)
    decoded = decode(Config, data)
    problems = (*decoded.problems, *rules.check(rules.Written(decoded.sound, lines)))
    if problems or decoded.value is None:
        raise ConfigError(_complaints(problems, lines, name))
    return ConfigFile(name, decoded.value, lines, text)


def _complaints(problems: tuple[Problem, ...], lines: Lines, name: str) -> tuple[str, ...]:
    placed = sorted(((line_of(lines, each.path), str(each)) for each in problems), key=lambda pair: pair[0])
    return tuple(f"{name}:{line}: {words}" for line, words in placed)


def _values(text: str, name: str) -> tuple[dict[str, object], Lines]:
    try:
        return tomllib.loads(text), locate(text)
    except tomllib.TOMLDecodeError as error:
        at = _POSITION.search(str(error))
        line = int(at[1]) if at and at[1] else text.rstrip().count("\n") + 1
        raise _unusable(name, line, f"not valid TOML: {_POSITION.sub('', str(error))}") from error
    except RecursionError as error:
        raise _unusable(name, 0, "not usable TOML: arrays or tables are nested too deeply") from error
    except ValueError as error:  # Python's own limit, 4300 digits
        raise _unusable(name, 0, "not usable TOML: a number has too many digits") from error


def _text(path: Path, name: str) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except FileNotFoundError as error:
        raise ConfigError((f"{name}:0: {ABSENT}",), hint="strixd-cli init") from error
    except IsADirectoryError as error:
        raise _unusable(name, 0, "this is a directory; name the file in it") from error
    except OSError as error:
        raise _unusable(name, 0, f"cannot be read: {error.strerror}") from error
    if len(raw) > LARGEST_FILE:
        raise _unusable(name, 0, f"larger than {LARGEST_FILE >> 20} MiB, so hardly a cluster.toml")
    return _decoded(raw.removeprefix(codecs.BOM_UTF8), name)  # some editors write that mark


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        words = f"not valid TOML: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise _unusable(name, line, words) from error


def _unusable(name: str, line: int, words: str) -> ConfigError:
    return ConfigError((f"{name}:{line}: {words}",))
