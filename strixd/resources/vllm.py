"""The model server, on the head only: the ordered model answers with a completion.

Whatever ends it is a failure unless it was asked for; an exit status of 0 is no sign of intent (vLLM exits 0 when
its engine dies). Some ends are permanent and named at once instead of tried again (measured with vLLM 0.32).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strixd import workload
from strixd.elapsed import elapsed, later
from strixd.fabric import LINKS, Fabric, Pick, pick
from strixd.occupied import Seat, unless_taken
from strixd.plan import Plan, Step, unguarded
from strixd.ports import Answer, Holder, Host, Progress, Served, Unit
from strixd.quadlet import FOLDER, Container, link, render
from strixd.resources import drain, image, leftovers, record
from strixd.resources.completed import fingerprint, with_host
from strixd.resources.ray import NAME as RAY
from strixd.resources.ray import SERVER

FAILING = 5.0
"""Seconds of errors that count: vLLM whose engine has died ends by itself within 4 s (0.32, seen)."""
UNPROVEN = 60.0
"""Seconds in which a server that listens may bring errors before its first completion."""
CALM = 20.0
"""Seconds after which what a lost link has delayed moves again, if it ever does: TCP's next try is 13 s after 12 s."""
STILL = 120.0
"""Seconds in which a start that goes on writes a line, grows a file or uses a processor."""
RANK_LOST = 15.0
"""Seconds after which a server that starts has not ended by itself although a rank of it has: it may then wait for that
rank for ever ("RayWorkerProc died unexpectedly, shutting down executor", and no end: vLLM 0.32, seen)."""
ONLY_WORKS = 3600.0
"""Seconds for which processor time alone counts as progress: the longest compilation reported took 36 minutes."""
NAME = SERVER
ASKED_AGAIN = "mend that: the hub is asked again by itself; or strixd-cli serve with another name"
OTHERWISE = "strixd-cli logs vllm; then strixd-cli serve with other words"
USAGE = 2  # vllm's exit status for arguments that it does not know
PERMANENT = (
    ("Repo id must be", "no such model: it is neither a folder below the model folder nor a name of the hub"),
    ("is not a local folder and is not a valid model identifier", "no such model on the hub"),
    ("GatedRepoError", "the model is gated: strixd-cli token set on every node, then strixd-cli apply"),
    ("must be divisible by tensor parallel size", "this model cannot be split over so many GPUs"),
    ("are not supported for now", "this vLLM does not know the model's architecture"),
    ("Unknown quantization method", "this vLLM does not know the model's quantization"),
    ("User-specified max_model_len", "--max-model-len does not fit this model"),
)
SHORT = (
    ("less than requested memory for kv", "not enough memory for the key-value cache"),
    ("larger than the available KV cache memory", "not enough memory for the key-value cache"),
    ("No available memory for the cache blocks", "not enough memory for the key-value cache"),
    ("out of memory. Tried to allocate", "not enough GPU memory for this model"),
)
"""What a model that has answered once may get over: something else had the memory."""
NO_MODEL = (("Invalid repository ID or local directory", "its folder holds no model that vLLM can read"),)
"""Of a folder of this host; of a name it is said whenever the hub cannot be reached, too."""


@dataclass(frozen=True, slots=True)
class Desired:
    """`container` None: nothing shall be served, though `model` may be ordered. `local`: its folder on this host,
    should it exist there; `path`: the same in the container; `cached`: what is there when it was fetched from the hub.
    `retry_after` as in resources/ray.py."""

    container: Container | None
    model: str
    local: str
    cached: str
    path: str
    url: str
    listen: Seat
    key: str
    api_key: str
    fabric: Fabric
    management: tuple[str, ...]
    retry_after: float
    grows: tuple[str, ...]  # folders of this host that grow while it starts
    drain: drain.Desired = field(default_factory=drain.Desired)


@dataclass(frozen=True, slots=True)
class Observed:
    pick: Pick
    image: image.Report
    text: str | None
    unit: Unit
    present: tuple[str, ...]  # those of devices and model folder that exist
    keys: str
    api_key: bool
    answer: Answer
    now: float
    draining: drain.Observed = field(default_factory=drain.Observed)
    refusal: str = ""
    words: tuple[str, ...] = ()
    progress: Progress | None = None  # None unless it runs and has not answered yet
    holders: tuple[Holder, ...] = ()  # who listens on the API's port; asked while the unit is down
    ray: str | None = None  # the text of the Ray container on this node
    left: Mapping[str, int] = field(default_factory=dict)  # ranks that the nodes tell of while the unit is down


