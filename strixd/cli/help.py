"""help: the table of words.py for people."""

from __future__ import annotations

import re
import textwrap

from strixd.cli.grammar import Command, Option, Word
from strixd.cli.parse import Asked, meant
from strixd.cli.terminal import say
from strixd.cli.words import COMMANDS, EVERYWHERE, EXIT_STATUSES, VERSION
from strixd.errors import Refused


def help_command(asked: Asked) -> int:
    wanted = " ".join(asked.words.values())
    say("\n".join(on(wanted) if wanted else overview()))
    return 0


def overview() -> list[str]:
    lines = ["strixd-cli COMMAND ...   asks and commands the strixd of this host", "", "Commands:"]
    lines += [_row(command.name, command.about) for command in COMMANDS]
    lines += ["", "Options:", *(_row(_spelled(option), option.about) for option in (*EVERYWHERE, VERSION))]
    lines += ["", "Exit statuses:", *(_row(str(code), what) for code, what in EXIT_STATUSES.items())]
    return [*lines, "", '"strixd-cli help COMMAND" tells more about one of them.']


def on(name: str) -> list[str]:
    """One command, or all of a group. Raises Refused when there is none of this name."""
    found = [each for each in COMMANDS if each.name == name or each.name.startswith(f"{name} ")]
    if not found:
        names = [command.name for command in COMMANDS]
        raise Refused(f'there is no command "{name}"{meant(name, names)}', hint='"strixd-cli help" lists all commands')
    return [line for command in found for line in ([] if command is found[0] else ["", ""]) + _page(command)]


def _page(command: Command) -> list[str]:
    lines = [*_wrapped(usage(command)), "", f"  {command.about}", ""]
    if command.detail:
        lines += [*textwrap.wrap(command.detail, 78, initial_indent="  ", subsequent_indent="  "), ""]
    rows = [_row(word.name, _about(word)) for word in command.words]
    rows += [_row(_spelled(option), option.about) for option in (*command.options, *EVERYWHERE)]
    return [*lines, *rows, "", "For example:", *(f"  {example}" for example in command.examples)]


def usage(command: Command) -> str:
    parts = ["strixd-cli", command.name]
    parts += [f"[{word.name}]" if word.optional else word.name for word in command.words]
    parts += [f"[{option.name}{' ' if option.value else ''}{option.value}]" for option in command.options]
    return " ".join([*parts, f"[-- {command.rest}...]"] if command.rest else parts)


def _wrapped(line: str) -> list[str]:
    """What stands in brackets stays together."""
    whole = re.sub(r"\[.*?\]", lambda part: part[0].replace(" ", "\0"), line)
    rows = textwrap.wrap(whole, 80, subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False)
    return [row.replace("\0", " ") for row in rows]


def _about(word: Word) -> str:
    return f"{word.about}: {', '.join(word.choices)}" if word.choices else word.about


def _spelled(option: Option) -> str:
    short = f"-{option.short}, " if option.short else ""
    return f"{short}{option.name}{' ' if option.value else ''}{option.value}"


def _row(left: str, right: str) -> str:
    lines = textwrap.wrap(right, 58) or [""]
    return "\n".join([f"  {left:<19} {lines[0]}", *(" " * 22 + line for line in lines[1:])])
