"""What a command line is made of: options, places for words, commands. No logic here."""

from __future__ import annotations


class Option:
    """`value` names what it takes ("" for nothing); `choices`: what that may be (anything when empty); `number`: it is
    a whole number; `short` is a letter."""

    __slots__ = ("about", "choices", "name", "number", "short", "value")

    def __init__(  # noqa: PLR0913 - a row of a table
        self,
        name: str,
        about: str,
        *,
        value: str = "",
        short: str = "",
        number: bool = False,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.about = about
        self.choices = choices
        self.value = value
        self.short = short
        self.number = number


class Word:
    """A place on the command line. `choices`: what may stand there (anything when empty); `number`: a whole number."""

    __slots__ = ("about", "choices", "name", "number", "optional")

    def __init__(
        self, name: str, about: str, *, choices: tuple[str, ...] = (), optional: bool = False, number: bool = False
    ) -> None:
        self.name = name
        self.about = about
        self.choices = choices
        self.optional = optional
        self.number = number


class Command:
    """`run` is MODULE:FUNCTION in strixd.cli. `rest` names what may follow after "--" ("" for nothing)."""

    __slots__ = ("about", "detail", "examples", "name", "options", "rest", "run", "words")

    def __init__(  # noqa: PLR0913 - a row of a table
        self,
        name: str,
        run: str,
        about: str,
        *,
        words: tuple[Word, ...] = (),
        options: tuple[Option, ...] = (),
        rest: str = "",
        detail: str = "",
        examples: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.run = run
        self.about = about
        self.words = words
        self.options = options
        self.rest = rest
        self.detail = detail
        self.examples = examples
