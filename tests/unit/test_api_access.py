"""Who may ask what, by the credentials that the kernel notes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from pathlib import Path

import pytest
from api_lab import Lab, run

from strixd import errors
from strixd.api import wire
from strixd.api.access import Access, Need, Peer

GROUPS = {"strixd": 4001, "strixd-observe": 4002}


@pytest.mark.parametrize(
    ("peer", "may"),
    [
        (Peer(0, frozenset({0})), {"open", "look", "change"}),
        (Peer(1000, frozenset({1000, 4001})), {"open", "look", "change"}),
        (Peer(1000, frozenset({1000, 4002})), {"open", "look"}),
        (Peer(1000, frozenset({1000})), {"open"}),
    ],
)
def test_the_rule(peer: Peer, may: set[str]) -> None:
    access = Access(frozenset({0}), GROUPS.get)
    needs: tuple[Need, ...] = ("open", "look", "change")
    for need in needs:
        with contextlib.nullcontext() if need in may else pytest.raises(errors.NotPermitted):
            access.check(peer, "Stop", need)


def test_a_refusal_says_which_group_and_how() -> None:
    access = Access(frozenset({0}), GROUPS.get)
    with pytest.raises(errors.NotPermitted) as caught:
        access.check(Peer(1000, frozenset()), "Stop", "change")
    assert str(caught.value) == (
        "Cannot call Stop: it takes root or membership in the group strixd, and uid 1000 has neither"
    )
    assert caught.value.hint == "sudo usermod --append --groups strixd USER, then log in again"


def test_a_group_that_does_not_exist_gives_nobody_anything() -> None:
    with pytest.raises(errors.NotPermitted):
        Access(frozenset({0}), lambda _: None).check(Peer(1000, frozenset({1000})), "Status", "look")


def _ask_as(path: Path, uid: int, groups: list[int], methods: tuple[str, ...]) -> list[str]:
    """Another user's view, from a child that is that user."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.setgroups(groups)
        os.setgid(uid)
        os.setuid(uid)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            for method in methods:
                client.sendall(wire.encode({"method": method}))
                reply = json.loads(client.recv(1 << 20)[:-1])
                os.write(writing, (reply.get("error", "ok") + "\n").encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read().split()
    os.waitpid(pid, 0)
    return said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([], ["ok", "io.strixd.NotPermitted", "io.strixd.NotPermitted"]),
        ([4002], ["ok", "ok", "io.strixd.NotPermitted"]),
        ([5000, 4001], ["ok", "ok", "ok"]),
        ([*range(10_000, 10_300), 4001], ["ok", "ok", "ok"]),  # more than getsockopt of Python's asks for
    ],
)
def test_the_kernel_says_who_asks(tmp_path: Path, groups: list[int], said: list[str]) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    methods = ("org.varlink.service.GetInfo", "io.strixd.Status", "io.strixd.Stop")

    async def scenario(lab: Lab) -> None:
        assert await asyncio.to_thread(_ask_as, lab.path, 61234, groups, methods) == said

    run(tmp_path, scenario, access=Access(frozenset({0}), GROUPS.get))
