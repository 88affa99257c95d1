"""Disk, memory limit, clocks, and what may send the host to sleep."""

from __future__ import annotations

from strixd.doctor.checks.daemon import resource
from strixd.doctor.facts import Clocks, Rooms, Sleeping
from strixd.doctor.finding import Check, Judged
from strixd.resources.effect import GIB, size

LEAST, LITTLE = 1 * GIB, 10 * GIB
APART, FAR = 2.0, 60.0
"""Seconds between two clocks that make logs hard to read, and that make certificates and tokens fail."""
_MASK = "systemctl mask sleep.target suspend.target hibernate.target hybrid-sleep.target suspend-then-hibernate.target"
_TIME = "timedatectl; chronyc sources; systemctl enable --now chronyd (here and there)"
_AWAKE = ("ignore", "lock", "")


def disk(rooms: Rooms) -> Judged:
    folder, least = min(rooms.free.items(), key=lambda each: each[1])
    alike = {free: [path for path, each in rooms.free.items() if each == free] for free in rooms.free.values()}
    read = "; ".join(f"{size(free)} free at {', '.join(paths)}" for free, paths in alike.items())
    if least >= LITTLE:
        return Judged("ok", read)
    mend = f"make room on the file system of {folder}: df -h; podman system df; du -sh {folder}/*"
    return Judged("fault" if least < LEAST else "warning", read, mend)


def clock(clocks: Clocks) -> Judged:
    known = {name: off for name, off in clocks.off.items() if off is not None}
    read = "; ".join(f"{name} is {off:+.1f} s ahead of this host" for name, off in known.items())
    worst = max(map(abs, known.values()), default=0.0)
    if worst > APART:
        return Judged("fault" if worst > FAR else "warning", read, _TIME)
    if silent := [name for name, off in clocks.off.items() if off is None]:
        return Judged("unknown", f"{', '.join(silent)} does not tell its time (ICMP timestamp)", "date, here and there")
    return Judged("ok", read)


def time_server(synchronized: bool) -> Judged:
    if synchronized:
        return Judged("ok", "systemd says that this host's clock is set by one")
    return Judged("warning", "no time server sets this host's clock", _TIME)


def sleep(sleeping: Sleeping) -> Judged:
    """A host without desktop that is told to do nothing when idle sleeps only when somebody asks for it."""
    if not sleeping.open:
        return Judged("ok", "systemd's sleep targets are masked")
    if sleeping.idle not in _AWAKE:
        return Judged("fault", f"logind: IdleAction={sleeping.idle}, and sleep is not masked", _MASK)
    if sleeping.has_lid and sleeping.lid not in _AWAKE:
        return Judged("warning", f"logind: HandleLidSwitch={sleeping.lid}, and this host has a lid", _MASK)
    if sleeping.desktop:
        return Judged(
            "warning", f"it starts with a desktop, which may suspend it; open: {', '.join(sleeping.open)}", _MASK
        )
    return Judged("ok", "nothing sends it to sleep by itself: no desktop, logind does nothing when idle")


CHECKS = (
    Check(
        "disk", "host", disk, f"{size(LITTLE)} free", "images and weights are fetched, and a full disk stops services"
    ),
    Check(
        "memory",
        "host",
        resource("memory"),
        "a memory limit for the model, in force",
        "without it a model may take the host's last memory, and sshd dies",
    ),
    Check(
        "time-server",
        "host",
        time_server,
        "a clock that is set by a time server",
        "clocks that nobody sets drift apart",
        doubt="ok",
    ),
    Check(
        "clock",
        "host",
        clock,
        "clocks that agree",
        "logs of two nodes cannot be compared, certificates and tokens fail",
        doubt="ok",
    ),
    Check("sleep", "sleep", sleep, "a host that stays awake", "one that sleeps takes the model of all nodes with it"),
)
