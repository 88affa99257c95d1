"""The probe: the command of the Ray container. It starts Ray, and tells strixd who is in the cluster.

    python3 probe.py --socket PATH -- ray start --head --labels=strixd-node=NAME … --block

It runs with the image's Python and the image's own Ray, so this file stands alone (Python 3.10 or newer). Two
processes: the wrapper (PID 1) never loads Ray; it waits until the head of a worker listens, starts the command,
reaps and forwards signals. The look (`--look`) is Ray's client, and may crash or hang without taking the model down.
Once a second it tries to reach strixd's socket; connected, it sends a report at once when one differs and at least
every 10 s, and keeps strixd's record of this node in Ray's key-value store for as long as strixd is there.

Report, a JSON object a line: at, session (the cluster's), own_session (this raylet's), version (Ray's), error, members
(name, address, alive, gpus, record, age: seconds since the record was last seen to be renewed).
Order, a JSON object a line: {"record": {"key": "text", …}}.
Exit status: 64: RAY_AUTH_MODE=token and this image's Ray knows no tokens; 127: the command cannot be started; 128+N:
signal N was sent to the wrapper, or ended the command; otherwise the command's own.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

LOOK_SECONDS = 2.0
REPORT_SECONDS = 10.0
RENEW_SECONDS = 5.0
CALL_SECONDS = 2.0
STOP_SECONDS = 5.0  # a `ray start` that waits for its head does not hear SIGTERM
NAMESPACE = b"strixd"
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
LABEL = "strixd-node"
QUICK = {**os.environ, "RAY_gcs_rpc_server_connect_timeout_s": "1"}


def option(command: list[str], name: str, default: str = "") -> str:
    return next((word.partition("=")[2] for word in command if word.startswith(f"--{name}=")), default)


def session_link(command: list[str]) -> Path:
    """Ray points this link at its session's folder as soon as it has joined one."""
    return Path(option(command, "temp-dir", "/tmp/ray")) / "session_latest"


def token_refusal() -> str:
    """Why this image's Ray cannot keep the cluster key, "" when it can. Looked for in the library that would ask
    for the key: importing it takes half a second, searching it 10 ms."""
    spec = importlib.util.find_spec("ray")
    if spec is None or not spec.submodule_search_locations:
        return f"{sys.executable} has no Ray"
    library = Path(spec.submodule_search_locations[0]) / "_raylet.so"
    try:
        known = b"RAY_AUTH_TOKEN_PATH" in library.read_bytes()
    except OSError as error:
        return f"cannot read {library}: {error}"
    return "" if known else f"the Ray of this image ({library.parent}) knows no token authentication"


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number) if pid else None


def reap() -> dict[int, int]:
    """Everybody who has died, orphans of both containers too, with their exit statuses."""
    dead = {}
    with contextlib.suppress(ChildProcessError):
        while (came := os.waitpid(-1, os.WNOHANG))[0]:
            status = os.waitstatus_to_exitcode(came[1])
            dead[came[0]] = status if status >= 0 else 128 - status
    return dead


def knock(address: str, seconds: float) -> None:
    """OSError unless somebody listens there."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), seconds).close()


def may_start(command: list[str]) -> bool:
    """A `ray start` whose head is not there hears no SIGTERM, fills the journal, gives up after 14 minutes and is late
    to see the head come: waiting is done here."""
    if "--head" in command or not option(command, "address"):
        return True
    with contextlib.suppress(OSError):
        knock(option(command, "address"), 1.0)
        return True
    return False


def supervise(command: list[str], look: list[str], *, stop_seconds: float = STOP_SECONDS) -> int:
    """Runs the command to its end. Signals are taken by waiting for them, so nothing here runs in a handler."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    main, looker, stopped, deadline = 0, 0, 0, float("inf")
    try:
        while True:
            looker = looker or os.posix_spawnp(look[0], look, QUICK, setsigmask=())
            if not main and may_start(command):
                main = os.posix_spawnp(command[0], command, os.environ, setsigmask=())
            came = signal.sigtimedwait(SIGNALS, 1.0)
            if came and came.si_signo != signal.SIGCHLD:
                stopped, deadline = came.si_signo, min(deadline, time.monotonic() + stop_seconds)
                send(main, stopped)
            if time.monotonic() > deadline:
                send(main, signal.SIGKILL)
            dead = reap()
            looker = 0 if looker in dead else looker
            if main in dead or (stopped and not main):
                return 128 + stopped if stopped else dead[main]
    finally:
        send(looker, signal.SIGKILL)


