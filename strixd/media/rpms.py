"""The folder of RPMs → a repository, made by createrepo_c; and whether strixd is in it, in the right version."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from strixd import __version__
from strixd.errors import Refused, Rejected
from strixd.media import tools
from strixd.media.contents import Item, tree

WANTED: Final = ("strixd", "python3-strixd", "strixd-selinux")
"""What a node needs that Fedora does not have."""
_SPACE = "{http://linux.duke.edu/metadata/common}"


def repository(folder: Path, place: Path) -> Iterator[Item]:
    """The items of strixd/repo/. `place` is an empty folder that becomes the repository: links, and what
    createrepo_c writes. Raises Refused when an RPM is missing or of another version than this program."""
    files = sorted(folder.glob("*.rpm")) if folder.is_dir() else []
    files = [file for file in files if not file.name.endswith(".src.rpm")]
    if not files:
        words = "no RPM in it" if folder.is_dir() else "no such folder"
        raise Refused(f"Cannot take packages from {folder}: {words}", hint="make rpm builds them")
    place.mkdir()
    for file in files:
        (place / file.name).symlink_to(file.resolve())
    # gzip: the one compression that every dnf and every Python reads.
    index = ("--no-database", "--general-compress-type=gz", "--quiet")
    tools.run("createrepo_c", *index, place, what=f"make a repository of {folder}")
    _complete(folder, _packages(place))
    return tree("strixd/repo", place)


def _complete(folder: Path, found: dict[str, set[str]]) -> None:
    for name in WANTED:
        if name not in found:
            raise Refused(f"Cannot take packages from {folder}: {name} is not among them", hint="make rpm builds it")
        if found[name] != {__version__}:
            versions = " and ".join(sorted(found[name]))
            words = f"{folder} has {name} {versions}, and this is strixd-media {__version__}"
            mend = "take the others out of there" if __version__ in found[name] else "make rpm builds it"
            raise Refused(words, hint=f"what installs a node and what runs there are of one version; {mend}")


def _packages(place: Path) -> dict[str, set[str]]:
    """Versions by name, as dnf will read them."""
    repomd = (place / "repodata" / "repomd.xml").read_text()
    primary = re.search(r'href="(repodata/[^"]*primary\.xml\.gz)"', repomd)
    if primary is None:
        raise Rejected(f"Cannot read the repository that createrepo_c made in {place}: it has no primary.xml.gz")
    with gzip.open(place / primary[1]) as file:
        packages = ElementTree.parse(file).getroot().iter(f"{_SPACE}package")
        found: dict[str, set[str]] = {}
        for package in packages:
            version = package.find(f"{_SPACE}version")
            name = package.findtext(f"{_SPACE}name", "")
            found.setdefault(name, set()).add("" if version is None else version.get("ver", ""))
    return found
