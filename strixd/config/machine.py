"""What one value about a machine and its installation must look like; as checks.py, for `[install]` and two keys of a
node. They end up in kickstarts and shell scripts, so none may hold a quote or a line end.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct

from strixd.decode import quoted

_SSH_KIND = r"ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-(?:ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com"
_SSH_KEY = re.compile(rf"({_SSH_KIND}) ([A-Za-z0-9+/]{{16,}}={{0,2}})(?: [^\"\\\x00-\x1f\x7f]+)?")
_ZONE = re.compile("[A-Z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9][A-Za-z0-9_+-]*){0,2}")
_LONGEST_ZONE = 64
_REPOSITORY = re.compile(r"(?:https?|ftp)://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9._~%$+,=:@/-]*)?")
_SERIAL = re.compile("[A-Za-z0-9][A-Za-z0-9 ._/+:#-]{0,62}[A-Za-z0-9]|[A-Za-z0-9]")
_NO_SERIALS = {
    "default string",
    "to be filled by o.e.m.",
    "system serial number",
    "not specified",
    "none",
    "unknown",
    "0",
}
_DISK = re.compile("[a-z]+-[A-Za-z0-9][A-Za-z0-9._:+=@-]{2,200}")  # ata-, nvme-, scsi-, wwn-, virtio-…
_PARTITION = re.compile("-part[0-9]+$")


def ssh_key(value: str) -> str:
    """A line of an authorized_keys file without options. A private key is not quoted in the complaint."""
    if "PRIVATE KEY" in value:
        return "this is a private key, which belongs nowhere but at home; the line of the .pub file beside it is meant"
    match = _SSH_KEY.fullmatch(value)
    if match is None or not _is_key(match[1], match[2]):
        return f'{quoted(value)} is not a public SSH key such as "ssh-ed25519 AAAA… me@laptop"'
    return ""


def _is_key(kind: str, text: str) -> bool:
    """The bytes begin with the length and the name of their kind (RFC 4253, 6.6)."""
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    begin = struct.pack(">I", len(kind)) + kind.encode()
    return raw.startswith(begin) and len(raw) > len(begin)


def time_zone(value: str) -> str:
    if len(value) <= _LONGEST_ZONE and _ZONE.fullmatch(value):
        return ""
    return f'{quoted(value)} is not a time zone such as "Europe/Berlin" (timedatectl list-timezones)'


def repository(value: str) -> str:
    """A folder of packages with its repodata, or nothing. It stands in files that everybody may read."""
    if not value:
        return ""
    if "@" in value.partition("://")[2].partition("/")[0]:
        return "a name and password in an address would stand in files that everybody can read"
    if _REPOSITORY.fullmatch(value):
        return ""
    return f"{quoted(value)} is not the address of a repository such as https://mirror.example/fedora/os/"


def serial(value: str) -> str:
    if value.strip().casefold() in _NO_SERIALS:
        return f"{quoted(value)} is what the firmware says of a machine that was given no serial number; use mac"
    if _SERIAL.fullmatch(value):
        return ""
    return f"{quoted(value)} is not a serial number (cat /sys/class/dmi/id/product_serial)"


def disk(value: str) -> str:
    """A name in /dev/disk/by-id, which no other disk can come to have."""
    if value.startswith("/"):
        return f"{quoted(value)}: only the name below /dev/disk/by-id is wanted (ls /dev/disk/by-id)"
    if _PARTITION.search(value):
        return f"{quoted(value)} is a partition; a whole disk is wanted"
    if _DISK.fullmatch(value):
        return ""
    return f'{quoted(value)} is not a name in /dev/disk/by-id such as "nvme-WD_BLACK_SN850X_4TB_24123A800001"'
