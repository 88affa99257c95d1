"""The lab as a whole: one at a time on a machine, swept clean before it starts and when it ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import IO

from tests.lab import clean, modelenv, network, registry, state
from tests.lab.cache import say
from tests.lab.disk import make_disk
from tests.lab.host import Host
from tests.lab.layout import LOCK
from tests.lab.roots import host_root
from tests.lab.state import State

NAMES = ("halo1", "halo2")
MODELS = "var/lib/strixd/models"
FATAL = (signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP: unwinds everything, pytest included, as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.status = 128 + number


class LabBusy(Exception):
    """Another lab is running on this machine, and it is not a leftover."""


class Lab:
    """Networks, registry, hosts. `running_lab()` makes one and takes it away; `kept_lab()` finds the one of `up`."""

    def __init__(self, written: State) -> None:
        self._written(written)

    def host(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    def boot_all(self) -> None:
        """Power on together, since two boots side by side take little longer than one."""
        for host in self.hosts:
            host.start()
        for host in self.hosts:
            host.wait_booted()

    def new_hosts(self, names: tuple[str, ...] = NAMES, *, disk: str = "", spare: bool = False) -> tuple[Host, ...]:
        """Hosts with empty disks, booted; those of before are thrown away. `disk`: how large a disk of its own each
        has ("2G"), for what fills it; else all of them live on the machine's. `spare`: a second cable joins them."""
        self.remove_hosts()
        self._save(names, spare=spare)
        for host in self.hosts:
            self._give_disk(host, disk)
        self.boot_all()
        return self.hosts

    def wipe(self, host: Host) -> None:
        """A new disk in place of a host's own, and its power off; the others do not notice more than that."""
        clean.remove_host(host.seat)
        self._give_disk(host)

    def remove_hosts(self) -> None:
        for host in self.hosts:
            clean.remove_host(host.seat)
        self._save(())

    def _give_disk(self, host: Host, size: str = "") -> None:
        make_disk(host.seat, host_root(), self.state.binds, size=size)
        shutil.copytree(modelenv.tiny_model(), host.seat.root / MODELS / "tiny")

    def _save(self, names: tuple[str, ...], *, spare: bool = False) -> None:
        self._written(replace(self.state, names=names, spare=spare))
        state.save(self.state)

    def _written(self, written: State) -> None:
        self.state = written
        self.hosts = tuple(Host(seat, written.seats) for seat in written.seats)


@contextmanager
def running_lab() -> Iterator[Lab]:
    """A lab without hosts yet. However this ends, SIGTERM and Ctrl-C included, nothing of it stays."""
    with _lock(), orderly_end():
        sweep_leftovers()
        try:
            yield _set_up(kept=False)
        finally:
            _deaf()
            clean.sweep()


def start_kept_lab(names: tuple[str, ...]) -> Lab:
    """A lab with hosts that goes on when this process ends, until `down`."""
    with _lock(), orderly_end():
        sweep_leftovers()
        try:
            lab = _set_up(kept=True)
            lab.new_hosts(names)
        except BaseException:
            _deaf()
            clean.sweep()
            raise
        return lab


def kept_lab() -> Lab:
    """The lab that runs now, whoever started it."""
    return Lab(state.load())


def sweep_leftovers() -> None:
    """Clear what a killed run left; refuse if it is a lab that somebody keeps."""
    try:
        found = state.load()
    except LookupError:
        found = None
    if found is not None and found.kept and any(Host(seat, found.seats).is_up() for seat in found.seats):
        raise LabBusy(f"a lab is kept running by {found.owner}; `python -m tests.lab down` ends it")
    clean.sweep()


def _set_up(*, kept: bool) -> Lab:
    host_root(), modelenv.tiny_model()  # the long builds first, before anything exists that could be left behind
    storage = registry.storage()
    binds = (f"{modelenv.model_environment()}:{modelenv.VENV}",)
    written = State((), binds, kept, state.me())
    state.save(written)
    network.lay_networks()
    registry.start(storage)
    return Lab(written)


@contextmanager
def _lock() -> Iterator[None]:
    """Only one lab at a time: wait for the other's end, as long as STRIXD_LAB_WAIT says (seconds), then refuse."""
    with LOCK.open("a+") as file:
        _take(file, float(os.environ.get("STRIXD_LAB_WAIT", "900")))
        file.truncate(0)
        file.write(state.me())
        file.flush()
        yield


def _take(file: IO[str], patience: float) -> None:
    until, told = time.monotonic() + patience, False
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = Path(file.name).read_text()
            if time.monotonic() > until:
                raise LabBusy(f"a lab is being run by {owner}") from None
            if not told:
                say(f"waiting for the lab of {owner}")
            told = True
            time.sleep(1)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack."""

    def unwind(number: int, _frame: FrameType | None) -> None:
        raise Ended(number)

    before = {number: signal.signal(number, unwind) for number in FATAL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _deaf() -> None:
    """A second Ctrl-C must not interrupt the cleaning; the programs that it runs inherit this."""
    for number in (signal.SIGINT, *FATAL):
        signal.signal(number, signal.SIG_IGN)
