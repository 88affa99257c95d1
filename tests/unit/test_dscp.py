"""The DSCP of rdma_cm's connections: what is asked for and seen, what must be done then, and the files of configfs."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from strixd.errors import Rejected, StrixdError, Unavailable
from strixd.fabric import Fabric
from strixd.host import rdma_cm
from strixd.host.rdma_cm import ConfigfsRdmaCm
from strixd.ladder import Wanted
from strixd.ports import RdmaCm, RdmaPort
from strixd.resources.dscp import Dscp, Keep, Kept, Mark, Observed
from strixd.resources.fabric import Desired
from strixd.sim import World, simulated_host
from tests.laid_tree import lay

PORT = RdmaPort("irdma0", 1, "RoCE")
OTHER = RdmaPort("irdma1", 1, "RoCE")
OURS = Kept("irdma0", 1, 104, 0, 0)
LATER = Kept("irdma0", 1, 104, 184, 0)  # after 184 of ours


@pytest.mark.parametrize(
    ("dscp", "seen", "steps"),
    [
        (0, Observed(), ()),
        (26, Observed(PORT, tos=0), (Keep(OURS), Mark("irdma0", 1, 104, 0))),
        (26, Observed(PORT, tos=104), ()),  # somebody else's, and right
        (26, Observed(PORT, tos=104, kept=OURS), ()),
        (26, Observed(PORT, tos=0, kept=OURS), (Mark("irdma0", 1, 104, 0),)),  # the device has gone and come
        (26, Observed(PORT, tos=8, kept=OURS), (Keep(Kept("irdma0", 1, 104, 8, 8), OURS), Mark("irdma0", 1, 104, 8))),
        (
            46,
            Observed(PORT, tos=104, kept=OURS),
            (Keep(Kept("irdma0", 1, 184, 104, 0), OURS), Mark("irdma0", 1, 184, 104)),
        ),
        (26, Observed(OTHER, tos=0, kept=OURS), (Keep(Kept("irdma1", 1, 104, 0, 0), OURS), Mark("irdma1", 1, 104, 0))),
        (26, Observed(None, "no RDMA device is bound to eth1"), ()),
        (0, Observed(PORT, tos=104, kept=OURS), (Mark("irdma0", 1, 0, 104), Keep(None, OURS))),
        (26, Observed(PORT, tos=184, kept=LATER), (Mark("irdma0", 1, 104, 184),)),  # strixd was killed before
        (0, Observed(PORT, tos=184, kept=LATER), (Mark("irdma0", 1, 0, 184), Keep(None, LATER))),
        (0, Observed(PORT, tos=0, kept=OURS), (Keep(None, OURS),)),
        (0, Observed(PORT, tos=8, kept=OURS), (Keep(None, OURS),)),  # another one's wish by now
        (0, Observed(None, "the port that had one is not there", kept=OURS), ()),
    ],
)
def test_what_is_asked_for_and_seen_says_what_to_do(dscp: int, seen: Observed, steps: tuple[object, ...]) -> None:
    plan = Dscp().plan(Desired(Fabric(driver="ice"), (), Wanted(dscp=dscp)), seen)
    assert (plan.steps, plan.condition) == (steps, "ok")
    assert plan.facts
    for step in plan.steps:
        back = step.undo()
        assert back
        assert back.undo() == step


def test_the_steps_say_what_was_and_what_comes() -> None:
    mark = Mark("irdma0", 1, 104, 0)
    assert str(mark) == "have rdma_cm connect over irdma0 port 1 with DSCP 26 (TOS 104) instead of DSCP 0 (TOS 0)"
    assert str(Keep(OURS)) == "remember that rdma_cm had DSCP 0 (TOS 0) on irdma0 port 1"
    assert str(Keep(None, OURS)) == "forget which TOS rdma_cm had before"
    assert set(asdict(OURS)) == {"device", "number", "tos", "found", "before"}, (
        "a record of an earlier strixd must be readable"
    )


TREE = "rdma_cm/"
FILES = "ports/1/default_roce_mode: RoCE v2\nports/1/default_roce_tos: 0"


def filled(folder: Path) -> None:
    """As the kernel makes a folder of configfs; it knows one device."""
    if folder.name != "irdma0":
        raise FileNotFoundError(2, "No such device")
    lay(folder, FILES)


def on_files(root: Path) -> RdmaCm:
    lay(root, TREE)
    return ConfigfsRdmaCm(root, filled, shutil.rmtree)


def simulated(root: Path) -> RdmaCm:
    return simulated_host(World()).rdma_cm


Make = Callable[[Path], RdmaCm]
both = pytest.mark.parametrize("make", [on_files, simulated])


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


@both
def test_what_was_set_is_read_and_0_is_as_if_nobody_had_asked(make: Make, tmp_path: Path) -> None:
    async def scene() -> None:
        port = make(tmp_path)
        for tos in (0, 104, 184, 0, 255):
            await port.set_tos("irdma0", 1, tos)
            assert await port.tos("irdma0", 1) == tos

    play(scene())


@both
def test_of_a_device_that_is_not_there_nothing_is_set(make: Make, tmp_path: Path) -> None:
    async def scene() -> None:
        port = make(tmp_path)
        assert await port.tos("irdma9", 1) == 0
        with pytest.raises(Rejected, match="Cannot set the TOS of irdma9 port 1: No such device"):
            await port.set_tos("irdma9", 1, 104)

    play(scene())


def test_the_folder_is_made_for_a_value_and_goes_with_it(tmp_path: Path) -> None:
    async def scene() -> None:
        port, folder = on_files(tmp_path), tmp_path / "rdma_cm/irdma0"
        assert await port.tos("irdma0", 1) == 0
        assert not folder.exists(), "reading changes nothing"
        await port.set_tos("irdma0", 1, 104)
        assert (folder / "ports/1/default_roce_tos").read_text().strip() == "104"
        await port.set_tos("irdma0", 1, 0)
        assert not folder.exists(), "it would keep the module from being unloaded"

    play(scene())


@pytest.mark.parametrize(
    ("root", "words", "hint"),
    [
        (Path("/proc"), "the kernel module rdma_cm is not loaded", "modprobe rdma_cm"),
        (Path("/nowhere"), "configfs is not mounted at /nowhere", "systemctl start sys-kernel-config.mount"),
    ],
)
def test_what_is_missing_is_told_apart_with_the_next_command(root: Path, words: str, hint: str) -> None:
    async def scene() -> None:
        port = ConfigfsRdmaCm(root)
        for call in (port.tos("irdma0", 1), port.set_tos("irdma0", 1, 104)):
            with pytest.raises(Unavailable, match=words) as told:
                await call
            assert hint in told.value.hint

    play(scene())


@pytest.mark.parametrize("text", ["", "many"])
def test_a_file_that_says_nothing_is_unknown_and_not_0(text: str, tmp_path: Path) -> None:
    async def scene() -> None:
        port = on_files(tmp_path)
        lay(tmp_path, f"rdma_cm/irdma0/ports/1/default_roce_tos: {text}")
        with pytest.raises(Rejected, match="Cannot read the TOS of irdma0 port 1"):
            await port.tos("irdma0", 1)

    play(scene())


def test_a_kernel_that_does_not_answer_is_waited_for_within_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rdma_cm, "ANSWER", 0.05)
    held = asyncio.Event()

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        lay(tmp_path, TREE)
        port = ConfigfsRdmaCm(tmp_path, lambda _: asyncio.run_coroutine_threadsafe(_until(held), loop).result())
        for _ in range(2):
            with pytest.raises(StrixdError, match="rdma_cm does not answer"):
                await port.set_tos("irdma0", 1, 104)
        held.set()

    play(scene())


async def _until(event: asyncio.Event) -> None:
    await event.wait()
