"""The line locator is right on anything that tomllib accepts."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strixd.config.lines import line_of, locate
from strixd.decode import KeyPath

TRICKY = '''# top = 1
title = "a # b" # c
"quoted key" = 1
'literal.key' = 2
"esc\\u0041\\"]" = 3
a.b . "c" = 4

[fabric] # mtu = 1
text = """
mtu = 1
[kernel]
""\\"" """
raw = QQQ
mtu = 2'' QQQ''
mtu = 9000
empty = ""
more = ["x", # comment, with ]
  "]", """
  [[node]]
  """,
  { k = [1,
  2], z.y = 1979-05-27 07:32:00 },
]

[[node]]
name = "one"
[[node.disk]]
size = 1
[[node.disk]]
size = 2

[[node]]
name = QQQ

name = 'two
QQQ
role = 1
[node.extra.deep]
k = 1
[node.extra]
'''.replace("QQQ", "'" * 3)
WANTED: dict[KeyPath, int] = {
    ("title",): 2,
    ("quoted key",): 3,
    ("literal.key",): 4,
    ('escA"]',): 5,
    ("a", "b", "c"): 6,
    ("fabric",): 8,
    ("fabric", "text"): 9,
    ("fabric", "raw"): 13,
    ("fabric", "mtu"): 15,
    ("fabric", "empty"): 16,
    ("fabric", "more"): 17,
    ("fabric", "more", 0): 17,
    ("fabric", "more", 1): 18,
    ("fabric", "more", 2): 18,
    ("fabric", "more", 3): 21,
    ("fabric", "more", 3, "k", 1): 22,
    ("fabric", "more", 3, "z", "y"): 22,
    ("node",): 25,
    ("node", 0): 25,
    ("node", 0, "name"): 26,
    ("node", 0, "disk", 0, "size"): 28,
    ("node", 0, "disk", 1): 29,
    ("node", 0, "disk", 1, "size"): 30,
    ("node", 1): 32,
    ("node", 1, "name"): 33,
    ("node", 1, "role"): 37,
    ("node", 1, "extra", "deep", "k"): 39,
    ("node", 1, "extra"): 40,
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_of_a_tricky_text(newline: str) -> None:
    text = TRICKY.replace("\n", newline)
    tomllib.loads(text)
    found = locate(text)
    assert {path: found.get(path) for path in WANTED} == WANTED
    assert ("kernel",) not in found


@pytest.mark.parametrize(
    ("path", "line"),
    [(("a", "x"), 1), (("a", "x", 0, "y"), 1), (("a", "z"), 1), (("b",), 0), ((), 0)],
)
def test_what_is_not_written_is_where_it_belongs(path: KeyPath, line: int) -> None:
    assert line_of(locate("[a]"), path) == line


PLAIN = st.text("abcXYZ09_-", min_size=1, max_size=5)
KEYS = PLAIN | st.text(max_size=6).filter(lambda text: text.isprintable())
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t\"'\\#[]{}=,."), max_size=12)


def basic(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@st.composite
def strings(draw: st.DrawFn) -> str:
    text = draw(ANY_TEXT)
    if draw(st.booleans()):
        return '"""' + text.replace("\\", "\\\\").replace('"', '\\"') + draw(st.sampled_from(['"""', '""""', '"""""']))
    if "'" not in text and draw(st.booleans()):
        return "'''" + text + draw(st.sampled_from(["'''", "''''", "'''''"]))
    return basic(text)


GAPS = st.sampled_from(["", " ", "\n", ' # it\'s [a] "comment" = {\n', "\n\n\t"])
SCALARS = strings() | st.sampled_from(
    ["1", "-0x1F".lstrip("-"), "1e3", "nan", "true", "1979-05-27 07:32:00Z", "07:32:00"]
)


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(inner, max_size=3))
    body = ",".join(draw(GAPS) + item + draw(GAPS) for item in items)
    comma = "," + draw(GAPS) if draw(st.booleans()) and items else ""
    return f"[{body}{comma}]"


@st.composite
def inline_tables(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    names: list[str] = draw(st.lists(KEYS, max_size=3, unique=True))
    return "{ " + ", ".join(f"{basic(name)} = {draw(inner)}" for name in names) + " }"


VALUES = st.recursive(SCALARS, lambda inner: arrays(inner) | inline_tables(inner), max_leaves=5)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A valid document whose tables are all distinct, with the traps of the format strewn in."""
    text = ""
    for number in range(draw(st.integers(0, 4))):
        header = draw(
            st.sampled_from([f"[t{number}]", "[[array]]", f"[[array]]\n[array.inner.t{number}]", f"['t{number}'.x]"])
        )
        names = draw(st.lists(KEYS, max_size=3, unique=True))
        pairs = [f"{basic(name)} = {draw(VALUES)} # {basic(name)} = 1" for name in names if name != "inner"]
        text += draw(GAPS) + "\n" + "\n".join([header, *pairs]) + "\n"
    return text


def paths_in(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield (*path, name)
        yield from paths_in(child, (*path, name))


@given(documents())
def test_every_key_of_a_valid_document_has_its_line(text: str) -> None:
    data = tomllib.loads(text)
    lines = locate(text)
    assert set(lines) == set(paths_in(data))
    written = text.split("\n")
    for path, line in lines.items():
        assert 1 <= line <= len(written)
        if len(path) == 2 and path[0] == "t0" and path[1] != "x":
            assert written[line - 1].startswith(basic(str(path[1])) + " = ")


@given(ANY_TEXT, st.integers(0, 3))
def test_keys_inside_a_string_are_no_keys(text: str, blank: int) -> None:
    inside = text.replace("'''", "").rstrip("'")
    document = "\n" * blank + f"[fabric]\nx = '''\n[kernel]\nmtu = 1\n{inside}'''\nmtu = 2\n"
    tomllib.loads(document)
    line = 1 + document[: document.rindex("mtu = 2")].count("\n")
    assert locate(document) == {
        ("fabric",): blank + 1,
        ("fabric", "x"): blank + 2,
        ("fabric", "mtu"): line,
    }


@given(st.text("ab=[]{}.,\"'#\n 1\\", max_size=30))
def test_whatever_tomllib_accepts_is_walked(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(locate(text)) == set(paths_in(data))
