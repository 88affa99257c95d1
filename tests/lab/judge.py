"""Reads a host's journal after a test and says what in it nobody expected.

An error line, a Python traceback, a dumped core or a failed unit fails a test, whatever the test itself looked at.
What a test provokes on purpose it announces with `expect()`; what the lab's surroundings cause is in NOISE.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tests.lab.host import Entry, Host

ERROR = 3
UNIT_FAILED = "d9b373ed55a64feb8242e02dbe79a49c"  # systemd's message id for "Failed with result ..."
TRACEBACK = "Traceback (most recent call last)"
CORE = re.compile(r"dumped core|core-dump|code=dumped")
# What Ray and vLLM print is theirs: podman gives everything on standard error the priority of an error.
WORKLOADS = re.compile(r"^(strixd-(ray|vllm)\b.*\.service|libpod-.*\.scope)$")
NOISE = (
    r"NetworkManager: .*audit: failed to open auditd socket",  # the machine's kernel has no audit in a namespace
)

GOING_DOWN = (
    r"strixd-(ray|vllm)\.service",  # a workload that is killed, or loses its peer, is a failed unit
    r"(conmon|podman|systemd-coredump).*",
)


class Judge:
    """Judges what happened on hosts since it was made."""

    def __init__(self, hosts: Iterable[Host], since: float) -> None:
        self._hosts = tuple(hosts)
        self._since = since
        self._expected = [re.compile(pattern) for pattern in NOISE]

    def expect(self, *patterns: str) -> None:
        """Allow lines that match: a line is judged as `IDENTIFIER: MESSAGE`."""
        self._expected += [re.compile(pattern, re.S) for pattern in patterns]

    def complaints(self) -> list[str]:
        return [f"{host.name}: {words}" for host in self._hosts for words in self._about(host)]

    def _about(self, host: Host) -> Iterator[str]:
        for entry in host.journal(self._since):
            line = f"{entry.get('SYSLOG_IDENTIFIER', '?')}: {entry.get('MESSAGE', '')}"
            why = _fault(entry)
            if why and not any(pattern.search(line) for pattern in self._expected):
                yield f"{why}: {line[:600]}"


def _fault(entry: Entry) -> str:
    message = entry.get("MESSAGE", "")
    if entry.get("MESSAGE_ID") == UNIT_FAILED:
        return "failed unit"
    if CORE.search(message):
        return "core dump"
    if _is_workload(entry):
        return ""
    if TRACEBACK in message:
        return "traceback"
    return "error line" if int(entry.get("PRIORITY", "6")) <= ERROR else ""


def _is_workload(entry: Entry) -> bool:
    return bool(entry.get("CONTAINER_NAME")) or bool(WORKLOADS.match(entry.get("_SYSTEMD_UNIT", "")))
