"""cluster.toml and the daemon."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from strixd.doctor.facts import Complaints, Daemon
from strixd.doctor.finding import Check, Judged, Verdict

START = "systemctl enable --now strixd.socket strixd.service"
_VERDICTS: Mapping[str, Verdict] = {"ok": "ok", "waiting": "warning", "ineffective": "warning"}


def settings(complaints: Complaints) -> Judged:
    if not complaints.lines:
        return Judged("ok", "cluster.toml can be used, and names this host")
    mend = complaints.hint or "sudoedit /etc/strixd/cluster.toml && strixd-cli config check"
    return Judged("fault", "; ".join(complaints.lines), mend)


def daemon(daemon: Daemon) -> Judged:
    if daemon.status is None:
        return Judged("fault", daemon.why, f"{START}; journalctl -u strixd -b -n 50 says why it ended")
    phase, problem = str(daemon.status["phase"]), str(daemon.status["problem"])
    if problem:
        return Judged("warning", f"it keeps an earlier cluster.toml true: {problem}", "strixd-cli config check")
    if phase == "paused":
        return Judged("warning", "it is paused and changes nothing", "strixd-cli resume")
    return Judged("ok", f"strixd {daemon.status['version']} answers: {phase}")


def resource(name: str) -> Callable[..., Judged | None]:
    """A judge by the daemon's own word on one resource, for what needs its rights or its patience to know."""

    def judge(daemon: Daemon) -> Judged | None:
        if daemon.status is None:
            return Judged("unknown", daemon.why, START)
        told = daemon.resource(name)
        if told is None:
            return None
        read = str(told["why"]) or "; ".join(map(str, told["facts"])) or f"{name} is {told['condition']}"
        verdict = _VERDICTS.get(str(told["condition"]), "fault")
        return Judged(verdict, read, "" if verdict == "ok" else str(told["hint"]) or "strixd-cli apply")

    return judge


CHECKS = (
    Check(
        "settings",
        "strixd",
        settings,
        "a cluster.toml without mistakes that names this host",
        "all else follows from it",
    ),
    Check("daemon", "strixd", daemon, "strixd runs and answers", "without it nothing is made right or started again"),
)
