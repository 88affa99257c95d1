"""The container image: present, and the one whose digest was recorded at the first pull.

A floating tag is somebody else's change: the digest stays until `strixd-cli image update`. Looking and pulling is
the work of strixd-image.service (strixd/fetch.py); here its report is read and the unit started when needed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from strixd.elapsed import later
from strixd.plan import Effect, Plan, Step, unguarded
from strixd.ports import Host, Unit

UNIT = "strixd-image.service"
REQUEST = "/run/strixd/image-request.json"
REPORT = "/run/strixd/image.json"
RECORD = "/var/lib/strixd/image.json"


@dataclass(frozen=True, slots=True)
class Fetch:
    """Ask the unit to look, and to pull what is missing."""

    effect: ClassVar[Effect] = Effect.NOW
    reference: str
    digest: str
    pull: str
    update: bool

    def __str__(self) -> str:
        what = f"{self.reference} at {self.digest}" if self.digest and not self.update else self.reference
        return f"{'update' if self.update else 'look for'} image {what}" + (
            " and pull it" if self.pull != "never" else ""
        )

    def undo(self) -> Step | None:
        return None

    async def apply(self, host: Host) -> None:
        request = {"reference": self.reference, "digest": self.digest, "pull": self.pull, "update": self.update}
        await host.files.write(REQUEST, json.dumps(request))
        await host.units.start(UNIT)


@dataclass(frozen=True, slots=True)
class Report:
    """What the unit last said (strixd/fetch.py writes it). `at`: seconds since the epoch. `sets`: what the image's own
    environment says of the link, in words."""

    reference: str = ""
    state: str = ""  # pulling | present | failed
    digest: str = ""
    id: str = ""
    size: int = 0  # bytes
    layers_done: int = 0
    layers: int = 0
    bytes: int = 0  # pulled so far
    error: str = ""
    hint: str = ""
    at: float = 0.0
    boot: str = ""
    sets: str = ""


@dataclass(frozen=True, slots=True)
class Desired:
    """`update_after`: when a person last asked for the newest image, 0 for never."""

    reference: str
    pull: str
    update_after: float


@dataclass(frozen=True, slots=True)
class Observed:
    """`suspect`: when the Ray unit last failed; a report older than that proves nothing."""

    unit: Unit
    report: Report
    recorded: str
    boot: str
    suspect: float
    now: float


class Image:
    name: ClassVar[str] = "image"
    settle: ClassVar[float] = 0.0
    supervised: ClassVar[bool] = True
    guard = staticmethod(unguarded)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        ray = await host.units.read("strixd-ray.service")
        record = loads(await host.files.read(RECORD))
        recorded = str(record.get("digest", "")) if record.get("reference") == desired.reference else ""
        return Observed(
            unit=await host.units.read(UNIT),
            report=report(await host.files.read(REPORT)),
            recorded=recorded,
            boot=host.identity.boot,
            suspect=ray.since if ray.active == "failed" else 0.0,
            now=host.now(),
        )

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        said = observed.report
        if observed.unit.active in ("active", "activating"):
            why = _progress(desired, said)
            return Plan(self.name, condition="waiting", why=why, facts=_facts(observed), echo=True)
        update = later(desired.update_after, said.at, observed.now)
        fetch = (Fetch(desired.reference, observed.recorded, desired.pull, update),)
        suspect = later(observed.suspect, said.at, observed.now)
        stale = said.reference != desired.reference or said.boot != observed.boot or suspect
        if update or stale or said.state == "pulling":  # "pulling" without its unit: it was killed
            return Plan(self.name, fetch, facts=_facts(observed))
        if said.state == "failed":
            return Plan(self.name, fetch, "held", said.error, said.hint, _facts(observed))
        return Plan(self.name, facts=_facts(observed))


def loads(text: str | None) -> dict[str, object]:
    """A JSON object, {} for anything else: these files can be cut off by nothing, but be edited by anybody."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def report(text: str | None) -> Report:
    """Fields of another type than they should have are left at their defaults."""
    raw, known = loads(text), Report()
    fields = {name: raw[name] for name in Report.__slots__ if _same(raw.get(name), getattr(known, name))}
    return Report(**fields)  # type: ignore[arg-type]  # types were just compared


def _same(value: object, like: object) -> bool:
    return isinstance(value, (int, float) if isinstance(like, float) else type(like)) and not isinstance(value, bool)


def _progress(desired: Desired, said: Report) -> str:
    if said.state != "pulling":
        return f"looking for {desired.reference}"
    layers = f"{said.layers_done} of {said.layers} layers" if said.layers else "starting"
    return f"pulling {desired.reference}: {layers}, {said.bytes / 1e9:.2f} GB"


def _facts(observed: Observed) -> tuple[str, ...]:
    said = observed.report
    if said.state != "present" or said.boot != observed.boot:
        return ()
    here = f"{said.reference} at {said.digest[:19]}, {said.size / 1e9:.2f} GB"
    return (here, f"no newer one: {said.error}") if said.error else (here,)


def runnable(said: Report) -> str:
    """The name under which podman runs exactly this image: by digest, or by id where it was only loaded here."""
    repository = said.reference.partition("@")[0]
    head, _, tag = repository.rpartition(":")
    if head and "/" not in tag:
        repository = head
    return (
        f"sha256:{said.id.removeprefix('sha256:')}"
        if repository.startswith("localhost/")
        else f"{repository}@{said.digest}"
    )
