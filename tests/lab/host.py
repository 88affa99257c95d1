"""One lab host, as a test sees it: power, commands, files, its journal and its end of the cable."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab import network, pidfile
from tests.lab.disk import put
from tests.lab.layout import PROJECT, SPARE_NETNS, Seat, cgroup
from tests.lab.shell import Result, attempt

Entry = dict[str, str]
REBOOT = ("start", "--no-block", "--job-mode=replace-irreversibly", "reboot.target")
PATIENCE = 60.0  # seconds for a boot; other work on the machine's two cores stretches it
NAMESPACES = ("-m", "-u", "-i", "-n", "-p", "-C")
ENVIRONMENT = (
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
    "HOME=/root",
    "LANG=C.UTF-8",
    "TERM=dumb",
    "container=systemd-nspawn",
)


def _decoded(entry: dict[str, Any]) -> Entry:
    """journalctl gives a field that is not text as a list of bytes, and one that occurs twice as a list of both."""
    return {name: _text(value).rstrip("\n") for name, value in entry.items()}


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, int) for part in value):
        return bytes(value).decode(errors="replace")
    return "\n".join(map(_text, value)) if isinstance(value, list) else str(value or "")


class NotUp(Exception):
    """The host is not running, or did not come up in time."""


def wait_for(what: str, question: Callable[[], bool], timeout: float = 30, pause: float = 0.05) -> None:
    """Ask until the answer is yes; TimeoutError names what was waited for."""
    until = time.monotonic() + timeout
    while not question():
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(pause)


class Host:
    """A handle, not a thing: two handles of one name are the same host."""

    def __init__(self, seat: Seat, all_seats: tuple[Seat, ...]) -> None:
        self.seat = seat
        self._all = all_seats

    @property
    def name(self) -> str:
        return self.seat.name

    def __repr__(self) -> str:
        return f"Host({self.name})"

    # Power

    def start(self) -> None:
        """Power on, without waiting."""
        if self._keeper_alive():
            return
        group = cgroup("keepers")
        group.mkdir(parents=True, exist_ok=True)
        # The shell joins the cgroup before anything else exists: from then on `clean` can find it.
        keeper = 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"'
        command = ["sh", "-c", keeper, "keeper", str(group), sys.executable, "-m", "tests.lab.keeper", self.name]
        with (self.seat.folder / "console.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        pidfile.write(self.seat.folder / "keeper.pid", process.pid)

    def boot(self) -> None:
        """Power on, and wait until systemd says that it is done."""
        self.start()
        self.wait_booted()

    def wait_booted(self, timeout: float = PATIENCE) -> None:
        try:
            wait_for(f"{self.name} is up", self._settled, timeout)
        except TimeoutError as late:
            raise NotUp(f"{late}; its console says:\n{self.console()[-2000:]}") from None

    def off(self) -> None:
        """An orderly power-off."""
        if nspawn := self._nspawn():
            os.kill(nspawn, signal.SIGTERM)
        self._wait_off()

    def kill(self) -> None:
        """Power loss: PID 1 and all else are gone at once, the disk stays as it is."""
        if leader := self._leader():
            os.kill(leader, signal.SIGKILL)  # reaches a frozen host too
        self._wait_off()

    def reboot(self) -> None:
        """A reboot from inside, as systemctl itself orders it without logind, which does not outlive the system bus;
        returns when the host is up again."""
        before = self._leader()
        self.attempt("systemctl", *REBOOT, timeout=10)
        wait_for(f"{self.name} boots again", lambda: self._leader() not in (None, before), PATIENCE)
        self.wait_booted()

    def freeze(self) -> None:
        """A hung host: its kernel still answers, nothing in it runs."""
        self._freezer("1")

    def thaw(self) -> None:
        self._freezer("0")

    def is_up(self) -> bool:
        return self._leader() is not None

    def boot_id(self) -> str:
        return self.run("cat", "/proc/sys/kernel/random/boot_id").stdout.strip()

    # Commands

    def command(self, *argv: str) -> list[str]:
        """The machine's command line for running argv in the host, with a clean environment."""
        leader = self._leader()
        if leader is None:
            raise NotUp(f"{self.name} is not running")
        return ["nsenter", "-t", str(leader), *NAMESPACES, "--", "env", "-i", *ENVIRONMENT, *argv]

    def attempt(self, *argv: str, timeout: float = 60, stdin: str | None = None) -> Result:
        return attempt(self.command(*argv), timeout=timeout, stdin=stdin)

    def run(self, *argv: str, timeout: float = 60, stdin: str | None = None) -> Result:
        return self.attempt(*argv, timeout=timeout, stdin=stdin).check()

    def sh(self, script: str, *, timeout: float = 60) -> str:
        """Run a bash script in the host, and give what it printed."""
        return self.run("bash", "-euo", "pipefail", "-c", script, timeout=timeout).stdout

    def stream(self, *argv: str) -> subprocess.Popen[str]:
        """Start a command in the host; its output can be read line by line while it runs."""
        return subprocess.Popen(
            self.command(*argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, bufsize=1, process_group=0,
        )  # fmt: skip

    # Files

    def path(self, inside: str) -> Path:
        """Where the machine sees the host's file: through its PID 1 while it runs, else on its disk."""
        leader = self._leader()
        root = self.seat.root if leader is None else Path(f"/proc/{leader}/root")
        return root / inside.lstrip("/")

    def read(self, inside: str) -> str:
        return self.path(inside).read_text()

    def write(self, inside: str, text: str, mode: int = 0o644) -> None:
        put(self.path(inside), text, mode)

    # Journal and cable

    def journal(self, since: float = 0.0) -> list[Entry]:
        """Every entry after `since` (seconds of the epoch), of all boots, whether the host runs or not."""
        if self.is_up():
            self.attempt("journalctl", "--sync", timeout=5)
        return self.journal_from_outside(since)

    def journal_from_outside(self, since: float = 0.0) -> list[Entry]:
        """The same without a command in the host. One that runs there when the host goes down is killed together with
        its nsenter, and what nobody reaps keeps the host from going."""
        where = f"--directory={self.seat.root / 'var/log/journal'}"
        read = ["journalctl", where, "-o", "json", "--all", "--no-pager", "--quiet", f"--since=@{int(since)}"]
        entries = [_decoded(json.loads(line)) for line in attempt(read, timeout=120).stdout.splitlines()]
        return [entry for entry in entries if int(entry["__REALTIME_TIMESTAMP"]) >= since * 1e6]

    def console(self) -> str:
        return (self.seat.folder / "console.log").read_text(errors="replace")

    def pull_cable(self) -> None:
        network.pull(self.seat, self._all)

    def push_cable(self) -> None:
        network.push(self.seat, self._all)

    def pull_spare(self) -> None:
        network.pull(self.seat, self._all, SPARE_NETNS)

    def push_spare(self) -> None:
        network.push(self.seat, self._all, SPARE_NETNS)

    # What lies beneath

    def _settled(self) -> bool:
        if not self._keeper_alive():
            raise NotUp(f"{self.name} ended while booting; its console says:\n{self.console()[-2000:]}")
        if not self.is_up():
            return False
        try:
            return self.attempt("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")
        except NotUp:
            return False

    def _freezer(self, value: str) -> None:
        file = self.seat.cgroup / "cgroup.freeze"
        if file.exists():
            file.write_text(value)

    def _wait_off(self) -> None:
        wait_for(f"{self.name} is off", lambda: not self._keeper_alive(), PATIENCE)

    def _nspawn(self) -> int | None:
        return pidfile.living(self.seat.folder / "nspawn.pid")

    def _keeper_alive(self) -> bool:
        return pidfile.living(self.seat.folder / "keeper.pid") is not None

    def _leader(self) -> int | None:
        """The host's PID 1, as the machine numbers it: the first child of systemd-nspawn."""
        try:
            children = Path(f"/proc/{self._nspawn()}/task/{self._nspawn()}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None
