"""The status as one screen of text: a pure function of the reply, the clock and the width.

Plain dictionaries, not dataclasses: this is imported at every start. What the daemon reports may quote containers
and logs, so nothing that does not print reaches the terminal.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from strixd.cli.terminal import Paint, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    View = dict[str, Any]
else:
    View = dict

_LABEL = 10  # columns: "firewall  "


def screen(status: View, now: float, *, width: int = 80, paint: Paint = plain) -> list[str]:
    """The lines. `status` as the method Status gives it."""
    problem = [printable(line) for line in status["problem"].splitlines()]
    status = _cleaned(status)
    sections = (
        [*_head(status, now, paint), *_labelled("problem", problem)],
        [*_change(status["change"], now), *_released(status["released"])],
        _model(status, now),
        _members(status["members"]),
        _resources(status["resources"], now, paint),
        _incident(status["incident"], now),
        _next(status),
    )
    lines: list[str] = []
    for section in sections:
        block = [line for text in section for line in _wrapped(text, width)]
        lines += ["", *block] if lines and block else block
    return lines


def printable(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _cleaned(each) for key, each in value.items()}
    return [_cleaned(each) for each in value] if isinstance(value, list) else value


def ago(seconds: float) -> str:
    """3 s, 5 m, 2 h 10 m, 4 d 3 h, 30 d."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} m"
    return f"{whole // 86400} d {whole % 86400 // 3600} h" if whole < 10 * 86400 else f"{whole // 86400} d"


def clock(at: float, now: float) -> str:
    """The time of day, with the date when that is not today."""
    then, today = time.localtime(at), time.localtime(now)
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M:%S", then)


def when(at: float, now: float) -> str:
    return f"{clock(at, now)} ({ago(now - at)} ago)"


def _labelled(label: str, texts: Iterable[str]) -> Iterator[str]:
    """The label stands before the first of them."""
    for text in texts:
        yield f"{label:<{_LABEL}}{text}"
        label = ""


def _head(status: View, now: float, paint: Paint) -> Iterator[str]:
    role = f"{status['role']} of cluster {status['cluster']}" if status["role"] else "in no cluster yet"
    head = "" if status["role"] in ("head", "") else f" (head: {status['head']}, {status['headAddress']})"
    yield f"{status['node'] or 'this host'}, {role}{head}, strixd {status['version']}"
    phase = status["phase"]
    seen = f"; last looked at {when(status['at'], now)}" if status["at"] else ""
    amiss = ", ".join(each["name"] for each in status["resources"] if each["condition"] != "ok")
    but = f", but look at {amiss}:" if phase == "ready" and amiss else ""
    yield f"{paint(phase, phase)}{but} since {when(status['since'], now)}{seen}"


def _change(change: View | None, now: float) -> Iterator[str]:
    if change is not None:
        yield from _labelled("changing", [changing(change), f"since {when(change['began'], now)}, by {change['by']}"])


def changing(change: View) -> str:
    """Also for watch: "step 2 of 5: set the MTU of enp1s0 to 9000"."""
    taken, steps = change["taken"], change["steps"]
    if taken < len(steps):
        return f"step {taken + 1} of {len(steps)}: {steps[taken]['text']}"
    return f"all {len(steps)} steps are taken; looking whether it holds"


def _released(names: list[str]) -> Iterator[str]:
    if names:
        yield from _labelled("released", [LEFT_ALONE.format(", ".join(names))])


LEFT_ALONE = "{}: left alone since undo; strixd-cli apply takes it up again"


def _model(status: View, now: float) -> Iterator[str]:
    model = status["model"]
    nodes = ", ".join(member["name"] for member in status["members"])
    return _labelled("model", _model_texts(status, nodes, now) if model else ["none is ordered"])


def _model_texts(status: View, nodes: str, now: float) -> Iterator[str]:
    model = status["model"]
    yield f"{model['name']}, tensor parallel {model['parallel']} over {nodes}"
    if model["over"]:
        yield f"ranks: {model['over']}"
    if model["better"]:
        yield f"{model['better']} is there now: strixd-cli restart vllm takes it"
    if status["drained"]:
        yield "drained: not served until strixd-cli undrain"
        return
    if not model["answeredAt"]:
        yield "has not answered yet" + (f"; a start took {ago(model['usual'])} before" if model["usual"] else "")
        return
    if not model["since"]:
        yield f"does not answer now: last completion {when(model['answeredAt'], now)}"
        return
    yield f"answers at {model['url']} since {when(model['since'], now)}"
    yield f"last completion {when(model['answeredAt'], now)}, in {model['seconds']:.1f} s"


