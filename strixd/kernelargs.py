"""Kernel command lines as text: taken apart, edited by key, put together again. Pure, and without any policy.

The kernel's own rules: arguments are parted by blanks outside double quotes, dash and underscore in a name are the
same, and what follows `--` belongs to init. Arguments that are not touched keep their order and their spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

LISTS = frozenset({"pci", "efi", "module_blacklist", "modprobe.blacklist", "rd.driver.blacklist"})
"""Keys whose value is a comma list to which several parties contribute."""
SEVERAL = frozenset(
    {"console", "earlycon", "memmap", "hugepagesz", "hugepages", "acpi_osi", "ip", "ifname", "nameserver", "video"}
    | {"rd.luks.uuid", "rd.luks.name", "rd.lvm.lv", "rd.lvm.vg", "rd.md.uuid", "systemd.mask", "systemd.wants"}
)
"""Keys that may stand there more than once, each with a meaning of its own."""
_WORD = re.compile(r'(?:[^\s"]|"[^"]*"?)+')


def words(text: str) -> list[str]:
    return _WORD.findall(text)


def key(word: str) -> str:
    return word.lstrip('"').partition("=")[0].replace("-", "_")


def value(word: str) -> str:
    return word.partition("=")[2].strip('"')


def same(one: str, other: str) -> bool:
    """To the kernel."""
    return key(one) == key(other) and value(one) == value(other)


def parts(text: str) -> tuple[list[str], list[str]]:
    """(the kernel's arguments, init's with the `--` before them)."""
    all_words = words(text)
    end = all_words.index("--") if "--" in all_words else len(all_words)
    return all_words[:end], all_words[end:]


@lru_cache(maxsize=256)  # every pass asks the same of every boot entry: a quarter of its processor time
def edited(text: str, *, add: tuple[str, ...], drop: tuple[str, ...]) -> str:
    """`text` with every argument of `add` in force and nothing of `drop` left: "key" for any value, "key=value" for
    that one, "key:member" for a member of a list or one of several values. The same bytes when all that holds."""
    arguments, tail = parts(text)
    after = _all_with(_all_without(arguments, drop), add)
    return text if after == arguments else " ".join((*after, *tail))


def markers(argument: str) -> tuple[str, ...]:
    """By what an argument of ours can be found again and taken out: the key, or "key:member"."""
    name = key(argument)
    if name in LISTS:
        return tuple(f"{name}:{member}" for member in value(argument).split(","))
    return (f"{name}:{value(argument)}" if name in SEVERAL else name,)


def difference(before: str, after: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(words that came, words that went), repeated ones counted."""
    left = words(before)
    came = []
    for word in words(after):
        if word in left:
            left.remove(word)
        else:
            came.append(word)
    return tuple(came), tuple(left)


def carried(text: str, before: str, after: str) -> str:
    """`text` with that done to it which makes `after` of `before`: for a line that somebody changed meanwhile. A value
    of theirs in the place of ours stays; init's arguments are theirs too."""
    if text in (before, after):
        return after
    arguments, tail = parts(text)
    came, went = difference(before, after)
    new, old = _members(after) - _members(before), _members(before) - _members(after)
    left = _all_without(arguments, sorted(f"{name}:{member}" for name, member in old))
    for word in went:
        left = _exchanged(left, word, came) if key(word) not in LISTS else left
    for word in came:
        left = _joined(left, word, new)
    return text if left == arguments else " ".join((*left, *tail))


def _joined(arguments: list[str], word: str, new: set[tuple[str, str]]) -> list[str]:
    """With `word`, of a list with its new members only, unless there is another value."""
    name = key(word)
    if name in LISTS:
        return _all_with(arguments, (f"{name}={each}" for each in value(word).split(",") if (name, each) in new))
    there = any(same(each, word) if name in SEVERAL else key(each) == name for each in arguments)
    return arguments if there else [*arguments, word]


def _exchanged(arguments: list[str], word: str, came: Iterable[str]) -> list[str]:
    """Without `word`, once; what came for it stands in its place."""
    found = next((n for n, each in enumerate(arguments) if same(each, word)), None)
    if found is None:
        return arguments
    instead = [each for each in came if key(each) == key(word) and key(word) not in SEVERAL][:1]
    return [*arguments[:found], *instead, *arguments[found + 1 :]]


def _members(text: str) -> set[tuple[str, str]]:
    """(list, member) for all comma lists of a line."""
    lists = [word for word in parts(text)[0] if key(word) in LISTS]
    return {(key(word), member) for word in lists for member in value(word).split(",") if member}


def _all_with(arguments: list[str], add: Iterable[str]) -> list[str]:
    for argument in add:
        arguments = _with(arguments, argument)
    return arguments


def _all_without(arguments: list[str], drop: Iterable[str]) -> list[str]:
    for what in drop:
        arguments = _without(arguments, what)
    return arguments


def _with(arguments: list[str], wanted: str) -> list[str]:
    """In the place of the first argument of its key, once; else at the end."""
    name = key(wanted)
    if name in SEVERAL:
        return arguments if any(same(word, wanted) for word in arguments) else [*arguments, wanted]
    if name in LISTS:
        wanted = _merged(arguments, wanted)
    first = next((n for n, word in enumerate(arguments) if key(word) == name), None)
    if first is None:
        return [*arguments, wanted]
    kept = arguments[first] if same(arguments[first], wanted) else wanted
    return [*arguments[:first], kept, *(word for word in arguments[first + 1 :] if key(word) != name)]


def _merged(arguments: list[str], wanted: str) -> str:
    """All members that are there and the wanted ones; "realloc=off" gives way to "realloc"."""
    name = key(wanted)
    members = [member for word in arguments if key(word) == name for member in value(word).split(",") if member]
    for member in value(wanted).split(","):
        members = _with_member(members, member)
    return f"{wanted.partition('=')[0]}={','.join(members)}"


def _with_member(members: list[str], wanted: str) -> list[str]:
    name = wanted.partition("=")[0]
    alike = [n for n, member in enumerate(members) if member.partition("=")[0] == name]
    if not alike:
        return [*members, wanted]
    return [wanted if n == alike[0] else member for n, member in enumerate(members) if n not in alike[1:]]


def _without(arguments: list[str], what: str) -> list[str]:
    if "=" in what:
        return [word for word in arguments if not same(word, what)]
    name, _, member = what.partition(":")
    if not member:
        return [word for word in arguments if key(word) != key(name)]
    shorter = (_shorter(word, member) if key(word) == key(name) else word for word in arguments)
    return [word for word in shorter if word]


def _shorter(word: str, member: str) -> str:
    """Without this member of its list, "" when nothing is left."""
    if key(word) not in LISTS:
        return "" if value(word) == member else word
    members = value(word).split(",")
    left = [each for each in members if each != member]
    return word if left == members else f"{word.partition('=')[0]}={','.join(left)}" if left else ""
