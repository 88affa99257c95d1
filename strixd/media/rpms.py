"""The folder of RPMs → a repository, made by createrepo_c; and whether strixd is in it, in the right version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from strixd import __version__
from strixd.decode import listed
from strixd.errors import Refused
from strixd.media import repodata, tools
from strixd.media.capability import Package
from strixd.media.contents import Item, tree
from strixd.media.fedora import RELEASES

WANTED: Final = ("strixd", "python3-strixd", "strixd-selinux")
"""What a node needs that Fedora does not have."""
ABI: Final = "python(abi)"


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
    found = repodata.packages(place)
    _complete(folder, _versions(found))
    _for_this_python(folder, found)
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


def _for_this_python(folder: Path, packages: tuple[Package, ...]) -> None:
    """What was built on a later Fedora can be installed on none of those that the medium installs."""
    known = set(RELEASES.values())
    for package in packages:
        for each in package.requires:
            if package.name in WANTED and each.name == ABI and each.flags == "EQ" and each.version not in known:
                words = f"{folder} has {package.name} for Python {each.version}"
                hint = f"make rpm on Debian, or on Fedora {listed(RELEASES)}"
                raise Refused(f"{words}, and Fedora {listed(RELEASES, 'and')} have {listed(known)}", hint=hint)


def _versions(packages: tuple[Package, ...]) -> dict[str, set[str]]:
    """By name."""
    found: dict[str, set[str]] = {}
    for package in packages:
        found.setdefault(package.name, set()).add(package.version)
    return found
