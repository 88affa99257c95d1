"""The fabric link over time: what crosses it, under which name it is there, and whether it is there at all."""

from __future__ import annotations

from dataclasses import replace

from strixd.engine.record import DRIFT
from strixd.engine.status import ResourceView
from strixd.ports import Link
from strixd.resources import mtu
from strixd.sim import World
from strixd.sim.hotplug import insert, remove, rename
from strixd.sim.world import FABRIC
from tests.sim.node import Node, cluster_toml, living, serving, virtual, world

NAMED = cluster_toml().replace('driver = "ice"', f'interface = "{FABRIC}"')
OTHER = "enp195s0np0"


def network(node: Node) -> ResourceView:
    return next(view for view in node.status.resources if view.name == "network")


def told(node: Node) -> str:
    """Nothing in the middle of the first change."""
    return "; ".join(fact for view in node.status.resources if view.name == "network" for fact in view.facts)


def own_profile(world: World) -> tuple[str, str, int]:
    (profile,) = world.network.stored.values()
    return profile.interface, profile.mac, profile.mtu


async def says(node: Node, words: str, *, seconds: float = 60) -> float:
    try:
        return await node.until(lambda _: words in told(node), seconds=seconds)
    except AssertionError as error:
        raise AssertionError(told(node)) from error


@virtual
async def test_proven_as_soon_as_the_peer_answers() -> None:
    made = world()
    made.cluster.others["halo2"].on = False
    async with living(made) as node:
        await says(node, "MTU 9000 unproven: halo2 does not answer yet")
        assert network(node).condition == "ok"
        assert made.network.nics[FABRIC].link.mtu == 9000
        made.cluster.switch("halo2", on=True)
        assert await says(node, "MTU 9000 crosses to halo2 and back") < 5


@virtual
async def test_a_device_that_drops_large_packets_and_is_mended() -> None:
    made = world()
    async with living(made) as node:
        assert node.engine
        await says(node, "MTU 9000 crosses")
        made.wire.there = 1500
        took = await says(node, "MTU 9000 does not cross from here to halo2: it is 1500 on this side", seconds=120)
        assert 30 <= took < 100
        await node.until(lambda _: made.network.nics[FABRIC].link.mtu == 1500, seconds=5)
        assert network(node).condition == "ok"
        assert "this node sends" in network(node).hint
        assert node.engine.history(1)[0].by != DRIFT
        await node.restart()
        await made.clock.sleep(300)
        calls = list(made.calls.writes)
        await made.clock.sleep(3600)
        assert made.calls.writes == calls, "nothing is tried again by itself"
        made.wire.there = 65535
        await node.engine.apply("uid 0")
        await says(node, "MTU 9000 crosses to halo2 and back", seconds=10)
        assert mtu.RECORD not in made.disk.files
        assert not network(node).hint


@virtual
async def test_an_order_about_the_model_does_not_move_the_link_under_it() -> None:
    async with serving() as node:
        made = node.world
        assert node.engine
        await says(node, "MTU 9000 crosses")
        made.wire.there = 1500
        await says(node, "does not cross from here to halo2: it is 1500", seconds=120)
        await made.clock.sleep(30)
        writes = [each for each in made.calls.writes if each.port in ("network", "firewall")]
        for order in (node.engine.drain, node.engine.undrain, node.engine.update_image, node.engine.stop):
            await order("uid 0: another")
            await made.clock.sleep(60)
        assert [each for each in made.calls.writes if each.port in ("network", "firewall")] == writes
        await node.engine.apply("uid 0: apply")
        await says(node, "MTU 9000 unproven", seconds=10)


@virtual
async def test_an_apply_while_it_is_still_broken_ends_in_1500_again() -> None:
    made = world()
    made.wire.back = 1500
    async with living(made) as node:
        assert node.engine
        for _ in range(2):
            await says(node, "does not cross from halo2 to here", seconds=60)
            assert "halo2 sends" in network(node).hint
            await node.engine.apply("uid 0")
            await says(node, "MTU 9000 unproven", seconds=10)


@virtual
async def test_a_peer_that_is_set_up_a_little_later_is_no_failure() -> None:
    made = world()
    made.wire.peers = 1500
    async with living(made) as node:
        await made.clock.sleep(25)
        made.wire.peers = 9000
        await says(node, "MTU 9000 crosses to halo2 and back", seconds=5)
        assert mtu.RECORD not in made.disk.files


