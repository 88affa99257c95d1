"""strixd-cli(1) in mdoc, from the CLI's own table."""

from __future__ import annotations

import time
from collections.abc import Iterator

from program import Program

from strixd.cli.grammar import Command, Option, Word
from strixd.cli.help import usage

_HEAD = """\
.\\" Generated from the program's own definition of its commands.
.Dd {date}
.Dt {title} 1
.Os
.Sh NAME
.Nm {name}
.Nd {about}
.Sh SYNOPSIS
.Nm
.Ar COMMAND
.Op Ar WORD ...
.Op Ar OPTION ...
.Sh DESCRIPTION
.Nm
is how a person talks to
.Xr strixd 8 .
Options may stand anywhere behind their command; what follows
.Ql --
is passed on as it is.
.Sh COMMANDS"""
_TAIL = """\
.Sh SEE ALSO
.Xr cluster.toml 5 ,
.Xr strixd 8"""


def manpage(program: Program, at: int) -> str:
    """`at`: when, in seconds since 1970; the same text for the same time."""
    today = time.gmtime(at)
    date = f"{time.strftime('%B', today)} {today.tm_mday}, {today.tm_year}"
    head = _HEAD.format(date=date, title=program.name.upper(), name=program.name, about=program.about)
    return "\n".join((head, *_commands(program), *_rest(program), _TAIL, ""))


def _commands(program: Program) -> Iterator[str]:
    for command in program.commands:
        yield f".Ss {command.name}"
        yield f".Dl {_line(usage(command))}"
        yield ".Pp"
        yield _text(f"{command.about[0].upper()}{command.about[1:]}.")
        if command.detail:
            yield _text(command.detail)
        yield from _list(_rows(command))
        yield ".Pp"
        yield "For example:"
        yield from (f".Dl {_line(example)}" for example in command.examples)


def _rows(command: Command) -> Iterator[tuple[str, str]]:
    yield from ((f"Ar {word.name}", _about(word)) for word in command.words)
    yield from ((_option(option), option.about) for option in command.options)


def _rest(program: Program) -> Iterator[str]:
    yield ".Sh OPTIONS"
    yield from _list((_option(each), each.about) for each in (*program.everywhere, *program.alone))
    yield ".Sh EXIT STATUS"
    yield from _list((str(status), what) for status, what in program.statuses.items())


def _list(rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    found = [line for tag, text in rows for line in (f".It {tag}", _text(text))]
    if found:
        yield from (".Bl -tag -width Ds", *found, ".El")


def _option(option: Option) -> str:
    short = f"Fl {option.short} | " if option.short else ""
    return f"{short}Fl {option.name[1:]}{' Ar ' + option.value if option.value else ''}"


def _about(word: Word) -> str:
    return f"{word.about}: {', '.join(word.choices)}" if word.choices else word.about


def _text(words: str) -> str:
    """One sentence per line, as mdoc wants it; no line may begin with what roff takes for its own."""
    return "\n".join(_line(sentence) for sentence in words.replace(". ", ".\n").split("\n"))


def _line(words: str) -> str:
    safe = words.replace("\\", "\\e").replace("--", "\\-\\-")
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe
