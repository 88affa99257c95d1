"""What is pulled, kept, recorded and told for each request, over a store in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from strixd.errors import Rejected, Unavailable
from strixd.fetch import Request, Writer, run
from strixd.resources import image

R, LOCAL = "r.io/x:latest", "localhost/x:1"
OLD, NEW = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@dataclass(frozen=True)
class Found:
    id: str
    digest: str
    digests: tuple[str, ...]
    size: int = 7
    environment: tuple[str, ...] = ("PATH=/bin", "NCCL_IB_GID_INDEX=1", "NCCL_IB_DISABLE=1")


def built(repository: str, digest: str) -> Found:
    return Found(digest[-8:], digest, (f"{repository}@{digest}",))


@dataclass
class Store:
    """`here` and `there`: images by the names under which this host and the registry have them."""

    here: dict[str, Found] = field(default_factory=dict)
    there: dict[str, Found] = field(default_factory=dict)
    pulled: list[str] = field(default_factory=list)
    free: int = 100 << 30
    kept: list[str] = field(default_factory=list)
    fails: str = ""

    def image(self, reference: str) -> Found | None:
        return self.here.get(reference)

    def pull(self, reference: str) -> Iterator[Mapping[str, Any]]:
        self.pulled.append(reference)
        yield {"status": "Downloading", "progressDetail": {"current": 5, "total": 10}, "id": "1"}
        if self.fails or reference not in self.there:
            raise Rejected(f"Cannot pull {reference}: {self.fails or 'manifest unknown'}", hint="look")
        yield {"status": "Download complete", "progressDetail": {}, "id": "1"}
        self.here[reference] = self.there[reference]

    def keep(self, id: str, repository: str, tag: str) -> None:
        self.kept.append(f"{repository}:{tag}")

    def room(self) -> int:
        return self.free


def registry(digest: str) -> dict[str, Found]:
    return {R: built("r.io/x", digest), f"r.io/x@{digest}": built("r.io/x", digest)}


@dataclass
class Outcome:
    status: int
    report: image.Report
    recorded: str


def fetch(request: Request, store: Store, folder: Path) -> Outcome:
    record = folder / "var" / "image.json"
    status = run(request, store, Writer(str(folder / "report"), request.reference), record=str(record))
    told = image.report((folder / "report").read_text())
    return Outcome(status, told, json.loads(record.read_text())["digest"] if record.exists() else "")


def test_the_first_pull_records_the_digest(tmp_path: Path) -> None:
    store = Store(there=registry(OLD))
    done = fetch(Request(R), store, tmp_path)
    assert (done.status, done.recorded, store.pulled) == (0, OLD, [R])
    assert (done.report.state, done.report.digest, done.report.id) == ("present", OLD, OLD[-8:])
    assert (done.report.layers, done.report.size, done.report.error) == (0, 7, "")
    assert store.kept == ["r.io/x:strixd-" + "a" * 12]
    assert done.report.at > 0
    assert done.report.boot


def test_what_is_here_is_not_pulled(tmp_path: Path) -> None:
    store = Store(here=registry(OLD), there=registry(NEW))
    done = fetch(Request(R, OLD), store, tmp_path)
    assert (done.status, done.report.digest, store.pulled) == (0, OLD, [])


def test_the_recorded_one_is_pulled_although_the_tag_has_moved(tmp_path: Path) -> None:
    store = Store(there=registry(NEW) | {f"r.io/x@{OLD}": built("r.io/x", OLD)})
    done = fetch(Request(R, OLD), store, tmp_path)
    assert (done.report.digest, done.recorded, store.pulled) == (OLD, OLD, [f"r.io/x@{OLD}"])


def test_the_recorded_one_is_gone_from_the_registry(tmp_path: Path) -> None:
    done = fetch(Request(R, OLD), Store(there=registry(NEW)), tmp_path)
    assert (done.status, done.report.state, done.report.hint, done.recorded) == (1, "failed", "look", "")
    assert f"r.io/x@{OLD}" in done.report.error


@pytest.mark.parametrize("request_", [Request(R, OLD, update=True), Request(R, OLD, pull="newer")])
def test_the_newest_on_request(tmp_path: Path, request_: Request) -> None:
    store = Store(here=registry(OLD), there=registry(NEW))
    done = fetch(request_, store, tmp_path)
    assert (done.status, done.report.digest, done.recorded, store.pulled) == (0, NEW, NEW, [R])
    assert f"r.io/x@{OLD}" in store.here


@pytest.mark.parametrize("request_", [Request(R, OLD, update=True), Request(R, OLD, pull="newer")])
def test_an_update_that_fails_keeps_what_serves(tmp_path: Path, request_: Request) -> None:
    store = Store(here=registry(OLD), there=registry(NEW), fails="network is unreachable")
    done = fetch(request_, store, tmp_path)
    assert (done.status, done.report.state, done.report.digest, done.recorded) == (0, "present", OLD, OLD)
    assert "unreachable" in done.report.error


def test_a_reference_with_a_digest_never_moves(tmp_path: Path) -> None:
    pinned = f"r.io/x@{OLD}"
    store = Store(here={pinned: built("r.io/x", OLD)}, there=registry(NEW))
    done = fetch(Request(pinned, NEW, update=True), store, tmp_path)
    assert (done.report.digest, store.pulled) == (OLD, [])


def test_never_pull(tmp_path: Path) -> None:
    store = Store(there=registry(OLD))
    done = fetch(Request(R, pull="never"), store, tmp_path)
    assert (done.status, store.pulled) == (1, [])
    assert 'not pulled: pull = "never"' in done.report.error


def test_never_pull_and_update_takes_what_was_loaded_by_hand(tmp_path: Path) -> None:
    store = Store(here=registry(OLD) | registry(NEW))
    done = fetch(Request(R, OLD, pull="never", update=True), store, tmp_path)
    assert (done.report.digest, done.recorded, store.pulled) == (NEW, NEW, [])


def test_a_local_image_is_never_asked_for_elsewhere(tmp_path: Path) -> None:
    store = Store(there={LOCAL: built("localhost/x", OLD)})
    done = fetch(Request(LOCAL, pull="newer", update=True), store, tmp_path)
    assert (done.status, store.pulled) == (1, [])
    assert "no registry has it" in done.report.error
    store.here[LOCAL] = built("localhost/x", OLD)
    assert fetch(Request(LOCAL), store, tmp_path).recorded == OLD


def test_a_local_image_that_was_made_anew(tmp_path: Path) -> None:
    store = Store(here={LOCAL: built("localhost/x", NEW)})
    done = fetch(Request(LOCAL, OLD), store, tmp_path)
    assert f"not as {OLD}, which was recorded" in done.report.error
    assert fetch(Request(LOCAL, OLD, update=True), store, tmp_path).recorded == NEW


def test_the_list_of_platforms_stays_the_recorded_one(tmp_path: Path) -> None:
    both = Found("1", OLD, (f"r.io/x@{OLD}", f"r.io/x@{NEW}"))
    done = fetch(Request(R, NEW), Store(here={f"r.io/x@{NEW}": both}), tmp_path)
    assert done.recorded == NEW


def test_no_room(tmp_path: Path) -> None:
    store = Store(there=registry(OLD), free=1000)
    done = fetch(Request(R), store, tmp_path)
    assert (done.status, store.pulled) == (1, [])
    assert done.report.error == f"Cannot pull {R}: it needs 1.1 GB or more, and 0.0 GB are free"
    assert "make room" in done.report.hint


def test_a_store_that_is_only_read_is_good_enough(tmp_path: Path) -> None:
    class Frozen(Store):
        def keep(self, id: str, repository: str, tag: str) -> None:
            raise Rejected("Cannot name the image: read-only")

    assert fetch(Request(R), Frozen(here=registry(OLD)), tmp_path).status == 0


def test_podman_is_away(tmp_path: Path) -> None:
    class Away(Store):
        def image(self, reference: str) -> Found | None:
            raise Unavailable("Cannot look: podman does not answer", hint="systemctl status podman.socket")

    done = fetch(Request(R), Away(), tmp_path)
    assert (done.status, done.report.state, done.report.hint) == (1, "failed", "systemctl status podman.socket")


def test_a_pull_that_ends_without_the_image(tmp_path: Path) -> None:
    class Empty(Store):
        def pull(self, reference: str) -> Iterator[Mapping[str, Any]]:
            yield from ()

    assert "without the image" in fetch(Request(R), Empty(), tmp_path).report.error