@virtual
async def test_a_reboot_ends_it() -> None:
    made = world()
    made.wire.there = 1500
    async with living(made) as node:
        await says(node, "does not cross", seconds=60)
        made.wire.there = 65535
        await node.reboot()
        await says(node, "MTU 9000 crosses", seconds=30)
        assert mtu.RECORD not in made.disk.files


@virtual
async def test_one_of_three_is_enough_to_fail() -> None:
    made = world(count=3)
    async with living(made, count=3) as node:
        await says(node, "crosses to halo2 and halo3 and back")
        made.cluster.others["halo3"].on = False
        await says(node, "crosses to halo2 and back; MTU 9000 unproven: halo3", seconds=90)
        made.wire.peers = 1500
        made.cluster.switch("halo3", on=True)
        await says(node, "does not cross from here to halo", seconds=150)


@virtual
async def test_a_renamed_interface_keeps_its_address_and_is_found() -> None:
    made = world()
    async with living(made) as node:
        node.text = NAMED
        await node.restart()
        await says(node, "MTU 9000 crosses")
        mac = made.network.nics[FABRIC].link.mac
        assert own_profile(made) == ("", mac, 9000)
        await node.kill()
        rename(made, FABRIC, OTHER)
        await node.reboot()
        await says(node, f"{FABRIC} of the file is called {OTHER} now (same card, MAC {mac})")
        await says(node, "MTU 9000 crosses")
        await node.until(lambda status: status.phase == "ready", seconds=120)
        assert made.network.nics[OTHER].link.addresses == ("192.168.100.1/24",)
        units = "".join(text for path, text in made.disk.files.items() if path.endswith(".container"))
        assert f"GLOO_SOCKET_IFNAME={OTHER}" in units


@virtual
async def test_the_name_went_to_another_card() -> None:
    made = world()
    async with living(made) as node:
        node.text = NAMED
        await node.restart()
        await says(node, "MTU 9000 crosses")
        await node.kill()
        rename(made, FABRIC, OTHER)
        insert(made, Link(FABRIC, "50:7c:6f:00:00:99", "ice", carrier=True, max_mtu=9702))
        await node.reboot()
        await node.until(lambda _: network(node).condition == "blocked", seconds=10)
        assert OTHER in network(node).why
        assert "50:7c:6f:00:00:99" in network(node).why


@virtual
async def test_a_profile_that_was_bound_to_the_name_is_bound_to_the_card_without_a_new_activation() -> None:
    made = world()
    async with living(made) as node:
        await says(node, "MTU 9000 crosses")
        await node.kill()
        nic = made.network.nics[FABRIC]
        (uuid, profile), turn = next(iter(made.network.stored.items())), nic.turn
        bound = replace(profile, interface=FABRIC, mac="")
        made.network.stored[uuid] = nic.applied = bound
        node.text = NAMED
        await node.start()
        await node.until(lambda _: own_profile(made) == ("", nic.link.mac, 9000), seconds=10)
        await says(node, "MTU 9000 crosses")
        assert nic.turn == turn
        assert network(node).condition == "ok"


@virtual
async def test_thunderbolt_comes_late_goes_and_comes_back() -> None:
    made = world()
    ice = remove(made, FABRIC)
    late = replace(ice, name="thunderbolt0", driver="thunderbolt-net", max_mtu=65522)
    async with living(made) as node:
        node.text = cluster_toml().replace('"ice"', '"thunderbolt-net"')
        await node.restart()
        await made.clock.sleep(600)
        assert network(node).condition == "blocked"
        assert "thunderbolt-net" in network(node).why
        for _ in range(2):
            insert(made, late)
            assert await says(node, "MTU 65522 crosses to halo2 and back", seconds=20) < 5
            assert made.network.nics["thunderbolt0"].link.mtu == 65522
            remove(made, "thunderbolt0")
            await node.until(lambda _: network(node).condition == "blocked", seconds=5)


@virtual
async def test_firewalld_that_has_failed_is_started_and_the_model_goes_on() -> None:
    async with serving() as node:
        server = node.world.server()
        node.world.firewalld.fail()
        await node.until(lambda _: node.world.firewalld.state == "running", seconds=40)
        await node.until(lambda status: status.phase == "ready", seconds=10)
        assert node.world.server() is server
