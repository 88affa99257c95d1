"""What one value must look like: functions from a value to the words of a complaint, or "" when it will do.

They narrow the types of the schema. What depends on a second key is a rule (rules.py).
"""

from __future__ import annotations

import ipaddress
import re

from strixd.decode import Check, quoted

MIB = 1 << 20
_UNITS = {"MiB": MIB, "GiB": MIB << 10, "TiB": MIB << 20}
_SIZE = re.compile("([1-9][0-9]{0,5})(MiB|GiB|TiB)")
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_DOTTED_QUAD = re.compile(r"[0-9]+(?:\.[0-9]+){3}")
_MAC = re.compile("[0-9A-Fa-f]{2}(?:([:-])[0-9A-Fa-f]{2})(?:\\1[0-9A-Fa-f]{2}){4}")
_LONGEST_INTERFACE = 15  # IFNAMSIZ is 16 with the final NUL
_LONGEST_HOST_NAME = 64  # HOST_NAME_MAX
_KERNEL_KEY = re.compile("[A-Za-z0-9_.-]+")
_IMAGE_PART = "[a-z0-9]+(?:(?:[.]|__?|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_IMAGE_PART}(?:/{_IMAGE_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)

# Kernel parameters and vLLM flags that follow from another key, and variables that belong elsewhere. Writing one
# twice would leave it to chance which counts.
_KERNEL_OWNED = {
    "iommu": "kernel.iommu",
    "amd_iommu": "kernel.iommu",
    "ttm.pages_limit": "kernel.gtt",
    "amdgpu.gttsize": "kernel.gttsize",
    "pcie_aspm": "kernel.pcie-aspm",
}
_VLLM_OWNED = {
    "--host": "model.listen",
    "--port": "model.port",
    "--tensor-parallel-size": "model.tensor-parallel",
    "-tp": "model.tensor-parallel",
    "--enforce-eager": "model.eager",
    "--no-enforce-eager": "model.eager",
    "--model": "strixd-cli serve MODEL",
    "--served-model-name": "strixd-cli serve MODEL",
    "--api-key": "the file /etc/strixd/api.key",
    "--distributed-executor-backend": "strixd",
}
_VARIABLES_OWNED = {
    "HF_HOME": "belongs to model.folder",
    "HF_TOKEN": 'is a secret: give it to "strixd-cli token set"',
    "HUGGING_FACE_HUB_TOKEN": 'is a secret: give it to "strixd-cli token set"',
    "RAY_AUTH_TOKEN": "is a secret: it is the file /etc/strixd/cluster.key",
    "VLLM_API_KEY": "is a secret: it is the file /etc/strixd/api.key",
    "VLLM_HOST_IP": "differs from node to node: strixd sets it",
    "GLOO_SOCKET_IFNAME": "differs from node to node: strixd sets it",
    "NCCL_SOCKET_IFNAME": "differs from node to node: strixd sets it",
}


def between(least: int, most: int) -> Check:
    """Whole numbers of a range, both ends included."""

    def check(value: int) -> str:
        return "" if least <= value <= most else f"must be between {least} and {most}"

    return check


def shaped(pattern: str, words: str) -> Check:
    """Texts that match a pattern as a whole."""
    whole = re.compile(pattern)

    def check(value: str) -> str:
        return "" if whole.fullmatch(value) else f"{quoted(value)} {words}"

    return check


def size(value: str) -> str:
    if _SIZE.fullmatch(value):
        return ""
    return f'{quoted(value)} is not a size: a whole number and MiB, GiB or TiB, such as "124GiB"'


def size_in_bytes(value: str) -> int:
    """ "124GiB" → 133143986176; `value` has passed size()."""
    match = _SIZE.fullmatch(value)
    if match is None:
        raise ValueError(size(value))
    return int(match[1]) * _UNITS[match[2]]


def host_name(value: str) -> str:
    if len(value) > _LONGEST_HOST_NAME:
        return f"{quoted(value)} is longer than the {_LONGEST_HOST_NAME} characters of a host name"
    if _DOTTED_QUAD.fullmatch(value):
        return f"{quoted(value)} is an address, not a host name"
    if not _HOST_NAME.fullmatch(value):
        return f'{quoted(value)} is not a host name: letters, digits and "-", in parts divided by "."'
    return ""


def interface(value: str) -> str:
    if len(value.encode()) > _LONGEST_INTERFACE:
        return f"{quoted(value)} is longer than the {_LONGEST_INTERFACE} characters of an interface name"
    if not value or value in (".", "..") or not value.isprintable() or set(value) & set(" /:%"):
        return f"{quoted(value)} is not an interface name"
    return "lo is this host only, and no way to another node" if value == "lo" else ""


