"""A program as its own tables describe it: what shells and readers are told of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from strixd.cli.grammar import Command, Option, Word
from strixd.cli.words import COMMANDS, EVERYWHERE, EXIT_STATUSES, VERSION

FILES = frozenset({"FILE", "PATH", "DIR"})
"""The names of values and of places where a file is meant."""
COMMAND, SUBCOMMAND = "COMMAND", "SUBCOMMAND"


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    about: str
    commands: tuple[Command, ...]
    everywhere: tuple[Option, ...]
    alone: tuple[Option, ...]
    """Options that stand without a command."""
    statuses: dict[int, str]

    def options(self) -> tuple[Option, ...]:
        """Each spelling once. An option that takes a value takes one in every command: so can a line be read without
        knowing its command."""
        every = (*self.everywhere, *self.alone, *(option for each in self.commands for option in each.options))
        found: dict[str, Option] = {}
        for option in every:
            if found.setdefault(option.name, option).value != option.value:
                raise ValueError(f"{option.name} has two values: {option.value} and {found[option.name].value}")
        return tuple(found.values())

    def line(self) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
        """What may come after the words said so far: the words, and each next word with what it is for."""
        firsts: dict[str, list[tuple[str, str]]] = {"": []}
        for command in self.commands:
            words = command.name.split()
            for at, word in enumerate(words):
                told = command.about if at == len(words) - 1 else f"more commands: {word} ..."
                rows = firsts.setdefault(" ".join(words[:at]), [])
                rows += [] if word in dict(rows) else [(word, told)]
        return [(said, tuple(rows)) for said, rows in firsts.items()]

    def choices(self, word: Word) -> tuple[str, ...]:
        """The commands, where one is named."""
        return tuple(dict(dict(self.line())[""])) if word.name == COMMAND else word.choices


def spellings(options: Iterable[Option]) -> list[str]:
    return list(chain.from_iterable((each.name, *([f"-{each.short}"] if each.short else [])) for each in options))


CLI = Program(
    name="strixd-cli",
    about="ask and command the strixd of this host",
    commands=COMMANDS,
    everywhere=EVERYWHERE,
    alone=(VERSION,),
    statuses=EXIT_STATUSES,
)
