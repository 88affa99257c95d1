"""Ranges of TCP ports in the rich rules of firewalld. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from strixd.ports import Policy

_PORTS = re.compile(r'port="(\d+)(?:-(\d+))?"')


def sparing(policy: Policy, ports: tuple[int, ...]) -> Policy:
    """The same without these ports: nobody who comes in by them may be shut out."""
    return replace(policy, rules=tuple(sorted(each for rule in policy.rules for each in _sparing(rule, ports))))


def _sparing(rule: str, ports: tuple[int, ...]) -> Iterator[str]:
    found = _PORTS.search(rule)
    if found is None:
        yield rule
        return
    first, last = int(found[1]), int(found[2] or found[1])
    for part in without(range(first, last + 1), ports):
        yield f'{rule[: found.start()]}port="{spelled(part)}"{rule[found.end() :]}'


def without(ports: range, holes: tuple[int, ...]) -> list[range]:
    inside = sorted({port for port in holes if port in ports})
    starts, stops = [ports.start, *(port + 1 for port in inside)], [*inside, ports.stop]
    return [range(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]


def spelled(ports: range) -> str:
    return str(ports[0]) if len(ports) == 1 else f"{ports[0]}-{ports[-1]}"