class Vllm:
    name: ClassVar[str] = "vllm"
    settle: ClassVar[float] = 0.0
    supervised: ClassVar[bool] = True
    guard = staticmethod(unguarded)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ("firewall", "network", "image", "ray") if desired.container else ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        unit = await host.units.read(f"{NAME}.service")
        draining = await drain.observe(host, desired.drain, unit)
        running = unit.active == "active" and bool(desired.model) and draining.asked is None
        served = Served(desired.url, desired.model, unit.invocation, desired.api_key) if running else None
        devices = desired.container.devices if desired.container else ()
        seen = await host.files.present((*devices, desired.local, desired.cached))
        remote = desired.container is not None and not {desired.local, desired.cached} & set(seen) and not running
        answer = await host.model.look(served)
        return Observed(
            pick=pick(desired.fabric, await host.links.read(), management=desired.management),
            image=image.report(await host.files.read(image.REPORT)),
            text=await host.files.read(f"{FOLDER}/{NAME}.container"),
            unit=unit,
            present=seen,
            keys=await fingerprint(host.files, desired.key, desired.api_key),
            api_key=bool(await fingerprint(host.files, desired.api_key)),
            answer=answer,
            now=host.now(),
            draining=replace(draining, requests=drain.requests(answer)),
            refusal=await host.hub.refusal(desired.model) if remote else "",
            words=await workload.last_words(host, unit, 40) if _over(unit) else (),
            progress=await _progress(host, desired, unit) if running and not answer.proven else None,
            holders=await host.listeners.on(desired.listen.port) if desired.container and workload.down(unit) else (),
            ray=await host.files.read(f"{FOLDER}/{RAY}.container"),
            left=await _left(host) if workload.down(unit) else {},
        )

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        plan = unless_taken(self._plan(desired, observed), observed.unit, desired.listen, observed.holders)
        return leftovers.without(plan, observed.left)

    def _plan(self, desired: Desired, observed: Observed) -> Plan:
        unit = observed.unit
        if ending := drain.plan(self.name, desired.drain, observed.draining, unit):
            return ending
        if desired.container is None:
            path = f"{FOLDER}/{NAME}.container"
            steps = workload.remove(unit.name, path, before=observed.text, unit=unit)
            return Plan(self.name, steps, facts=drain.facts(desired.drain, observed.draining))
        if observed.pick.link is None:
            return Plan(self.name, condition="blocked", why=observed.pick.why, hint=LINKS)
        if desired.api_key and not observed.api_key:
            why = f"no {desired.api_key}, and [model] listen opens the API to other hosts"
            hint = f"write a key into {desired.api_key} (mode 0600), or listen on 127.0.0.1"
            return Plan(self.name, condition="blocked", why=why, hint=hint)
        if observed.refusal:
            return Plan(self.name, condition="stuck", why=observed.refusal, hint=ASKED_AGAIN)
        container = complete(desired, observed)
        changed = observed.text != render(container)
        if under_way := workload.under_way(self.name, unit, changed=changed):
            return under_way
        if changed:
            return _changed(self.name, desired, observed, container)
        return (
            _serving(self.name, desired, observed) if unit.active == "active" else _down(self.name, desired, observed)
        )


def _changed(name: str, desired: Desired, observed: Observed, container: Container) -> Plan:
    """What was running ends first, one that answers by draining: a later pass starts the new one, when no rank of the
    old one is left."""
    unit, answer = observed.unit, observed.answer
    why = "its settings changed" if observed.text or unit.active == "active" else ""
    if unit.active == "active" and answer.proven:
        return drain.begin(name, desired.drain, observed.draining, unit, why)
    if unit.active == "active" and not answer.failed_at:
        return Plan(name, condition="waiting", why=f"{why}; {drain.UNASKED}")
    steps = workload.replace(container, before=observed.text, unit=unit, why=why)
    return Plan(name, steps[:-1] if unit.active in workload.UP else steps)


async def _progress(host: Host, desired: Desired, unit: Unit) -> Progress:
    """Ranks elsewhere tell by their nodes' records what they do."""
    report = await host.ray.report()
    others = [member.record for member in report.members if member.alive] if report else []
    signs = (await workload.last_words(host, unit, 1), [other.get("bytes", "") for other in others])
    seconds = sum(record.number(other.get("cpu", "")) for other in others)
    ranks = leftovers.counted(report.members) if report else None
    return await host.work.progress(unit.invocation, desired.grows, signs, seconds, ranks)


async def _left(host: Host) -> Mapping[str, int]:
    report = await host.ray.report()
    return leftovers.by_node(report.members) if report else {}


def complete(desired: Desired, observed: Observed) -> Container:
    """The container with what only this host knows. The server goes over the link as the Ray does that it joins."""
    assert desired.container
    devices = tuple(device for device in desired.container.devices if device in observed.present)
    base = replace(desired.container, devices=devices, keys=observed.keys)
    full = with_host(base, observed.image, link(observed.ray or ""))
    model = desired.path if desired.local in observed.present else desired.model
    return replace(full, command=tuple(model if word == MODEL else word for word in full.command))


