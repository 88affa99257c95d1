"""Readiness, status and watchdog for systemd. The only file that knows sdnotify.

Only its socket is used: its own `notify` drops a whole datagram, READY=1 included, over one character outside latin-1,
says nothing about errors, and can block the loop.
"""

from __future__ import annotations

import logging
import os
import socket
import time

from sdnotify import SystemdNotifier

log = logging.getLogger(__name__)

LONGEST = 1000
"""Bytes of a status text; systemd drops datagrams above 4096 (NOTIFY_BUFFER_MAX)."""


class Notify:
    """Says how the daemon is; nothing happens when nobody asked (no NOTIFY_SOCKET)."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = SystemdNotifier().socket
        self.patience = float(os.environ.get("WATCHDOG_USEC", "inf")) / 1e6
        """Seconds within which the watchdog wants to be fed (sd_watchdog_enabled(3)); infinite without one."""

    def ready(self) -> None:
        """Up, or done with a reload."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`."""
        line = " ".join(text.split()).encode(errors="replace")[:LONGEST].decode(errors="ignore")
        self._send(f"STATUS={line}")

    def watchdog(self) -> None:
        """Still alive. To be said by the end of a pass or step, never by a timer of its own."""
        self._send("WATCHDOG=1")

    def reloading(self) -> None:
        """The file is read again; `ready` ends it. The time is CLOCK_MONOTONIC in µs (sd_notify(3))."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def _send(self, text: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.send(text.encode(), socket.MSG_DONTWAIT)
        except OSError as error:
            log.warning("Cannot tell systemd %s: %s", text.partition("\n")[0], error.strerror or error)
