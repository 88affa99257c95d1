"""The clock of the host is set, forwards or back: nothing loops, and nothing waits for the time to come round again."""

from __future__ import annotations

import pytest

from strixd.engine import fights, supervise
from strixd.engine.hold import LONGEST, hold
from strixd.engine.supervise import Attempt, Keep
from strixd.errors import Rejected
from strixd.ports import Crossing, Link
from strixd.resources import mtu
from strixd.sim.clock import Clock
from strixd.sim.world import FABRIC
from tests.sim.node import Node, virtual, world
from tests.sim.test_changes import settled
from tests.sim.test_reboot import cmdline, living, rebooted

HOUR = 3600.0


def setting(clock: Clock, seconds: float) -> None:
    clock._epoch += seconds


def test_a_failure_of_the_mtu_seen_before_the_time_of_the_order_is_kept() -> None:
    asked = mtu.Asked(9000, (mtu.Peer("halo2", "192.168.100.2"),), after=5 * HOUR)
    link = Link(FABRIC, "50:7c:6f:00:00:01", "ice", True, 9000)
    failed = mtu.Seen(None, "boot-1", (Crossing("192.168.100.2", "failed", 4 * HOUR, "there", ""),))
    (keep,) = mtu.judge(asked, link, failed).steps
    assert isinstance(keep, mtu.Remember)
    again = mtu.judge(asked, link, mtu.Seen(keep.record, "boot-1"))
    assert (again.size, again.steps) == (1500, ())


@virtual
async def test_a_reboot_before_the_time_of_the_order_counts() -> None:
    node = living(world())
    await node.start()
    assert node.engine
    await node.engine.apply("uid 0: apply")
    setting(node.world.clock, -HOUR)
    for times in (1, 2):
        await node.until(lambda _, times=times: node.world.reboots_asked == times, seconds=30)  # type: ignore[misc]
        await rebooted(node, obeyed=False)
    await node.until(lambda status: cmdline(status).condition == "stuck", seconds=30)
    await node.kill()


@pytest.mark.parametrize("jump", [-10 * HOUR, -HOUR, HOUR])
def test_what_was_at_a_time_to_come_does_not_count(jump: float) -> None:
    now = 100 * HOUR + jump
    assert not fights.third(((100 * HOUR - 2, "steps"), (100 * HOUR - 1, "steps")), "steps", now)
    assert supervise.verdict((Attempt(100 * HOUR - 2), Attempt(100 * HOUR - 1)), now) == Keep()
    assert not hold(None, "key", Rejected("no"), 100 * HOUR).holds("key", now)
    assert hold(None, "key", Rejected("no"), 100 * HOUR).holds("key", 100 * HOUR)
    assert LONGEST < HOUR


@virtual
async def test_a_clock_that_was_set_back_makes_no_haste() -> None:
    node = Node(world())
    await node.start()
    await node.until(settled, seconds=30)
    await node.world.clock.sleep(HOUR)
    setting(node.world.clock, -2 * HOUR)
    before = node.status.passes
    await node.world.clock.sleep(600)
    assert node.status.passes - before < 60
    await node.kill()
