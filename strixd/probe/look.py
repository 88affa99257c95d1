"""The look: Ray's client in the Ray container, which talks to strixd."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import time
from typing import Any

from strixd.probe.members import LABEL, current, gist, member, read_record, refused
from strixd.probe.vitals import Vitals
from strixd.probe.words import option, session_link
from strixd.probe.wrapper import knock

LOOK_SECONDS = 2.0
HASTE_SECONDS = 0.1  # between looks for a while after a rank has ended here: it ends on the other nodes, too
HASTE_LASTS = 5.0
REPORT_SECONDS = 10.0
RENEW_SECONDS = 5.0
CALL_SECONDS = 2.0
NAMESPACE = b"strixd"


class Cluster:
    """What one look at Ray brings. The client is made anew after every error; none of its calls waits for long."""

    def __init__(self, command: list[str], shared: str) -> None:
        self.address = option(command, "address", f"{option(command, 'node-ip-address')}:{option(command, 'port')}")
        self.link = session_link(command)
        self.name = dict(word.partition("=")[::2] for word in option(command, "labels").split(",")).get(LABEL, "")
        self.record: dict[str, str] = {}
        self.client: Any = None
        self.session = ""
        self.renewed = 0.0
        self.vitals = Vitals(shared)
        self.ranks, self.held = 0, ""
        self.told = (0, "")
        self.hasty = 0.0
        self.seen: dict[str, tuple[object, float]] = {}

    def look(self) -> dict[str, Any]:
        import ray
        from ray.exceptions import RayError

        members, trouble, before = [], "", self.client
        self.count()
        try:
            members = self.members()
        except (RayError, OSError) as error:
            self.client, self.session = None, ""
            if before and refused(error):  # to a new head the client of an old one is a stranger, whatever its key
                return self.look()
            trouble = self.words(error)
        report = {"session": self.session, "own_session": self.own_session(), "version": ray.__version__}
        return {**report, "members": members, "error": trouble}

    def members(self) -> list[dict[str, Any]]:
        if self.client is None:
            self.connect()
        found = self.session.encode() or self.client.internal_kv_get(b"session_name", b"session", CALL_SECONDS)
        self.session = (found or b"").decode()  # a head that has just begun to listen has none yet
        self.publish()
        nodes = self.client.get_all_node_info(timeout=CALL_SECONDS).values()
        oldest_first = sorted(nodes, key=lambda node: int(node.start_time_ms))
        return self.with_records(current([member(node) for node in oldest_first]))

    def connect(self) -> None:
        """Knocks first: Ray's own attempt would take seconds to say that nobody listens."""
        from ray._raylet import InnerGcsClient

        knock(self.address, CALL_SECONDS)
        self.client, self.renewed = InnerGcsClient.standalone(self.address, None, int(CALL_SECONDS * 1000)), 0.0

    def count(self) -> None:
        before, self.ranks = self.ranks, self.vitals.ranks()
        self.held = self.vitals.held()
        if self.ranks < before:
            self.hasty = time.monotonic() + HASTE_LASTS

    def publish(self) -> None:
        told = (self.ranks, self.held)
        if self.record and self.name and (told != self.told or time.monotonic() - self.renewed >= RENEW_SECONDS):
            left = {"ranks": str(self.ranks), "gpu": self.held}
            record = {**self.record, **self.vitals.record(), **left, "at": time.time()}
            self.client.internal_kv_put(self.name.encode(), json.dumps(record).encode(), True, NAMESPACE, CALL_SECONDS)
            self.renewed, self.told = time.monotonic(), told

    def rest(self, line: socket.socket) -> bool:
        """Until it is time for the next look, or the end of a rank calls for one. Whether strixd says something."""
        pause = HASTE_SECONDS if time.monotonic() < self.hasty else LOOK_SECONDS
        watched = [line.fileno(), *self.vitals.processes.ranks.values()]
        return line.fileno() in select.select(watched, [], [], pause)[0]

    def with_records(self, members: list[dict[str, Any]]) -> list[dict[str, Any]]:
        names = sorted({m["name"].encode() for m in members if m["name"]})
        found = self.client.internal_kv_multi_get(names, NAMESPACE, CALL_SECONDS) if names else {}
        for one in members:
            one["record"] = read_record(found.get(one["name"].encode(), b""))
            one["age"] = self.age(one["name"], one["record"].pop("at", None))
        return members

    def age(self, name: str, stamp: object) -> float:
        """By our own clock, since the clocks of two nodes need not agree."""
        if name not in self.seen or self.seen[name][0] != stamp:
            self.seen[name] = (stamp, time.monotonic())
        return round(time.monotonic() - self.seen[name][1], 1)

    def own_session(self) -> str:
        with contextlib.suppress(OSError):
            return self.link.readlink().name
        return ""

    def words(self, error: Exception) -> str:
        """Without numbers that differ from look to look."""
        if refused(error):
            return f"the head at {self.address} has another cluster key"
        state = "does not answer" if self.own_session() else "is not there yet"
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition("\n")[0]
        return f"the head at {self.address} {state}: {reason}"


def take_orders(line: socket.socket, text: bytearray, cluster: Cluster) -> None:
    came = line.recv(65536)
    if not came:
        raise ConnectionResetError
    *whole, text[:] = (text + came).split(b"\n")
    for order in whole:
        cluster.record, cluster.renewed = json.loads(order)["record"], 0.0


def converse(line: socket.socket, cluster: Cluster, wrapper: int) -> None:
    """Until the line breaks (OSError) or the wrapper has gone."""
    told, due, text = None, 0.0, bytearray()
    while os.getppid() == wrapper:
        report = cluster.look()
        if gist(report) != told or time.monotonic() >= due:
            line.sendall(json.dumps({"at": time.time(), **report}).encode() + b"\n")
            told, due = gist(report), time.monotonic() + REPORT_SECONDS - LOOK_SECONDS
        if cluster.rest(line):
            take_orders(line, text, cluster)


def look_for_ever(cluster: Cluster, path: str, wrapper: int) -> int:
    """Ray's C++ part writes its troubles to descriptor 2 at every look: those are said in the report, so only
    Python's own words (a traceback of ours) reach the journal."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while os.getppid() == wrapper:
        time.sleep(1.0)
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(CALL_SECONDS)
            try:
                line.connect(path)
                converse(line, cluster, wrapper)
            except OSError:
                cluster.record = {}  # strixd is not there: nobody vouches for what we would renew
    return 0