def mac(value: str) -> str:
    if not _MAC.fullmatch(value):
        return f"{quoted(value)} is not a MAC address such as b4:96:91:00:00:01"
    plain = plain_mac(value)
    if int(plain[:2], 16) & 1 or plain == "00:00:00:00:00:00":
        return f"{quoted(value)} is not the MAC address of one card"
    return ""


def plain_mac(value: str) -> str:
    """B4-96-91-00-00-01 → b4:96:91:00:00:01"""
    return value.lower().replace("-", ":")


def node_address(value: str) -> str:
    """An IPv4 address with prefix that a host may have."""
    if ":" in value:
        return f"{quoted(value)} is not IPv4; the fabric has no IPv6 here"
    address, slash, prefix = value.partition("/")
    try:
        ip = ipaddress.IPv4Address(address)
    except ValueError as error:
        return f"{quoted(value)} is not an IPv4 address such as 192.168.100.1/30: {error}"
    if not slash:
        return f"{quoted(value)} has no prefix; write {address}/30 or whatever the network has"
    if not re.fullmatch("[0-9]{1,2}", prefix) or not 8 <= int(prefix) <= 31:
        return f"the prefix of {quoted(value)} must be a number between 8 and 31"
    return _host_part(ip, ipaddress.IPv4Network(f"{address}/{prefix}", strict=False))


def _host_part(ip: ipaddress.IPv4Address, network: ipaddress.IPv4Network) -> str:
    if ip.is_loopback or ip.is_multicast or ip.is_reserved or ip.is_unspecified:
        return f"{ip} is not an address that a network card can have"
    if network.prefixlen == 31:  # two hosts and nothing else (RFC 3021)
        return ""
    if ip == network.network_address:
        return f"{ip} is the network address of {network}, not a host's"
    return f"{ip} is the broadcast address of {network}, not a host's" if ip == network.broadcast_address else ""


def ip_address(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return f"{quoted(value)} is not an IP address; this host alone is 127.0.0.1"
    return "" if "%" not in value else f"{quoted(value)}: an address with a zone cannot be used"


def socket_address(value: str) -> str:
    """IP:PORT, [IPv6]:PORT, or nothing."""
    if not value:
        return ""
    host, _, port = value.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    bracketed = bare != host
    if not re.fullmatch("[0-9]{1,5}", port) or ip_address(bare) or bracketed != (":" in bare):
        return f'{quoted(value)} is not IP:PORT such as "127.0.0.1:9101"'
    words = between(1, 65535)(int(port))
    return f"the port of {quoted(value)} {words}" if words else ""


def image_reference(value: str) -> str:
    if "://" in value:
        return f"{quoted(value)} is not an image reference: leave out {quoted(value.split('://')[0] + '://')}"
    if _IMAGE.fullmatch(value):
        return ""
    return f"{quoted(value)} is not an image reference such as docker.io/kyuz0/vllm-therock-gfx1151:latest"


def absolute_path(value: str) -> str:
    """Paths also become SOURCE:TARGET pairs and words of unit files."""
    parts = value.split("/")[1:]
    if not value.startswith("/") or {".", ".."} & set(parts) or not any(parts):
        return f'{quoted(value)} is not an absolute path (from "/", without "..")'
    if " " in value or ":" in value or not value.isprintable():
        return f"the path {quoted(value)} has a space, a colon or a control character"
    return ""


def plain_text(value: str) -> str:
    return "" if value.isprintable() else f"{quoted(value)} has a line end or another control character"


def kernel_argument(value: str) -> str:
    key, _, setting = value.partition("=")
    if any(letter.isspace() for letter in value):
        return f"{quoted(value)} has a space, which cannot be written safely"
    if not _KERNEL_KEY.fullmatch(key) or '"' in setting or not value.isprintable() or key == "--":
        return f'{quoted(value)} is not "key" or "key=value"'
    owner = _KERNEL_OWNED.get(key.replace("-", "_"), "")  # the kernel takes both for the same
    if key == "pci" and any(part.startswith("realloc") for part in setting.split(",")):
        owner = "kernel.pci-realloc"
    return f"{quoted(value)} belongs to {owner}" if owner else ""


def vllm_argument(value: str) -> str:
    """Also for the arguments that are given with the order to serve."""
    if not value or not value.isprintable():
        return f"{quoted(value)} is empty or has a line end or another control character"
    flag = value.partition("=")[0].replace("_", "-")
    owner = _VLLM_OWNED.get(flag, "")
    return f"{quoted(flag)} belongs to {owner}" if owner else ""


def variable(name: str) -> str:
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return f"{quoted(name)} is not the name of an environment variable"
    owner = _VARIABLES_OWNED.get(name, "")
    return f"{name} {owner}" if owner else ""
