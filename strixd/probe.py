"""The probe: the command of the Ray container. It starts Ray, and tells strixd who is in the cluster.

    python3 probe.py --socket PATH -- ray start --head --labels=strixd-node=NAME … --block

It runs with the image's Python and the image's own Ray, so this file stands alone (Python 3.10 or newer). Two
processes: the wrapper (PID 1: starts the command, reaps, forwards signals, ends with the command's status) never
loads Ray; the look (`--look`) is Ray's client, and may crash or hang without taking the model down. Once a second it
tries to reach strixd's socket; connected, it sends a report at once when one differs and at least every 10 s, and
keeps the record that strixd hands to it in Ray's key-value store for as long as strixd is there.

Report, one JSON object a line: at, session (the cluster's), own_session (this raylet's), version (Ray's), error, and
members: name, address, alive, gpus, record, age (seconds since the record was last seen to be renewed).
Order, one JSON object a line: {"record": {"key": "text", …}}.
Exit status: the command's own (128+N when signal N ended it); 64: RAY_AUTH_MODE=token and this image's Ray knows no
tokens; 127: the command cannot be started.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import mmap
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

UNSAFE = 64
LOOK_SECONDS = 2.0
REPORT_SECONDS = 10.0
RENEW_SECONDS = 5.0
CALL_SECONDS = 2.0
STOP_SECONDS = 5.0  # a `ray start` that waits for its head does not hear SIGTERM
LINE_BYTES = 1 << 20
NAMESPACE = b"strixd"
LABEL = "strixd-node"


def say(text: str) -> None:
    sys.stderr.write(f"strixd-probe: {text}\n")


# The command, and what it says about this node


def option(command: list[str], name: str, default: str = "") -> str:
    """The value of --NAME=VALUE or --NAME VALUE."""
    for at, word in enumerate(command):
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
        if word == f"--{name}" and at + 1 < len(command):
            return command[at + 1]
    return default


def head_address(command: list[str]) -> str:
    own = f"{option(command, 'node-ip-address', '127.0.0.1')}:{option(command, 'port', '6379')}"
    return option(command, "address", own)


def node_name(command: list[str]) -> str:
    labels = dict(label.partition("=")[::2] for label in option(command, "labels").split(","))
    return labels.get(LABEL, "")


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
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            known = text.find(b"RAY_AUTH_TOKEN_PATH") >= 0
    except (OSError, ValueError) as error:  # ValueError: an empty file
        return f"cannot read {library}: {error}"
    return "" if known else f"the Ray of this image ({library.parent}) knows no token authentication"


# The wrapper


def spawn(command: list[str], environment: dict[str, str]) -> int:
    return os.posix_spawnp(command[0], command, environment, setsigmask=())


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def reap(pid: int) -> tuple[set[int], int | None]:
    """Everybody who has died, orphans of both containers too, and the exit status of `pid` if it has."""
    dead: set[int] = set()
    status = None
    while True:
        try:
            gone, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return dead, status
        if gone == 0:
            return dead, status
        dead.add(gone)
        if gone == pid:
            ended = os.waitstatus_to_exitcode(code)
            status = ended if ended >= 0 else 128 - ended


def supervise(command: list[str], look: list[str], *, stop_seconds: float = STOP_SECONDS) -> int:
    """Runs the command to its end. Signals are taken by waiting for them, so nothing here runs in a handler."""
    wanted = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    main = spawn(command, dict(os.environ))
    looker, deadline = 0, float("inf")
    while True:
        if not looker:
            looker = spawn(look, {**os.environ, "RAY_gcs_rpc_server_connect_timeout_s": "1"})
        came = signal.sigtimedwait(wanted, 1.0)
        if came and came.si_signo != signal.SIGCHLD:
            send(main, came.si_signo)
            deadline = min(deadline, time.monotonic() + stop_seconds)
        if time.monotonic() > deadline:
            send(main, signal.SIGKILL)
        dead, status = reap(main)
        if status is not None:
            send(looker, signal.SIGKILL)
            return status
        looker = 0 if looker in dead else looker


def wrap(arguments: argparse.Namespace) -> int:
    refusal = token_refusal() if os.environ.get("RAY_AUTH_MODE") == "token" else ""
    if refusal:
        say(f"Cannot start Ray with the cluster key: {refusal}")
        return UNSAFE
    session_link(arguments.command).unlink(missing_ok=True)  # an older container's session is not ours
    look = [sys.executable, __file__, "--look", "--socket", arguments.socket, "--", *arguments.command]
    try:
        return supervise(arguments.command, look)
    except FileNotFoundError as error:
        say(f"Cannot start {arguments.command[0]}: {error.strerror}")
        return 127


# The look: Ray


class Cluster:
    """What one look at Ray brings. The client is made anew after every error; none of its calls waits for long."""

    def __init__(self, command: list[str]) -> None:
        self.address = head_address(command)
        self.link = session_link(command)
        self.name = node_name(command)
        self.record: dict[str, str] = {}
        self.client: Any = None
        self.session = ""
        self.renewed = 0.0
        self.seen: dict[str, tuple[object, float]] = {}

    def look(self) -> dict[str, Any]:
        import ray
        from ray.exceptions import RayError

        report: dict[str, Any] = {"session": "", "members": [], "error": "", "version": ray.__version__}
        try:
            members = self.members()
            report.update(session=self.session, members=members)
        except (RayError, OSError) as error:
            self.client = None
            report["error"] = self.words(error)
        return {**report, "own_session": self.own_session()}

    def members(self) -> list[dict[str, Any]]:
        if self.client is None:
            self.connect()
        self.publish()
        nodes = self.client.get_all_node_info(timeout=CALL_SECONDS).values()
        return self.with_records(current([member(node) for node in nodes]))

    def connect(self) -> None:
        """The plain connection first: Ray's own attempt would take seconds to say that nobody listens."""
        from ray._raylet import InnerGcsClient

        host, _, port = self.address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), CALL_SECONDS).close()
        client = InnerGcsClient.standalone(self.address, None, int(CALL_SECONDS * 1000))
        self.session = (client.internal_kv_get(b"session_name", b"session", CALL_SECONDS) or b"").decode()
        self.client, self.renewed = client, 0.0

    def publish(self) -> None:
        if self.record and self.name and time.monotonic() - self.renewed >= RENEW_SECONDS:
            text = json.dumps({**self.record, "at": time.time()}).encode()
            self.client.internal_kv_put(self.name.encode(), text, True, NAMESPACE, CALL_SECONDS)
            self.renewed = time.monotonic()

    def with_records(self, members: list[dict[str, Any]]) -> list[dict[str, Any]]:
        names = sorted({m["name"].encode() for m in members if m["name"]})
        found = self.client.internal_kv_multi_get(names, NAMESPACE, CALL_SECONDS) if names else {}
        for one in members:
            record = json.loads(found.get(one["name"].encode(), b"{}"))
            one["age"] = self.age(one["name"], record.pop("at", None))
            one["record"] = record
        return members

    def age(self, name: str, stamp: object) -> float:
        """By our own clock, since the clocks of two nodes need not agree."""
        if name not in self.seen or self.seen[name][0] != stamp:
            self.seen[name] = (stamp, time.monotonic())
        return round(time.monotonic() - self.seen[name][1], 1)

    def own_session(self) -> str:
        try:
            return self.link.readlink().name
        except OSError:
            return ""

    def words(self, error: Exception) -> str:
        """Without numbers that differ from look to look."""
        if type(error).__name__ == "AuthenticationError":
            return f"the head at {self.address} has another cluster key"
        state = "does not answer" if self.own_session() else "is not there yet"
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition("\n")[0]
        return f"the head at {self.address} {state}: {reason}"


