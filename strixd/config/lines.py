"""Where each key of a TOML text stands. tomllib gives values without lines; a complaint without one is no help.

Walks over a text that tomllib has already accepted, so it looks for where things end and not for what is wrong.
"""

from __future__ import annotations

import bisect
import re
import tomllib
from collections.abc import Mapping, Sequence

from strixd.decode import KeyPath

Lines = Mapping[KeyPath, int]  # 1-based

_GAP = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*""")
_SCALAR = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'  # up to two quotes may stand before the closing three
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|[^,\]}#\n]+",
    re.DOTALL,
)


def locate(text: str) -> Lines:
    """The line on which each key and each element of an array is first written; `text` must be valid TOML."""
    walk = _Walk(text.replace("\r\n", "\n"))
    walk.take(_GAP)
    while walk.at < len(walk.text):
        walk.statement()
        walk.take(_GAP)
    return walk.lines


def line_of(lines: Lines, path: KeyPath) -> int:
    """The line of a key; of the nearest thing around it when it is not written; 0 when nothing of it is."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0)


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.newlines = [match.start() for match in re.finditer("\n", text)]
        self.lines: dict[KeyPath, int] = {}
        self.table: KeyPath = ()  # the one that the pairs below a header belong to
        self.last: dict[KeyPath, int] = {}  # the newest element of each [[array of tables]]

    def line(self) -> int:
        return bisect.bisect_left(self.newlines, self.at) + 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise AssertionError(f"line {self.line()}: not the TOML that tomllib accepts")
        self.at = match.end()
        return match

    def skip(self, mark: str) -> bool:
        found = self.text.startswith(mark, self.at)
        self.at += len(mark) if found else 0
        return found

    def statement(self) -> None:
        if self.skip("[["):
            self.element_header()
        elif self.skip("["):
            self.table_header()
        else:
            self.pair(self.table)

    def element_header(self) -> None:
        line = self.line()
        *parents, name = self.key()
        array = (*self.enter((), parents), name)
        self.lines.setdefault(array, line)
        self.last[array] = self.last.get(array, -1) + 1
        self.table = (*array, self.last[array])
        self.lines[self.table] = line
        self.skip("]]")

    def table_header(self) -> None:
        line = self.line()
        self.table = self.enter((), self.key())
        self.lines[self.table] = line  # and not where [table.inner] may have implied it earlier
        self.skip("]")

    def enter(self, path: KeyPath, names: Sequence[str]) -> KeyPath:
        """Down from a table by names; a name of an array of tables means its newest element."""
        for name in names:
            path = (*path, name)
            self.lines.setdefault(path, self.line())
            path = (*path, self.last[path]) if path in self.last else path
        return path

    def key(self) -> list[str]:
        names = [_plain(self.take(_KEY)[1])]
        while self.skip("."):
            names.append(_plain(self.take(_KEY)[1]))
        return names

    def pair(self, table: KeyPath) -> None:
        path = self.enter(table, self.key())
        self.skip("=")
        self.take(_GAP)
        self.value(path)

    def value(self, path: KeyPath) -> None:
        if self.skip("["):
            self.array(path)
        elif self.skip("{"):
            self.inline_table(path)
        else:
            self.take(_SCALAR)

    def array(self, path: KeyPath) -> None:
        index = 0
        self.take(_GAP)
        while not self.skip("]"):
            self.lines[(*path, index)] = self.line()
            self.value((*path, index))
            index += 1
            self.separator()

    def inline_table(self, path: KeyPath) -> None:
        self.take(_GAP)
        while not self.skip("}"):
            self.pair(path)
            self.separator()

    def separator(self) -> None:
        self.take(_GAP)
        self.skip(",")
        self.take(_GAP)


def _plain(key: str) -> str:
    """A key without its quotes; tomllib itself reads the escapes in it."""
    return next(iter(tomllib.loads(f"{key} = 0"))) if key[0] in "\"'" else key
