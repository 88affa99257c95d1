"""A program as its own tables describe it: what shells and readers are told of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from strixd.cli.grammar import Command, Option, Word
from strixd.cli.words import COMMANDS, EVERYWHERE, EXIT_STATUSES, HELP, VERSION
from strixd.media.program import parser

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


def _parsed(whole: argparse.ArgumentParser) -> Program:
    """A program whose words are argparse's own objects; what they are made of is not public, and has not changed in
    ten years."""
    (commands,) = (each for each in whole._actions if isinstance(each, argparse._SubParsersAction))
    about = {each.dest: str(each.help) for each in commands._choices_actions}
    return Program(
        name=whole.prog,
        about=str(whole.description),
        commands=tuple(Command(name, "", about[name], options=_given(each)) for name, each in commands.choices.items()),
        everywhere=(HELP,),
        alone=_given(whole),
        statuses={},
    )


def _given(parser: argparse.ArgumentParser) -> tuple[Option, ...]:
    return tuple(_option(each) for each in parser._actions if each.option_strings and each.dest != "help")


def _option(action: argparse.Action) -> Option:
    named = "FILE" if action.type is Path else str(action.metavar)
    return Option(action.option_strings[-1], str(action.help), value="" if action.nargs == 0 else named)


MEDIA = _parsed(parser())
