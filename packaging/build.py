"""make rpm: source and binary packages of this checkout, in dist/ or the folder that is named.

The same checkout gives the same bytes: all times are those of the newest entry of the changelog, the build host has
no name, and the folder is always the same one, since rpmbuild keeps the spec with all paths in the package. On Fedora
the spec is built as it is; elsewhere with debian.macros, which needs pip, setuptools and wheel of the system's Python,
and without a look at BuildRequires, which have Fedora's names.

dist/ holds one version: strixd-media takes a folder as it is, and refuses a mixture. A folder that was named is its
owner's, and only added to.
"""

from __future__ import annotations

import base64
import fcntl
import gzip
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = Path("/var/tmp/strixd-rpm")
SPEC = "packaging/strixd.spec"
SOURCE = ("strixd", "units", "packaging", "kickstart", "pyproject.toml", "README.md", "LICENSE")
SAME_EACH_TIME = {
    "_buildhost": "strixd",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "build_mtime_policy": "clamp_to_source_date_epoch",  # the same to newer versions of rpm
}


def main() -> int:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else PROJECT / "dist").resolve()
    out.mkdir(parents=True, exist_ok=True)
    with _own_folder():
        status = _build(FOLDER)
        made = sorted(FOLDER.glob("*RPMS/**/*.rpm")) if status == 0 else []
        for package in made:
            shutil.copy(package, out)
            sys.stdout.write(f"{out / package.name}\n")
    if len(sys.argv) == 1:
        _forget_others(out, [package.name for package in made])
    return status


def _forget_others(out: Path, made: list[str]) -> None:
    """What this made before, in other versions; nobody else's packages."""
    kinds = {_kind(name) for name in made}
    for file in out.glob("*.rpm"):
        if _kind(file.name) in kinds and file.name not in made:
            file.unlink()
            sys.stderr.write(f"{file}: another version, removed\n")


def _kind(file: str) -> tuple[str, ...]:
    """NAME-VERSION-RELEASE.ARCH.rpm → name and architecture; nothing of another name."""
    found = re.fullmatch(r"(.+)-[^-]+-[^-]+\.([^.]+)\.rpm", file)
    return found.groups() if found else ()


@contextmanager
def _own_folder() -> Iterator[None]:
    """Empty, and nobody else's; a build beside this one waits."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    found = FOLDER.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise SystemExit(f"Cannot build in {FOLDER}: it is somebody else's; remove it")
    opened = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        _empty()
        yield
        _empty()
    finally:
        os.close(opened)


def _empty() -> None:
    for each in FOLDER.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def _build(top: Path) -> int:
    spec = (PROJECT / SPEC).read_text()
    version, at = _found(r"^Version:\s*(\S+)", spec), _changed(spec)
    _put(top / f"SOURCES/strixd-{version}.tar.gz", _archive(f"strixd-{version}", at), at)
    _put(top / "SPECS/strixd.spec", spec.encode(), at)
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(at), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    options = [f"--define={name} {value}" for name, value in ({"_topdir": str(top)} | SAME_EACH_TIME).items()]
    if not _means("%{?pyproject_wheel:yes}"):
        environment["HOME"] = str(top)
        options.append("--nodeps")
        (top / ".rpmmacros").write_text((PROJECT / "packaging/debian.macros").read_text() + _groups())
    command = ["rpmbuild", "-ba", "--quiet", *options, str(top / "SPECS/strixd.spec")]
    return subprocess.run(command, env=environment, check=False).returncode


def _put(file: Path, content: bytes, at: int) -> None:
    """With a time of its own: that of the sources is in the source package."""
    file.parent.mkdir()
    file.write_bytes(content)
    os.utime(file, (at, at))


def _means(macro: str) -> bool:
    """Whether rpm here knows a macro: {?name:yes}."""
    return subprocess.run(["rpm", "--eval", macro], capture_output=True, text=True, check=True).stdout.strip() == "yes"


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.M)
    if not match:
        raise SystemExit(f"{SPEC}: nothing there looks like {pattern}")
    return match[1]


def _changed(spec: str) -> int:
    """When the newest day in the changelog began, in seconds since 1970."""
    day = datetime.strptime(_found(r"^\* \w{3} (\w{3} +\d+ \d{4}) ", spec), "%b %d %Y")
    return int(day.replace(tzinfo=UTC).timestamp())


def _archive(name: str, at: int) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in _files():
            entry = tarfile.TarInfo(f"{name}/{file.relative_to(PROJECT)}")
            content = file.read_bytes()
            entry.size, entry.mtime, entry.mode = len(content), at, 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=at)


def _files() -> Iterator[Path]:
    for top in sorted(PROJECT / name for name in SOURCE):
        below = sorted(top.rglob("*")) if top.is_dir() else [top]
        yield from (file for file in below if file.is_file() and "__pycache__" not in file.parts)


def _groups() -> str:
    """rpm 6 makes the groups of sysusers.d from Provides, which it writes by itself when it builds; rpm before 4.19
    does not, and packages that it built would come without their groups."""
    lines = (PROJECT / "units/strixd.sysusers").read_text().splitlines()
    groups = [line.split() for line in lines if line.startswith("g ")]
    told = [f"Provides: group({words[1]}) = {_encoded(' '.join(words))}" for words in groups]
    body = "\n".join(told)
    return "" if _means("%{?add_sysuser:yes}") else f"%sysusers_provides %{{expand:\n{body}\n}}\n"


def _encoded(line: str) -> str:
    """Base64, filled up with zeros to whole groups of three, since a version cannot end in "="."""
    raw = line.encode()
    return base64.b64encode(raw + bytes(-len(raw) % 3)).decode()


if __name__ == "__main__":
    sys.exit(main())
