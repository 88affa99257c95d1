"""What the collectives of the ranks (RCCL, which reads NCCL's variables, and Gloo) are told of the link. Pure.

Every variable is set or unset for certain, in the container's first words: the image may set it, or its login shell.
Ranks inherit it from `ray start` of their own node. vLLM would copy all of the head's to them (0.32, seen), interface
names and GID index included; the names in a file of its configuration folder are left out (vllm/ray/ray_env.py).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from strixd.ladder import OFF, ROCE_V2, Name, Rung
from strixd.ports.hardware import Card

HCA, INDEX, CLASS = "NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_IB_TC"
SOCKET, GLOO, HOST = "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "VLLM_HOST_IP"
LINK = (SOCKET, GLOO, OFF, HCA, INDEX, CLASS)
OWN = (*LINK, HOST)
"""Different from node to node, or agreed upon by strixd."""
CONFIG = "VLLM_CONFIG_ROOT"


def told(rung: Rung, dscp: int) -> dict[str, str]:
    """NCCL takes names of devices as beginnings unless "=" stands before them; the traffic class has the DSCP in its
    upper six bits. "0" says that RDMA is on, since the image may say "1"."""
    sockets = {SOCKET: f"={rung.interface}", GLOO: rung.interface}
    if rung.port is None:
        return {**sockets, OFF: "1"}
    index = {} if rung.gid is None else {INDEX: str(rung.gid)}
    return marked({**sockets, OFF: "0", HCA: f"={rung.port.device}:{rung.port.number}", **index}, dscp)


def marked(environment: Mapping[str, str], dscp: int) -> dict[str, str]:
    """The same with this DSCP, which a person may change while the rest stays."""
    rest = {key: value for key, value in environment.items() if key != CLASS}
    return {**rest, CLASS: str(dscp << 2)} if dscp and name(rest) == "rdma" else rest


def name(environment: Mapping[str, str]) -> Name | None:
    """The rung that they stand for; None when they say nothing of it (no container yet, or an earlier strixd's)."""
    return None if OFF not in environment else "rdma" if environment[OFF] == "0" else "tcp"


def words(environment: Mapping[str, str], card: Card | None) -> str:
    """The rung in force as people read it: "RDMA (RoCE v2, irdma0 port 1, GID 3)"; "" when unknown."""
    rung = name(environment)
    if rung == "rdma":
        device, _, number = environment.get(HCA, "=unknown:").removeprefix("=").partition(":")
        index = environment.get(INDEX)
        return f"RDMA ({_protocol(card, device, index)}{device} port {number}{f', GID {index}' if index else ''})"
    if rung == "tcp":
        interface = environment.get(SOCKET, "").removeprefix("=")  # at their start; TCP follows the address
        return str(Rung("tcp", card.interface, speed=card.speed) if card else Rung("tcp", interface))
    return ""


def _protocol(card: Card | None, device: str, index: str | None) -> str:
    """An index is only ever given for RoCE v2."""
    if index:
        return f"{ROCE_V2}, "
    transports = {port.transport for port in card.ports if port.device == device} if card else set()
    return "InfiniBand, " if transports == {"InfiniBand"} else ""


def first_words(environment: Mapping[str, str]) -> str:
    """Shell text that makes certain what is set and what is not."""
    lines = (f"export {key}={shlex.quote(environment[key])}" if key in environment else f"unset {key}" for key in OWN)
    return "".join(f"{line}; " for line in lines)


def keep_own() -> str:
    """Shell text that has vLLM leave these to each node."""
    names = shlex.quote(json.dumps(sorted(OWN)))
    return f'mkdir -p "${CONFIG}"; printf %s {names} >"${CONFIG}/ray_non_carry_over_env_vars.json"; '


def contradictions(person: Mapping[str, str], derived: Mapping[str, str]) -> tuple[str, ...]:
    """Where [image] environment says otherwise than strixd would."""
    others = {key: value for key, value in sorted(person.items()) if key in LINK and value != derived.get(key, "")}
    return tuple(
        f"[image] environment says {key}={value}, and counts; strixd would {_would(key, derived)}"
        for key, value in others.items()
    )


def _would(key: str, derived: Mapping[str, str]) -> str:
    return f"say {derived[key]}" if key in derived else "leave it unset"
