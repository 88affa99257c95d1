"""`python3 -m strixd.doctor.report [FILE]`: one archive for a bug report; what `strixd-cli report` runs. Only for root.

Everything is read, redacted and told before the archive is written: whole, for root alone, and never over another file.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from strixd.api import wire
from strixd.cli.terminal import say
from strixd.doctor.anonymous import Anonymous
from strixd.doctor.checks import FIRST_INSTALL
from strixd.doctor.contents import contents, names
from strixd.doctor.examine import examine
from strixd.doctor.gather import Scene
from strixd.doctor.surroundings import Real
from strixd.errors import Refused, Rejected, StrixdError
from strixd.evidence import bundle, sources

FOLDER = "strixd-report"
MASKED = "prompts, answers, tokens and keys are masked, and whole lines about requests left out"


def main() -> int:
    parser = argparse.ArgumentParser(prog="strixd-cli report", description="One archive for a bug report.")
    parser.add_argument("--socket", default=wire.ADDRESS, metavar="PATH", help="strixd's control socket")
    name = time.strftime("strixd-report-%Y%m%dT%H%M%SZ.tar.gz", time.gmtime())
    parser.add_argument("file", nargs="?", default=name, metavar="FILE")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    try:
        report(Scene(Path("/"), Real(options.socket)), Path(options.file), options.socket)
    except StrixdError as error:
        sys.stderr.write(f"strixd-cli: {error}\n" + f"  {error.hint}\n" * bool(error.hint))
        return error.exit_status
    return 0


def report(scene: Scene, file: Path, socket: str) -> None:
    """Raises Refused when the file is there, Rejected when it cannot be written."""
    try:
        _refuse(file)
        _make(scene, file, socket)
    except OSError as error:
        raise Rejected(f"Cannot write {file}: {error.strerror or error}") from None
    size = file.stat().st_size >> 10
    say(f"written: {file} ({size} KiB, readable to its owner alone); look through it first: tar -xzf {file}")


def _make(scene: Scene, file: Path, socket: str) -> None:
    secrets, complete = sources.secrets_in_time(scene.path("/etc/strixd"), scene.path("/run/containers/systemd"))
    redaction = Anonymous(secrets, names(scene))
    masked = MASKED + ("" if complete else "; but the environments of processes could not be read in time")
    say("looking, which takes up to twenty seconds")
    with tempfile.TemporaryDirectory(prefix="strixd-report-") as folder:
        told = bundle.collect(Path(folder), contents(scene, socket, examine(scene, FIRST_INSTALL)), redaction)
        lines = [redaction.text(line) for line in _told(told, masked, redaction)]
        say("\n".join(lines))
        (Path(folder) / "contents.txt").write_text("\n".join(lines) + "\n")
        write_archive(file, Path(folder))


def _refuse(file: Path) -> None:
    if file.exists() or file.is_symlink():
        raise Refused(f"{file} is there already, and is not written over", hint="strixd-cli report OTHER-FILE")
    if not file.absolute().parent.is_dir():
        raise Refused(
            f"there is no folder {file.absolute().parent}", hint="for example: strixd-cli report /tmp/r.tar.gz"
        )


def _told(told: tuple[str, ...], masked: str, redaction: Anonymous) -> Iterator[str]:
    """What is in it, and what was taken out. Kinds, not what they stood for."""
    yield "this will be in the archive:"
    yield from (f"  {line}" for line in told)
    yield masked
    replaced = ", ".join(f"{count} of {kind}" for kind, count in redaction.count().items())
    yield f"replaced by placeholders, equal ones alike: {replaced or 'nothing'}"


def write_archive(file: Path, folder: Path) -> None:
    """The members say nothing of who made them. An archive that cannot be written whole is taken away."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as out, tarfile.open(fileobj=out, mode="w:gz") as archive:
            for path in sorted(folder.iterdir()):
                _add(archive, path)
    except OSError:
        file.unlink(missing_ok=True)
        raise


def _add(archive: tarfile.TarFile, path: Path) -> None:
    content = path.read_bytes()
    member = tarfile.TarInfo(f"{FOLDER}/{path.name}")
    member.size, member.mode, member.mtime = len(content), 0o600, int(time.time())
    archive.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # whatever still hangs in the kernel is not waited for
