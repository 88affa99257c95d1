"""Which versions are known to break these machines: known.toml of this package, and /etc/strixd/known.toml over it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from strixd.decode import decode
from strixd.errors import ConfigError

SHIPPED = Path(__file__).with_name("known.toml")
OVER = "/etc/strixd/known.toml"


@dataclass(frozen=True, slots=True)
class Versions:
    """The least that works, and later ones that do not."""

    least: str
    bad: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Numbers:
    """The same where a version is one number."""

    least: int
    bad: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Cards:
    """Least firmware by the name of the card's driver."""

    least: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Known:
    linux_firmware: Versions
    mes: Numbers
    kernel: Versions
    nic: Cards


def known(over: str | None) -> Known:
    """`over`: the text of the administrator's file, None when there is none. Raises ConfigError."""
    told = tomllib.loads(SHIPPED.read_text())
    for name, table in _parsed(over).items():
        told[name] = {**told.get(name, {}), **table} if isinstance(table, dict) else table
    decoded = decode(Known, told)
    if decoded.value is None:
        raise ConfigError(tuple(f"{OVER}:0: {each}" for each in decoded.problems))
    return decoded.value


def _parsed(text: str | None) -> dict[str, object]:
    try:
        return tomllib.loads(text or "")
    except tomllib.TOMLDecodeError as error:
        raise ConfigError((f"{OVER}:0: not valid TOML: {error}",)) from None


def ordered(version: str) -> tuple[int, ...]:
    """Numbers to compare: 6.18.4-200.fc43 → (6, 18, 4). What follows a dash is the packager's."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0]))


def older(version: str, least: str) -> bool:
    return ordered(version) < ordered(least)


def same(version: str, other: str) -> bool:
    return ordered(version) == ordered(other)
