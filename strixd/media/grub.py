"""The menu of an installation medium as text: the kernel is told where the kickstart is. Pure."""

from __future__ import annotations

import re

_LINUX = re.compile(r"^(\s*linux(?:efi|16)?\s+\S+)[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_STAGE2 = "inst.stage2=hd:LABEL="


def with_kickstart(text: str) -> str:
    """Every entry that installs gets inst.ks, on the volume where its inst.stage2 is, which is spelled right there
    already; one that rescues is left as it is, and an earlier inst.ks goes."""
    return _LINUX.sub(lambda line: _edited(line) if _installs(line) else line[0], text)


def unattended(text: str) -> bool:
    """There are entries that install, and each has its kickstart."""
    return any(map(_installs, _LINUX.finditer(text))) and with_kickstart(text) == text


def _installs(line: re.Match[str]) -> bool:
    words = line[2].split()
    return "inst.rescue" not in words and any(word.startswith(_STAGE2) for word in words)


def _edited(line: re.Match[str]) -> str:
    words = [word for word in line[2].split() if not word.startswith("inst.ks=")]
    label = next(word.removeprefix(_STAGE2).partition(":")[0] for word in words if word.startswith(_STAGE2))
    return " ".join([line[1], *words, f"inst.ks=hd:LABEL={label}:/ks.cfg"])
