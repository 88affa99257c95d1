"""Ray, its members and the model: all that goes over several nodes."""

from __future__ import annotations

from strixd.doctor.checks.daemon import START, resource
from strixd.doctor.facts import Completion, Daemon, Own
from strixd.doctor.finding import Check, Judged


def members(daemon: Daemon, own: Own) -> Judged | None:
    """As the head has them."""
    if daemon.status is None:
        return Judged("unknown", daemon.why, START)
    listed = daemon.status["members"]
    away = [f"{each['name']} ({each['address']})" for each in listed if not each["joined"]]
    gpus = {node.name: node.gpus for node in own.config.nodes}
    few = [
        f"{each['name']} brings {each['gpus']} GPUs, the file says {gpus.get(each['name'])}"
        for each in listed
        if each["joined"] and each["gpus"] != gpus.get(each["name"])
    ]
    if away or few:
        lacking = [f"{name} has not joined" for name in away] + few
        return Judged("fault", "; ".join(lacking), "strixd-cli doctor on that node")
    return Judged("ok", f"{len(listed)} of {len(gpus)} nodes have joined, with all their GPUs")


def model(completion: Completion | None, daemon: Daemon) -> Judged | None:
    """A token that came out now, or else the daemon's word: on a busy server one may wait for longer than this asks."""
    if completion is None or not completion.model:
        return None
    if not completion.trouble:
        return Judged("ok", f"{completion.model} answers: a token came out")
    told = daemon.resource("vllm")
    if told is not None and told["condition"] == "ok":
        return Judged("ok", f"{completion.model} answers as strixd has seen; {completion.trouble} for this one")
    why = f"; {told['why']}" if told and told["why"] else ""
    hint = str(told["hint"]) if told and told["hint"] else "strixd-cli status; strixd-cli logs vllm"
    return Judged("fault", f"{completion.model} does not answer: {completion.trouble}{why}", hint)


CHECKS = (
    Check("ray", "ray", resource("ray"), "Ray runs and has its members", "the ranks are placed by it"),
    Check("members", "ray", members, "all nodes of cluster.toml", "below the full size nothing is served"),
    Check("model", "model", model, "a token comes out", "/health says 200 of a dead engine, too"),
)
