"""strixd-image.service: reads its request, pulls in steps and writes its report, as the real unit does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from strixd.sim.files import Disk
from strixd.sim.units import Run

REQUEST = "/run/strixd/image-request.json"
REPORT = "/run/strixd/image.json"
RECORD = "/var/lib/strixd/image.json"
LAYERS = 8
LAYER = 1_500_000_000  # bytes


@dataclass(slots=True)
class Registry:
    """Images of the world (`offered`: reference → content, which may change) and of this node's store (`stored`:
    digest → reference). `pull` is how long a pull takes, `look` a look without one; `fault`: why none succeeds; `sets`:
    what every image says of the link."""

    offered: dict[str, str] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    pull: float = 8.0
    look: float = 0.2
    fault: str = ""
    sets: str = ""

    def digest(self, reference: str) -> str:
        content = self.offered.get(reference, reference)
        return "sha256:" + hashlib.sha256(content.encode()).hexdigest()

    def runs(self, image: str) -> bool:
        """Whether podman would find what a Quadlet file's Image= names."""
        return any(digest in image or image == reference for digest, reference in self.stored.items())


class Fetch:
    """One run of the unit; of type oneshot."""

    warm_up = -1.0
    patience = 0.1

    def __init__(self, registry: Registry, disk: Disk, now: Callable[[], float], boot: str) -> None:
        self._registry = registry
        self._disk = disk
        self._now = now
        self._boot = boot

    def started(self, run: Run) -> None:
        request = json.loads(self._disk.files.get(REQUEST, "{}"))
        self._reference = str(request.get("reference", ""))
        self._update = bool(request.get("update"))
        self._wanted = "" if self._update else str(request.get("digest", ""))
        self._pull = str(request.get("pull", "missing"))
        run.after(self._registry.look, lambda: self._look(run))

    def ended(self) -> None:
        pass

    def _look(self, run: Run) -> None:
        digest = self._wanted or self._registry.digest(self._reference)
        if digest in self._registry.stored and not self._update:
            self._present(run, digest)
        elif self._pull == "never":
            self._fail(run, "the image is not here, and the file says pull = never")
        else:
            self._layer(run, digest, 0)

    def _layer(self, run: Run, digest: str, done: int) -> None:
        if self._registry.fault:
            self._fail(run, self._registry.fault)
        elif done == LAYERS:
            self._registry.stored[digest] = self._reference
            self._present(run, digest)
        else:
            self._report("pulling", digest, done)
            run.after(self._registry.pull / LAYERS, lambda: self._layer(run, digest, done + 1))

    def _present(self, run: Run, digest: str) -> None:
        record = json.loads(self._disk.files.get(RECORD, "{}"))
        if self._update or record.get("reference") != self._reference:
            self._disk.put(RECORD, json.dumps({"reference": self._reference, "digest": digest}))
        self._report("present", digest, LAYERS)
        run.exit(0)

    def _fail(self, run: Run, why: str) -> None:
        self._report("failed", "", 0, error=f"Cannot pull {self._reference}: {why}")
        run.log(why)
        run.exit(1)

    def _report(self, state: str, digest: str, done: int, *, error: str = "") -> None:
        report = {
            "reference": self._reference,
            "state": state,
            "digest": digest,
            "id": digest.removeprefix("sha256:")[::-1],
            "size": LAYERS * LAYER,
            "layers_done": done,
            "layers": LAYERS,
            "bytes": done * LAYER,
            "error": error,
            "hint": "podman pull says more" if error else "",
            "at": self._now(),
            "boot": self._boot,
            "sets": self._registry.sets,
        }
        self._disk.put(REPORT, json.dumps(report))
