"""The readable templates of kickstart/: where they are, and how their places are filled.

A place is @@NAME@@: neither bash nor a kickstart nor TOML has a use for that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strixd.errors import Unavailable

_CHECKOUT = Path(__file__).parents[2]
_OWN = (_CHECKOUT / "kickstart",) if (_CHECKOUT / "pyproject.toml").is_file() else ()
FOLDERS: Final = (*_OWN, Path("/usr/share/strixd/kickstart"))
"""In a checkout, and as installed, where a folder of that name beside the package would be somebody else's."""
_PLACE = re.compile("@@([A-Z_]+)@@")


@dataclass(frozen=True, slots=True)
class Templates:
    """The texts: the kickstart, and its three scripts without their first line."""

    cluster: str
    pick: str
    bring: str
    settle: str


def load() -> Templates:
    folder = next((each for each in FOLDERS if each.is_dir()), None)
    if folder is None:
        raise Unavailable(
            f"Cannot find the templates of the kickstart: {FOLDERS[-1]} is not there",
            hint="dnf reinstall strixd-media",
        )
    scripts = [_script(folder / f"{name}.sh") for name in ("pick", "bring", "settle")]
    return Templates((folder / "cluster.ks").read_text(), *scripts)


def _script(file: Path) -> str:
    """Without the line that says what runs it: the kickstart says that."""
    return file.read_text().partition("\n")[2].rstrip("\n")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Every place gets its value; one without a value is a bug (KeyError)."""
    return _PLACE.sub(lambda place: values[place[1]], template)