def member(node: Any) -> dict[str, Any]:
    """`state` is 0 for ALIVE in Ray's protocol."""
    return {
        "name": node.labels.get(LABEL, ""),
        "address": node.node_manager_address,
        "alive": node.state == 0,
        "gpus": int(node.resources_total.get("GPU", 0)),
        "since": node.start_time_ms,
    }


def current(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All that are alive (for 15 s that can be a killed one and its successor), and of the others the newest of a
    name that no living one has: Ray lists every dead node for ever."""
    living = [m for m in members if m["alive"]]
    names = {(m["name"], m["address"]) for m in living}
    newest = {(m["name"], m["address"]): m for m in sorted(members, key=lambda m: int(m["since"]))}
    shown = living + [m for key, m in newest.items() if key not in names]
    shown.sort(key=lambda m: (str(m["name"]), str(m["address"]), int(m["since"])))
    return [{key: value for key, value in m.items() if key != "since"} for m in shown]


# The look: strixd


def gist(report: dict[str, Any]) -> dict[str, Any]:
    """The report without what changes by itself."""
    return {**report, "members": [{**m, "age": m["age"] > 3 * RENEW_SECONDS} for m in report["members"]]}


def orders(line: socket.socket, text: bytearray, cluster: Cluster) -> None:
    """Takes what strixd has sent. ConnectionError: it has gone, or talks nonsense."""
    came = line.recv(65536)
    text += came
    if not came or len(text) > LINE_BYTES:
        raise ConnectionResetError
    while b"\n" in text:
        one, _, rest = bytes(text).partition(b"\n")
        text[:] = rest
        try:
            record = json.loads(one)["record"]
            cluster.record = {str(key): str(value) for key, value in record.items()}
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ConnectionAbortedError from error
        cluster.renewed = 0.0


def converse(line: socket.socket, cluster: Cluster) -> None:
    """Until the line breaks (OSError) or the wrapper has gone."""
    parent, told, text = os.getppid(), None, bytearray()
    due = time.monotonic()
    while os.getppid() == parent:
        report = cluster.look()
        now = time.monotonic()
        if gist(report) != told or now >= due:
            line.sendall(json.dumps({"at": time.time(), **report}).encode() + b"\n")
            told, due = gist(report), now + REPORT_SECONDS - LOOK_SECONDS
        if select.select([line], [], [], LOOK_SECONDS)[0]:
            orders(line, text, cluster)


def look_for_ever(arguments: argparse.Namespace) -> int:
    """Ray's C++ part writes its troubles to descriptor 2 at every look: those are said in the report, so only
    Python's own words (a traceback of ours) reach the journal."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    with Path(os.devnull).open("w") as null:
        os.dup2(null.fileno(), 2)
    parent, cluster = os.getppid(), Cluster(arguments.command)
    while os.getppid() == parent:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(CALL_SECONDS)
            try:
                line.connect(arguments.socket)
                converse(line, cluster)
            except OSError:
                cluster.record = {}  # strixd is not there: nobody vouches for what we would renew
        time.sleep(1.0)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="probe.py", description="Start Ray, and tell strixd who is in the cluster.")
    parser.add_argument("--socket", required=True, help="strixd's socket for the probe")
    parser.add_argument("--look", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="+", help="ray start …, after --")
    arguments = parser.parse_args()
    return look_for_ever(arguments) if arguments.look else wrap(arguments)


if __name__ == "__main__":
    sys.exit(main())
