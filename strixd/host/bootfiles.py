"""The files in which Fedora keeps kernel command lines: where the line stands in each, and the same file with another.

Pure. Everything else in a file stays as it is, byte for byte.
"""

from __future__ import annotations

import re

_OPTIONS = re.compile(r"^options(?:[ \t]+(.*))?$", re.MULTILINE)
_LINUX = re.compile(r"^linux[ \t]+(\S+)", re.MULTILINE)
_BOOTS = re.compile(r"^(?:linux|efi|uki)[ \t]+\S", re.MULTILINE)
_GRUB = re.compile(r"""^(\s*GRUB_CMDLINE_LINUX=)(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s#'"]*))""", re.MULTILINE)


def is_rescue(name: str) -> bool:
    """Fedora's is MACHINEID-0-rescue."""
    return "0-rescue" in name or name.endswith("-rescue")


def newest_first(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key, to be reversed: numbers within a name count as numbers, so 6.9 comes before 6.18."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", name))


def entry_kernel(text: str) -> str:
    """As grubby is told of it: the name in /boot, whatever /boot is mounted on; "" when the entry boots no kernel."""
    found = _LINUX.search(text)
    return f"/boot/{found[1].rpartition('/')[2]}" if found else ""


def is_whole(text: str) -> bool:
    """Says what to boot and how. Before it does, somebody may still be writing it: kernel-install goes line by line."""
    return bool(_BOOTS.search(text) and _OPTIONS.search(text))


def entry_options(text: str) -> str:
    """An entry may have several `options` lines; they count as one."""
    return " ".join(found[1].strip() for found in _OPTIONS.finditer(text) if found[1])


def with_entry_options(text: str, options: str) -> str:
    if entry_options(text) == options:
        return text
    line = f"options {options}"
    found = list(_OPTIONS.finditer(text))
    if not found:
        return f"{text.rstrip()}\n{line}\n"
    for later in reversed(found[1:]):
        text = text[: later.start()] + text[later.end() :].removeprefix("\n")
    return text[: found[0].start()] + line + text[found[0].end() :]


def kernel_cmdline(text: str) -> str:
    return text.strip()


def with_kernel_cmdline(text: str, options: str) -> str:
    """Keeps the line end, or its absence."""
    return options + text[len(text.rstrip()) :] if text.strip() else f"{options}\n"


def default_grub(text: str) -> str:
    """GRUB_CMDLINE_LINUX, "" where it is not set. The last assignment counts, as for the shell."""
    found = list(_GRUB.finditer(text))
    if not found:
        return ""
    _, double, single, bare = found[-1].groups()
    return str(double.replace('\\"', '"') if double is not None else single or bare or "").strip()


def with_default_grub(text: str, options: str) -> str:
    if default_grub(text) == options:
        return text
    found = list(_GRUB.finditer(text))
    quoted = f"'{options}'" if found and found[-1][3] is not None and "'" not in options else _double(options)
    if not found:
        return f"{text.rstrip()}\nGRUB_CMDLINE_LINUX={quoted}\n".lstrip("\n")
    last = found[-1]
    return text[: last.start()] + last[1] + quoted + text[last.end() :]


def _double(options: str) -> str:
    escaped = options.replace('"', '\\"')
    return f'"{escaped}"'
