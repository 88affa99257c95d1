"""The course of one fault: done, mended where it must be, tokens again; and all that was not as it should be.

Nothing is judged by an assertion halfway: one run of a fault takes minutes, so it tells everything at once.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.faults.tokens.fault import AWAY, Act, Fault
from tests.faults.tokens.processes import Process, processes
from tests.faults.tokens.watch import Span, Watch, servers, survivors
from tests.lab.host import wait_for

Told = dict[str, Any]
MOMENTS = ("noticed", "decided", "stopped", "started", "loaded", "serving")
PATIENCE = float(os.environ.get("STRIXD_FAULTS_PATIENCE", "1"))  # times as long on a machine that others use, too
CALM = 15.0  # seconds after the tokens: what would begin now would be a second restart for the same fault


@dataclass
class Course:
    """What came of a fault. Times in `at` are seconds since it was done; `tokens`: a completion came out."""

    fault: Fault
    began: float = field(default_factory=time.time)
    at: dict[str, float] = field(default_factory=dict)
    cause: str = ""
    complaints: list[str] = field(default_factory=list)

    def note(self, name: str, when: float = 0.0) -> None:
        self.at[name] = (when or time.time()) - self.began


def undergo(cluster: Cluster, fault: Fault, *, several: bool = False) -> Course:
    """`several`: more than one fault is done at once, so there may be more than one incident."""
    before = _server(cluster)
    with Watch(cluster.hosts) as watch:
        course = Course(fault)
        for act in (fault.harm, fault.meanwhile, fault.mend):
            _attempt(course, act, cluster)
        course.note("mended")
        if _recovers(course, cluster):
            _calm(course, cluster)
    _judge_processes(course, cluster, before, watch.seen)
    judge_incidents(course, incidents(cluster, course.began), several=several)
    return course


def incidents(cluster: Cluster, since: float) -> list[Told]:
    """Those that began after `since`, oldest first, as the head tells them; none when it does not."""
    with suppress(*AWAY):
        told: list[Told] = cluster.ask("Incidents", count=50)["incidents"]
        return sorted((each for each in told if each["began"] >= since), key=lambda each: float(each["began"]))
    return []


def _server(cluster: Cluster) -> Process | None:
    return next((each for each in processes(cluster.head) if each.kind == "server"), None)


def _attempt(course: Course, act: Act, cluster: Cluster) -> None:
    try:
        act(cluster)
    except AWAY as failure:
        course.complaints.append(f"{type(failure).__name__}: {failure}")


def _recovers(course: Course, cluster: Cluster) -> bool:
    """Tokens, and each incident is over. A server that has not noticed the harm yet may still answer once."""
    fault = course.fault

    def again() -> bool:
        with suppress(*AWAY):
            found = incidents(cluster, course.began)
            over = all(each["ended"] for each in found) and (fault.steady or bool(found))
            return over and cluster.status()["phase"] == "ready" and bool(cluster.complete(timeout=10))
        return False

    try:
        wait_for("tokens again", again, fault.within * PATIENCE, pause=1.0)
    except TimeoutError as late:
        course.complaints.append(f"{late}; {state(cluster)}")
        return False
    course.note("tokens")
    return True


def _calm(course: Course, cluster: Cluster) -> None:
    """It stays so."""
    time.sleep(CALM)
    if not cluster.complete():
        course.complaints.append(f"the second completion did not come; {state(cluster)}")
    elif (phase := cluster.status()["phase"]) != "ready":
        course.complaints.append(f"{phase} after the second completion; {state(cluster)}")


def state(cluster: Cluster) -> str:
    """Of every host in a line, for a message."""
    return "; ".join(_state(cluster, number) for number in range(len(cluster.hosts)))


def _state(cluster: Cluster, number: int) -> str:
    host = cluster.hosts[number]
    try:
        told = cluster.status(host)
    except AWAY as failure:
        return f"{host.name}: {str(failure)[:200]}"
    lacking = [f"{each['name']} {each['condition']}: {each['why']}" for each in told["resources"] if each["why"]]
    return f"{host.name} is {told['phase']}: {', '.join(lacking)}"


def _judge_processes(course: Course, cluster: Cluster, before: Process | None, seen: Mapping[Process, Span]) -> None:
    course.complaints += survivors(seen)
    runs = servers(seen)
    if course.fault.steady and (len(runs) != 1 or runs[0] != before):
        course.complaints.append(f"the server should have gone on: {before} before, then {', '.join(map(str, runs))}")
    if not course.fault.steady and "tokens" in course.at:
        course.complaints += _left_in_memory(cluster, runs[-1])


def _left_in_memory(cluster: Cluster, server: Process) -> list[str]:
    """Shared memory of ranks that were there before this server: in the Ray container, which the model's joins."""
    folder = cluster.head.path(f"/proc/{server.pid}/root/dev/shm")
    born = server.began + time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    old = [file.name for file in folder.glob("psm_*") if file.stat().st_mtime < born]
    return [f"{len(old)} objects in shared memory are older than the server: {', '.join(old)}"] if old else []


def judge_incidents(course: Course, found: list[Told], *, several: bool) -> None:
    if len(found) > 1 and not several:
        course.complaints.append(f"{len(found)} incidents for one fault: {'; '.join(str(i['cause']) for i in found)}")
    if not found:
        if not course.fault.steady:
            course.complaints.append("no incident was kept")
        return
    course.cause = "; ".join(f"{each['resource']}: {each['cause']}" for each in found)
    if not re.search(course.fault.cause, course.cause):
        course.complaints.append(f"the cause {course.cause!r} does not match {course.fault.cause!r}")
    for each in found:
        _judge_moments(course, each)


def _judge_moments(course: Course, incident: Told) -> None:
    moments = [(str(each["name"]), float(each["at"])) for each in incident["moments"]]
    for name, when in moments:
        course.at.setdefault(name, when - course.began)
    whens = [when for _, when in moments]
    if whens != sorted(whens) or len(set(moments)) != len(moments):
        course.complaints.append(f"the moments are out of order: {moments}")
    wanted = ("noticed", "serving") if course.fault.steady else MOMENTS
    if missing := [name for name in wanted if name not in dict(moments)]:
        course.complaints.append(f"the incident has no moment {', '.join(missing)}: {moments}")
    if not incident["ended"]:
        course.complaints.append("the incident is not over")


COURSES = pytest.StashKey[list[Course]]()
"""Of this run, for the table at its end."""


def table(courses: list[Course]) -> list[str]:
    """A line per fault, seconds since it was done."""
    columns = ("mended", *MOMENTS, "tokens")
    lines = [f"{'fault':44}" + "".join(f"{name:>9}" for name in columns) + "  cause"]
    for course in courses:
        times = "".join(f"{course.at[name]:9.1f}" if name in course.at else f"{'-':>9}" for name in columns)
        lines.append(f"{course.fault.name:44}{times}  {'' if not course.complaints else 'WRONG '}{course.cause}")
    return lines