def _members(members: list[View]) -> Iterator[str]:
    joined = sum(member["joined"] for member in members)
    widths = [max((len(member[key]) for member in members), default=0) for key in ("name", "role", "address")]
    yield from _labelled("members", [f"{joined} of {len(members)}"])
    for member in members:
        cells = zip((member["name"], member["role"], member["address"]), widths, strict=True)
        place = "  ".join(f"{text:<{size}}" for text, size in cells)
        yield " " * _LABEL + f"{place}  {_membership(member)}"


def _membership(member: View) -> str:
    gpus = f", {member['gpus']} GPU{'s' if member['gpus'] != 1 else ''}" if member["joined"] else ""
    note = f": {member['note']}" if member["note"] else ""
    return f"{'joined' if member['joined'] else 'not joined'}{gpus}{note}"


def _resources(resources: list[View], now: float, paint: Paint) -> Iterator[str]:
    for resource in resources:
        condition = resource["condition"]
        word = paint(condition, condition) + " " * (8 - len(condition))
        since = f"for {ago(now - resource['since'])}, seen {ago(now - resource['observedAt'])} ago"
        yield from _labelled(resource["name"], [f"{word} {since}", *_details(resource, now)])


def _details(resource: View, now: float) -> Iterator[str]:
    if resource["why"]:
        yield resource["why"]
    if resource["hint"]:
        yield f"→ {resource['hint']}"
    if resource["nextTry"]:
        yield f"next try {clock(resource['nextTry'], now)} (in {ago(resource['nextTry'] - now)})"
    for step in resource["steps"]:
        yield f"to do: {step['text']}{' (after a reboot)' if step['effect'] == 'reboot' else ''}"
    if resource["facts"]:
        yield "; ".join(resource["facts"])


def _incident(incident: View | None, now: float) -> Iterator[str]:
    if incident is None:
        return
    began, ended = incident["began"], incident["ended"]
    state = f"over after {ago(ended - began)}" if ended else f"for {ago(now - began)} now"
    if not ended and any(moment["name"] == "serving" for moment in incident["moments"]):
        state += "; answers again, over when that lasts"
    yield from _labelled("incident", [f"{incident['resource']}: {incident['cause']}", f"{when(began, now)}, {state}"])
    moments = (f"{moment['name']} +{max(0.0, moment['at'] - began):.1f} s" for moment in incident["moments"])
    if told := ", ".join(moments):
        yield " " * _LABEL + told


def _next(status: View) -> Iterator[str]:
    if advice := _amends(status) or _use(status):
        yield from _labelled("next", [advice])


def _amends(status: View) -> str:
    """What to do about what is not as it should be, the most telling first."""
    needed = [each for each in status["resources"] if each["name"] != "cmdline"]  # whose own line says what to do
    amiss = [each["name"] for each in needed if each["condition"] in ("held", "stuck", "blocked")]
    hints = [each["hint"] for each in needed if each["condition"] in ("stuck", "blocked") and each["hint"]]
    if status["phase"] == "paused":
        return "strixd-cli resume"
    if hints:  # no log tells more than what a person must do; the lowest layer comes first
        return printable(str(hints[0]))
    if any(each["condition"] == "reboot" for each in status["resources"]):
        return "systemctl reboot (kernel arguments are written, and not what runs)"
    if status["released"]:
        return "strixd-cli apply (takes up again what undo has let go)"
    if amiss:
        return f"strixd-cli logs{_unit(amiss)}"
    return "sudoedit /etc/strixd/cluster.toml && strixd-cli apply" if status["problem"] else ""


def _use(status: View) -> str:
    model = status["model"]
    if status["phase"] in ("starting", "converging", "degraded"):
        return "strixd-cli watch"
    if status["drained"]:
        return "strixd-cli undrain" if status["role"] == "head" else ""
    if model is None:
        return "strixd-cli serve MODEL" if status["role"] == "head" else ""
    return f"curl {model['url']}/v1/models" if model["answeredAt"] else ""


def _unit(amiss: list[str]) -> str:
    return next((f" {name}" for name in reversed(amiss) if name in ("vllm", "ray")), " daemon")


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines of at most `width` columns (colours count for nothing); the later ones below where the text begins."""
    label, rest = text[:_LABEL], text[_LABEL:]
    if label.strip() and not label.endswith(" "):
        label, rest = "", text
    indent = _LABEL if label else 2
    line = label
    for word in rest.split(" "):
        if line.strip() and _length(line) + 1 + _length(word) > width:
            yield line.rstrip()
            line = " " * indent + word
        else:
            line = f"{line}{'' if line in ('', label) else ' '}{word}"
    yield line.rstrip()


def _length(text: str) -> int:
    """Columns, without the colours."""
    return sum(len(part.partition("m")[2]) if at else len(part) for at, part in enumerate(text.split("\x1b")))
