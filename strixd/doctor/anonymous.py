"""What tells which host this is: addresses, names, serial numbers. Each becomes a placeholder, equal ones the same.

It comes after the redaction of secrets (strixd/evidence/redact.py), as another step of the same. Too much is replaced
rather than too little: a version of four numbers looks like an address.
"""

from __future__ import annotations

import ipaddress
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from strixd.evidence.redact import MASK, Redaction

SHORTEST: Final = 3
"""Characters of a name that is replaced wherever it stands; "pc" would be found in every word."""
_HARDWARE = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5,19}(?![0-9A-Fa-f])")
"""MAC addresses, and the 20 bytes of InfiniBand's."""
_IN_NAME = re.compile(r"(?<=\benx)[0-9a-f]{12}\b")
"""systemd names some interfaces by their MAC (systemd.net-naming-scheme(7))."""
_IPV4 = re.compile(r"(?<!\d)(?<!\d\.)\d{1,3}(?:\.\d{1,3}){3}(?!\d)")
_IPV6 = re.compile(r"(?<!\w)(?<!::)(?:[0-9A-Fa-f]{0,4}:){2,8}(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4})(?!\w)")
"""What is none (a time of day, a name of C++) is told apart by Python's own reading of it."""
_GUID = re.compile(
    r"(?<![\w:])[0-9A-Fa-f]{4}(?::[0-9A-Fa-f]{4}){3}(?![\w:])|\b0x[0-9A-Fa-f]{16}\b|\beui\.[0-9A-Fa-f]{16,32}\b"
)
"""Of RDMA devices (made from the MAC) and of disks."""
_UUID = re.compile(
    r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![0-9A-Fa-f])"
    r"|(?<![0-9A-Za-z])[0-9a-f]{32}(?![0-9A-Za-z])"
)
"""Disks, profiles, boots, and the machine id; not digests of images, which are longer."""
_SERIAL = re.compile(r"(?i)(serial(?: ?(?:number|no\.?))?\W{1,3})(?!console|port|8250|driver|\[masked)([\w./-]{4,})")


class Anonymous(Redaction):
    """`names`: kind of thing ("host", "serial") → what it is called here, looked for literally in any case. Several
    threads may use it."""

    def __init__(self, secrets: Iterable[str], names: Mapping[str, Iterable[str]]) -> None:
        super().__init__(secrets)
        self._lock = threading.Lock()
        self._given: dict[tuple[str, str], str] = {}
        self._kinds = {name.lower(): kind for kind, some in names.items() for name in some if len(name) >= SHORTEST}
        longest_first = sorted(self._kinds, key=len, reverse=True)
        self._names = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)", re.I)

    def text(self, line: str) -> str:
        line = super().text(line)
        line = self._names.sub(self._named, line)
        line = _HARDWARE.sub(lambda found: self._called("mac", _bare(found.group())), line)
        line = _IN_NAME.sub(lambda found: self._called("mac", found.group()), line)
        line = _IPV6.sub(self._address, line)
        line = _GUID.sub(self._of("guid"), line)
        line = _IPV4.sub(self._address, line)
        line = _UUID.sub(self._of("id"), line)
        return _SERIAL.sub(rf"\1{MASK}", line)

    def count(self) -> Mapping[str, int]:
        """How many different things of each kind have been replaced so far."""
        with self._lock:
            kinds = [kind for kind, _ in self._given]
        return {kind: kinds.count(kind) for kind in sorted(set(kinds))}

    def _named(self, found: re.Match[str]) -> str:
        name = found.group().lower()
        return self._called(self._kinds[name], name)

    def _of(self, kind: str) -> Callable[[re.Match[str]], str]:
        return lambda found: self._called(kind, found.group().lower())

    def _called(self, kind: str, what: str) -> str:
        """The placeholder. Numbers count from 1 for each kind, in the order in which things are met."""
        with self._lock:
            known = sum(each == kind for each, _ in self._given)
            return self._given.setdefault((kind, what), f"<{kind}-{known + 1}>")

    def _address(self, found: re.Match[str]) -> str:
        """An IPv4 address within an IPv6 one (a GID of RoCE) counts as the IPv4 one. This host's own (loopback) and
        masks stay. A colon behind it is punctuation."""
        text = found.group()
        core = text if text.endswith("::") else text.rstrip(":")
        try:
            address = ipaddress.ip_address(core)
        except ValueError:
            return text
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        if address.is_unspecified or address.is_loopback or str(address).startswith("255."):
            return text
        return self._called("ip", str(address)) + text[len(core) :]


def _bare(mac: str) -> str:
    return mac.lower().replace(":", "").replace("-", "")
