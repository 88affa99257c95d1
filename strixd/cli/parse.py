"""argv → what was asked, by the table in words.py. Every mistake is one sentence that says what was meant."""

from __future__ import annotations

import os
from collections.abc import Iterable

from strixd.api.wire import ADDRESS
from strixd.cli.grammar import Command, Option, Word
from strixd.cli.words import COMMANDS, EVERYWHERE, VERSION
from strixd.errors import Refused

_BY_NAME = {command.name: command for command in COMMANDS}
_GROUPS = {name.split()[0] for name in _BY_NAME if " " in name}
HELP_COMMAND = _BY_NAME["help"]


class Asked:
    """A command line that makes sense. `words` by the names of their places, `given` by the names of options."""

    __slots__ = ("command", "given", "rest", "words")

    def __init__(self, command: Command) -> None:
        self.command = command
        self.words: dict[str, str] = {}
        self.given: dict[str, str] = {}
        self.rest: tuple[str, ...] = ()

    @property
    def socket(self) -> str:
        return self.given.get("--socket") or os.environ.get("STRIXD_SOCKET") or ADDRESS

    def has(self, option: str) -> bool:
        return option in self.given

    def number(self, option: str) -> int | None:
        text = self.given.get(option)
        return None if text is None else int(text)


def parse(arguments: list[str]) -> Asked:
    """Raises Refused."""
    line, rest = _split(arguments)
    asked, words = _read(line)
    if asked.has("--help"):
        return _help_on(asked)
    _place(asked, words)
    if rest and not asked.command.rest:
        raise _wrong(asked.command, f'takes nothing after "--", so not "{rest[0]}"')
    asked.rest = rest
    return asked


def _split(arguments: list[str]) -> tuple[list[str], tuple[str, ...]]:
    if "--" not in arguments:
        return list(arguments), ()
    at = arguments.index("--")
    return arguments[:at], tuple(arguments[at + 1 :])


def _read(line: list[str]) -> tuple[Asked, list[str]]:
    """The command and its options; the other words are still to be placed."""
    asked: Asked | None = None
    given: dict[str, str] = {}
    words: list[str] = []
    while line:
        token = line.pop(0)
        if token.startswith("-") and token != "-":
            _option(token, line, given, asked.command if asked else None)
        elif asked is None:
            asked = _command(token, line)
        else:
            words.append(token)
    asked = asked or _without_command(given)
    asked.given = given
    return asked, words


def _without_command(given: dict[str, str]) -> Asked:
    if "--version" in given:
        return Asked(_BY_NAME["version"])
    if "--help" in given:
        return Asked(HELP_COMMAND)
    raise Refused("no command is given", hint='"strixd-cli help" lists them; "strixd-cli status" is a good first one')


def _help_on(asked: Asked) -> Asked:
    return asked if asked.command is HELP_COMMAND else _help(asked.command.name)


def _help(name: str) -> Asked:
    """On a command or a group of them."""
    asked = Asked(HELP_COMMAND)
    asked.words = dict(zip(("COMMAND", "SUBCOMMAND"), name.split(), strict=False))
    return asked


def _command(token: str, line: list[str]) -> Asked:
    if token in _GROUPS:
        return _subcommand(token, line)
    if token in _BY_NAME:
        return Asked(_BY_NAME[token])
    names = {name.split()[0] for name in _BY_NAME}
    raise Refused(f'there is no command "{token}"{meant(token, names)}', hint='"strixd-cli help" lists all commands')


def _subcommand(group: str, line: list[str]) -> Asked:
    seconds = [name.split()[1] for name in _BY_NAME if name.startswith(f"{group} ")]
    if line and not line[0].startswith("-"):
        second = line.pop(0)
        if second in seconds:
            return Asked(_BY_NAME[f"{group} {second}"])
        problem = f'there is no command "{group} {second}"{meant(second, seconds)}'
    elif "--help" in line or "-h" in line:
        return _help(group)
    else:
        problem = f'"{group}" needs one more word: {" or ".join(seconds)}'
    raise Refused(problem, hint=" or ".join(f'"strixd-cli {group} {second}"' for second in seconds))


def _option(token: str, line: list[str], given: dict[str, str], command: Command | None) -> None:
    name, equals, value = token.partition("=")
    option = _known(name, command)
    if not option.value:
        if equals:
            raise _wrong(command, f'{option.name} takes no value, so not "{value}"')
    elif not equals:
        if not line:
            raise _wrong(command, f"{option.name} needs a value: {option.name} {option.value}")
        value = line.pop(0)
    if option.number and not _is_number(value):
        raise _wrong(command, f'{option.name} needs a whole number, not "{value}"')
    if option.choices and value not in option.choices:
        raise _wrong(command, f"{option.name}: {_no_choice(value, option.choices)}")
    given[option.name] = value


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _known(name: str, command: Command | None) -> Option:
    options = (*EVERYWHERE, *(command.options if command else (VERSION,)))
    for option in options:
        if name in (option.name, f"-{option.short}"):
            return option
    if command is None and any(name == option.name for each in COMMANDS for option in each.options):
        raise _wrong(None, f'the option "{name}" comes after its command')
    problem = f'there is no option "{name}"{meant(name, [option.name for option in options])}'
    if command is not None and command.rest:
        problem += f'; options for vllm come after "--": strixd-cli {command.name} {command.words[0].name} -- {name}'
    raise _wrong(command, problem)


def _place(asked: Asked, words: list[str]) -> None:
    places = asked.command.words
    for place in places[len(words) :]:
        if not place.optional:
            raise _wrong(asked.command, f"{place.name} is missing ({place.about})")
    if len(words) > len(places):
        after = '; arguments for vllm come after "--"' if asked.command.rest else ""
        raise _wrong(asked.command, f'"{words[len(places)]}" is one word too many{after}')
    for place, word in zip(places, words, strict=False):
        asked.words[place.name] = _chosen(asked.command, place, word)


def _chosen(command: Command, place: Word, word: str) -> str:
    if place.choices and word not in place.choices:
        raise _wrong(command, _no_choice(word, place.choices))
    if place.number and not _is_number(word):
        raise _wrong(command, f'{place.name} needs a whole number, not "{word}"')
    return word


def _no_choice(word: str, choices: tuple[str, ...]) -> str:
    return f'"{word}" is none of {", ".join(choices)}{meant(word, choices)}'


def _wrong(command: Command | None, problem: str) -> Refused:
    if command is None:
        return Refused(problem, hint='"strixd-cli help" lists commands and options')
    return Refused(f"{command.name}: {problem}", hint=f"for example: {command.examples[0]}")


def meant(word: str, choices: Iterable[str]) -> str:
    from strixd.decode import closest  # costs more than a whole good start

    near = closest(word, choices)
    return f'; did you mean "{near}"?' if near else ""