def wrap(arguments: argparse.Namespace) -> int:
    refusal = token_refusal() if os.environ.get("RAY_AUTH_MODE") == "token" else ""
    if refusal:
        sys.stderr.write(f"strixd-probe: Cannot start Ray with the cluster key: {refusal}\n")
        return 64
    session_link(arguments.command).unlink(missing_ok=True)  # an older container's session is not ours
    look = [sys.executable, __file__, f"--look={os.getpid()}", "--socket", arguments.socket, "--", *arguments.command]
    try:
        return supervise(arguments.command, look)
    except FileNotFoundError as error:
        sys.stderr.write(f"strixd-probe: Cannot start {arguments.command[0]}: {error.strerror}\n")
        return 127


class Cluster:
    """What one look at Ray brings. The client is made anew after every error; none of its calls waits for long."""

    def __init__(self, command: list[str]) -> None:
        self.address = option(command, "address", f"{option(command, 'node-ip-address')}:{option(command, 'port')}")
        self.link = session_link(command)
        self.name = dict(word.partition("=")[::2] for word in option(command, "labels").split(",")).get(LABEL, "")
        self.record: dict[str, str] = {}
        self.client: Any = None
        self.session = ""
        self.renewed = 0.0
        self.seen: dict[str, tuple[object, float]] = {}

    def look(self) -> dict[str, Any]:
        import ray
        from ray.exceptions import RayError

        members, trouble, before = [], "", self.client
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

    def publish(self) -> None:
        if self.record and self.name and time.monotonic() - self.renewed >= RENEW_SECONDS:
            text = json.dumps({**self.record, "at": time.time()}).encode()
            self.client.internal_kv_put(self.name.encode(), text, True, NAMESPACE, CALL_SECONDS)
            self.renewed = time.monotonic()

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


def refused(error: Exception) -> bool:
    """By name: a Ray older than 2.52 has no such class."""
    return type(error).__name__ == "AuthenticationError"


def read_record(text: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):  # whoever has the key can write there
        return dict(json.loads(text).items()) if text.startswith(b"{") else {}
    return {}


def member(node: Any) -> dict[str, Any]:
    """`state` is 0 for ALIVE in Ray's protocol."""
    return {
        "name": node.labels.get(LABEL, ""),
        "address": node.node_manager_address,
        "alive": node.state == 0,
        "gpus": int(node.resources_total.get("GPU", 0)),
    }


def current(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All that are alive (for 15 s that can be a killed one and its successor), and one dead of a name that no living
    one has: Ray lists every dead node for ever."""
    living = [m for m in members if m["alive"]]
    names = {m["name"] for m in living}
    dead = {m["name"]: m for m in members if m["name"] not in names}
    return sorted([*living, *dead.values()], key=lambda m: (str(m["name"]), str(m["address"])))


def gist(report: dict[str, Any]) -> dict[str, Any]:
    """The report without what changes by itself."""
    return {**report, "members": [{**m, "age": m["age"] > 3 * RENEW_SECONDS} for m in report["members"]]}


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
        if select.select([line], [], [], LOOK_SECONDS)[0]:
            take_orders(line, text, cluster)


def look_for_ever(arguments: argparse.Namespace) -> int:
    """Ray's C++ part writes its troubles to descriptor 2 at every look: those are said in the report, so only
    Python's own words (a traceback of ours) reach the journal."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    cluster = Cluster(arguments.command)
    while os.getppid() == arguments.look:
        time.sleep(1.0)
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(CALL_SECONDS)
            try:
                line.connect(arguments.socket)
                converse(line, cluster, arguments.look)
            except OSError:
                cluster.record = {}  # strixd is not there: nobody vouches for what we would renew
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="probe.py", description="Start Ray, and tell strixd who is in the cluster.")
    parser.add_argument("--socket", required=True, help="strixd's socket")
    parser.add_argument("--look", type=int, help=argparse.SUPPRESS)  # the wrapper's process id
    parser.add_argument("command", nargs="+", help="ray start …, after --")
    arguments = parser.parse_args()
    return look_for_ever(arguments) if arguments.look else wrap(arguments)


if __name__ == "__main__":
    sys.exit(main())
