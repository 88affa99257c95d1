"""Reading back what a unit's text gives its container: the inverse of strixd.quadlet.quote."""

from __future__ import annotations

import re


def environment(text: str) -> dict[str, str]:
    lines = (line.partition("=")[2] for line in text.splitlines() if line.startswith("Environment="))
    return {key: value for key, _, value in (_unquoted(line).partition("=") for line in lines)}


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), word[1:-1].replace("%%", "%"))
