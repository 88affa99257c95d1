"""The simulation's own parts: its time, its gate, and faults by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strixd.api.listen import bind
from strixd.errors import Rejected, Unavailable
from strixd.sim import World, clock, faults, simulated_host
from strixd.sim.clock import Clock
from strixd.sim.gate import Killed
from strixd.sim.world import FABRIC, VLLM


def test_virtual_time_passes_at_once_and_timeouts_fire_in_it() -> None:
    async def main() -> float:
        begun = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time() - begun

    assert clock.run(main()) == pytest.approx(3600)


def test_a_factor_makes_the_world_faster_than_the_loop() -> None:
    async def main() -> float:
        time = Clock(factor=10)
        begun = time.now()
        await asyncio.sleep(6)
        await time.sleep(60)
        return time.now() - begun

    assert clock.run(main()) == pytest.approx(120)


def test_what_goes_wrong_in_a_timer_is_raised() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(1, lambda: 1 // 0)
        await asyncio.sleep(2)

    with pytest.raises(ZeroDivisionError):
        clock.run(main())


def test_a_call_fails_once_and_at_its_turn() -> None:
    async def main() -> None:
        world = World()
        host = simulated_host(world)
        world.fail("files.write", Rejected("no"), at=2)
        await host.files.write("/a", "1")
        with pytest.raises(Rejected, match="no"):
            await host.files.write("/b", "2")
        await host.files.write("/c", "3")
        assert sorted(world.disk.files) == ["/a", "/c"]

    clock.run(main())


def test_a_call_may_fail_after_it_had_its_effect() -> None:
    async def main() -> None:
        world = World()
        world.fail("write", Unavailable("too late"), when="after")
        with pytest.raises(Unavailable):
            await simulated_host(world).files.write("/a", "1")
        assert world.disk.files == {"/a": "1"}

    clock.run(main())


def test_a_killed_process_calls_nobody_any_more_and_the_next_one_does() -> None:
    async def main() -> None:
        world = World()
        host = simulated_host(world)
        world.kill_at(1)
        for _ in range(2):
            with pytest.raises(Killed):
                await host.files.write("/a", "1")
        assert world.disk.files == {}
        await simulated_host(world).files.write("/a", "1")
        assert world.disk.files == {"/a": "1"}

    clock.run(main())


def test_every_word_can_be_said_and_an_unknown_one_brings_the_list() -> None:
    async def main() -> None:
        world = World()
        for word in faults.WORDS:
            assert faults.inject(world, f" {word} ") == "ok\n"
        told = faults.inject(world, "kill everything")
        assert told.startswith("unknown: kill everything\n")
        assert all(word in told for word in faults.WORDS)
        assert not world.network.nics[FABRIC].link.carrier or faults.inject(world, "cable out")

    clock.run(main())


def test_faults_come_by_a_socket_that_only_its_owner_may_use(tmp_path: Path) -> None:
    async def main() -> None:
        world, path = World(), tmp_path / "socket.faults"
        async with faults.listening(world, bind(str(path))):
            assert path.stat().st_mode & 0o777 == 0o600
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(b"cable out\nhelp\n")
            writer.write_eof()
            said = (await reader.read()).decode()
            writer.close()
        assert said.startswith("ok\n")
        assert VLLM not in world.systemd.records
        assert not world.network.nics[FABRIC].link.carrier
        assert not path.exists()

    clock.run(main())