MODEL = "\0model"
"""Stands in the command for the model's name or folder: which of the two, only the host knows."""


def _serving(name: str, desired: Desired, observed: Observed) -> Plan:
    answer, unit = observed.answer, observed.unit
    if answer.at and not answer.error:
        fact = f"{desired.model} answers at {desired.url}: a completion came out in {answer.seconds:.2f} s"
        return Plan(name, facts=(fact,))
    if not answer.proven:
        return _loading(name, desired, observed)
    if not answer.failed_at:
        why = f"{desired.model} works for others and is not asked itself yet"
        return Plan(name, condition="waiting", why=why, hint="strixd-cli logs vllm -f")
    why = f"{desired.model} has stopped answering: {answer.error}"
    steps = _begin_anew(unit, why) if elapsed(answer.failing, answer.failed_at) >= FAILING else ()
    return Plan(name, steps, "held" if steps else "waiting", why, "strixd-cli logs vllm", calm=CALM)


def _loading(name: str, desired: Desired, observed: Observed) -> Plan:
    answer, unit = observed.answer, observed.unit
    why = f"{desired.model} is loading"  # in words that stay the same, or every pass would bring news
    facts = (f"no answer yet: {answer.error}",) if answer.error else ()
    if stalled := _stalled(observed):
        why = f"{desired.model} does not come up: {stalled}"
        return Plan(name, _begin_anew(unit, why), "held", why, "strixd-cli logs vllm", facts, calm=CALM)
    return Plan(name, condition="waiting", why=why, hint="strixd-cli logs vllm -f", facts=facts, again=RANK_LOST)


def _begin_anew(unit: Unit, why: str) -> tuple[Step, ...]:
    """Of a run that is there and hangs. The next pass starts the new one, when no rank of this one is left."""
    return (*workload.gather(unit, why), workload.Stop(unit.name, why))


def _stalled(observed: Observed) -> str:
    """Why the start will not come to an end, "" while it may."""
    answer, progress = observed.answer, observed.progress
    unproven = elapsed(answer.heard_at, answer.failed_at) if answer.heard_at else 0.0
    if answer.error.startswith("HTTP") and unproven > UNPROVEN:
        return answer.error
    if progress is None:
        return ""
    if progress.short >= RANK_LOST:
        return f"one of its ranks ended {RANK_LOST:.0f} s ago, and the server still waits for it"
    if min(progress.still, progress.idle) > STILL:
        return f"for {STILL:.0f} s it has written nothing, grown no file and used no processor"
    if progress.still > ONLY_WORKS:
        return f"for {ONLY_WORKS / 60:.0f} min it has written nothing and grown no file, though it uses the processor"
    return ""


def _over(unit: Unit) -> bool:
    return bool(unit.invocation) and unit.active in ("failed", "inactive")


def _down(name: str, desired: Desired, observed: Observed) -> Plan:
    unit = observed.unit
    how = workload.ended(unit)
    tried = not later(desired.retry_after, unit.since, observed.now)
    if tried and (never := _permanent(unit, observed.words, here=desired.local in observed.present)):
        return Plan(name, condition="stuck", why=f"vllm {how}: {never}", hint=OTHERWISE, facts=observed.words[-2:])
    start = workload.start(unit, how)
    if tried and (short := _said(unit, observed.words, SHORT)):
        return Plan(name, start, "held", f"vllm {how}: {short}", OTHERWISE, observed.words[-2:], hopeless=True)
    why = f"{unit.name} {how}" if how else f"{unit.name} is not running"
    return Plan(name, start, "held", why, "strixd-cli logs vllm", observed.words[-2:])


def _permanent(unit: Unit, words: tuple[str, ...], *, here: bool) -> str:
    """Why starting again cannot help, "" when it may. `here`: the model is a folder of this host."""
    if unit.result == "exit-code" and unit.status == USAGE:
        said = next((line for line in reversed(words) if "error:" in line), "it does not know an argument")
        return said.partition("error:")[2].strip() or said
    return _said(unit, words, (*PERMANENT, *(NO_MODEL * here)))


def _said(unit: Unit, words: tuple[str, ...], signs: tuple[tuple[str, str], ...]) -> str:
    """What the end of a run that failed by itself says, of these; "" for none."""
    if unit.result != "exit-code" or not unit.status:
        return ""
    return next((why for sign, why in signs if any(sign in line for line in words)), "")


def command(*, model: str, port: int, listen: str, parallel: int, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """`vllm serve` as the cluster wants it; `arguments` are the person's own and come last, so that they win."""
    own = shlex.split(
        f"--host {listen} --port {port} --tensor-parallel-size {parallel} --distributed-executor-backend ray"
    )
    return ("vllm", "serve", MODEL, "--served-model-name", model, *own, *arguments)
