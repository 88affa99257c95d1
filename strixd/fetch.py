"""`python3 -m strixd.fetch`: look for the image and pull what is missing; the work of strixd-image.service.

The daemon says what it wants (image-request.json) and reads what came of it (image.json); this process does one
request and ends, with status 0 only when the image is there. It removes no image, ever.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from strixd import collectives
from strixd.errors import Rejected, StrixdError, Unavailable
from strixd.host import podman_words as words
from strixd.host.files import read_text, write_whole
from strixd.host.journal import setup_logging
from strixd.resources.image import RECORD, REPORT, REQUEST, Report, loads

log = logging.getLogger("strixd.fetch")

PACE = 0.5
"""Seconds between reports while pulling."""
SPARE = 1 << 30
"""Bytes that must stay free on the disk of the host."""
UNPACKED = 2.0
"""A layer takes at least about this much more than its compressed size when it is unpacked beside it."""
BOOT = "/proc/sys/kernel/random/boot_id"


class Found(Protocol):
    """host.podman.Image."""

    @property
    def id(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def digests(self) -> tuple[str, ...]: ...
    @property
    def size(self) -> int: ...
    @property
    def environment(self) -> tuple[str, ...]: ...


class Store(Protocol):
    """host.podman.Podman."""

    def image(self, reference: str) -> Found | None: ...
    def pull(self, reference: str) -> Iterable[Mapping[str, Any]]: ...
    def keep(self, id: str, repository: str, tag: str) -> None: ...
    def room(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Request:
    """`digest`: the recorded one, "" for none; `pull`: missing, newer or never; `update`: a person wants the newest."""

    reference: str
    digest: str = ""
    pull: str = "missing"
    update: bool = False

    @property
    def name(self) -> words.Name:
        return words.name(self.reference)

    @property
    def wanted(self) -> str:
        """The digest that must be the image's: the one in the reference, else the recorded one, "" when any will do."""
        return self.name.digest or ("" if self.update else self.digest)

    @property
    def exact(self) -> str:
        """What to look for and to pull."""
        return self.name.at(self.wanted) if self.wanted else self.reference

    @property
    def here(self) -> str:
        """What may be taken when nothing newer can be had."""
        return self.name.at(self.digest) if self.moves and self.digest else self.exact

    @property
    def moves(self) -> bool:
        """Whether the registry is asked although the image is here."""
        may = self.pull != "never" and not self.name.digest and not self.name.local
        return may and (self.update or self.pull == "newer")


class Writer:
    """Tells what is going on, at a bounded pace."""

    def __init__(self, path: str, reference: str) -> None:
        self._path = path
        self._due = 0.0
        self.report = Report(reference=reference, boot=(read_text(BOOT) or "").strip())

    def tell(self, **changes: Any) -> None:
        self.report = replace(self.report, at=time.time(), **changes)
        write_whole(self._path, json.dumps(asdict(self.report)) + "\n")
        self._due = time.monotonic() + PACE

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._due


def main() -> int:
    from strixd.host.podman import Podman

    setup_logging(debug=False, identifier="strixd-image")
    request = _request()
    if request is None:
        log.error("Cannot look for an image: no request in %s", REQUEST)
        return 2
    try:
        return run(request, Podman(), Writer(REPORT, request.reference), record=RECORD)
    except StrixdError as error:  # nowhere to tell it but the journal: the disk is full
        log.error("%s", error)
        return error.exit_status


def _request() -> Request | None:
    raw = loads(read_text(REQUEST))
    reference, digest, pull = (str(raw.get(key, "")) for key in ("reference", "digest", "pull"))
    return Request(reference, digest, pull or "missing", raw.get("update") is True) if reference else None


def run(request: Request, store: Store, writer: Writer, *, record: str) -> int:
    """Settle the request and tell what came of it. The exit status."""
    try:
        image, trouble = settle(request, store, writer)
    except StrixdError as error:
        log.warning("%s", error)
        writer.tell(state="failed", error=str(error), hint=error.hint)
        return 1
    digest = words.digest(request.wanted, image.digest, image.digests, request.name.repository)
    _keep(store, image, request.name.repository, digest)
    _remember(record, request.reference, digest)
    told = {"error": str(trouble), "hint": trouble.hint} if trouble else {"error": "", "hint": ""}
    writer.tell(state="present", digest=digest, id=image.id, size=image.size, sets=_sets(image), **told)
    log.info("%s is here: %s", request.reference, digest)
    return 0


def _sets(image: Found) -> str:
    """What the image says of the link, which only a host can know."""
    return ", ".join(sorted(each for each in image.environment if each.partition("=")[0] in collectives.OWN))


def settle(request: Request, store: Store, writer: Writer) -> tuple[Found, StrixdError | None]:
    """The image, and why it is not a newer one should that have failed: the one that is here goes on serving."""
    here = store.image(request.here)
    if here and not request.moves:
        return here, None
    if request.pull == "never" or request.name.local:
        raise _absent(request, store)
    try:
        return _pull(request.reference if request.moves else request.exact, store, writer), None
    except (Rejected, Unavailable) as error:
        if here is None:
            raise
        log.warning("%s; the one that is here is kept", error)
        return here, error


def _absent(request: Request, store: Store) -> Rejected:
    """Why it is not here and is not pulled; a local image may have been made anew."""
    if request.wanted and store.image(request.reference):
        return Rejected(
            f"{request.reference} is here, but not as {request.wanted}, which was recorded",
            hint="strixd-cli image update takes the one that is here; all nodes need the same",
        )
    why = "it was made on a host, and no registry has it" if request.name.local else 'pull = "never"'
    hint = "podman image load, or podman import, on this node"
    return Rejected(f"{request.exact} is not on this node, and is not pulled: {why}", hint=hint)


def _pull(reference: str, store: Store, writer: Writer) -> Found:
    layers = words.Layers()
    writer.tell(state="pulling")
    _check_room(reference, store, layers)
    log.info("Pulling %s", reference)
    for item in store.pull(reference):
        layers.hear(item)
        if writer.due:
            _check_room(reference, store, layers)
            writer.tell(layers_done=len(layers.complete), layers=len(layers.got), bytes=layers.bytes)
    image = store.image(reference)
    if image is None:
        raise Rejected(f"Cannot pull {reference}: podman stopped without the image", hint="journalctl -u podman")
    return image


def _check_room(reference: str, store: Store, layers: words.Layers) -> None:
    """Sizes are told only as layers come, so this is asked again and again: better now than when the disk is full."""
    room, needed = store.room(), int(layers.missing * UNPACKED) + SPARE
    if room < needed:
        raise Rejected(
            f"Cannot pull {reference}: it needs {needed / 1e9:.1f} GB or more, and {room / 1e9:.1f} GB are free",
            hint="make room where podman keeps its images (df -h /var/lib/containers /var/tmp); keep the image in use",
        )


def _keep(store: Store, image: Found, repository: str, digest: str) -> None:
    """A name that no pull moves, so that the digest finds it whatever becomes of the tag, and no pruning takes it."""
    if not digest:
        return
    try:
        store.keep(image.id, repository, f"strixd-{digest.partition(':')[2][:12]}")
    except StrixdError as error:  # the image is here all the same, perhaps in a store that is only read
        log.warning("%s", error)


def _remember(path: str, reference: str, digest: str) -> None:
    """From now on it is this one, until a person asks for another."""
    record = {"reference": reference, "digest": digest}
    if loads(read_text(path)) != record:
        write_whole(path, json.dumps(record) + "\n")


if __name__ == "__main__":
    sys.exit(main())
