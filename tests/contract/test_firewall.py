"""The contract of ports.Firewall."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from strixd.errors import Rejected
from strixd.ports import Host, Policy, Zone
from tests.contract.stage import Stage, until
from tests.contract.test_network import cleaned as stored

RULE = 'rule family="ipv4" source address="192.168.213.{}" port port="1024-65535" protocol="tcp" accept'
OWN = Zone("strixd-contract", "made by a test", "default", (RULE.format(1), RULE.format(2)))
REJECT = 'rule family="ipv4" source NOT address="192.168.213.0/24" port port="{}" protocol="tcp" reject'
FENCE = Policy("strixd-test-fence", "made by a test", (REJECT.format("47001"), REJECT.format("47010-47019")))


@asynccontextmanager
async def cleaned(host: Host, stage: Stage) -> AsyncIterator[None]:
    """Afterwards our zone and policy are gone and the link is where it was."""
    before = await host.firewall.zone_of(stage.interface)
    try:
        yield
    finally:
        await host.firewall.move(stage.interface, before)
        await host.firewall.remove(zone=OWN.name, policy=FENCE.name)


async def test_the_fabric_link_is_in_the_default_zone_at_first(host: Host, stage: Stage) -> None:
    assert await host.firewall.zone_of(stage.interface) == "public"


async def test_an_unknown_interface_is_in_no_zone(host: Host) -> None:
    assert await host.firewall.zone_of("strixd-none0") == ""
    assert await host.firewall.permanent_zone_of("strixd-none0") == ""


async def test_no_permanent_zone_file_names_the_fabric_link(host: Host, stage: Stage) -> None:
    assert await host.firewall.permanent_zone_of(stage.interface) == ""


async def test_a_permanent_zone_file_that_names_it_is_found(host: Host, stage: Stage) -> None:
    with stage.permanently("drop"):
        assert await until(host, lambda: host.firewall.permanent_zone_of(stage.interface)) == "drop"


async def test_predefined_zones_can_be_read(host: Host) -> None:
    zone = await host.firewall.zone("trusted")
    assert zone
    assert (zone.name, zone.target) == ("trusted", "ACCEPT")
    assert await host.firewall.zone("strixd-none") is None


async def test_a_link_is_moved_at_once(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.move(stage.interface, "trusted")
        assert await host.firewall.zone_of(stage.interface) == "trusted"
        await host.firewall.move(stage.interface, "trusted")
        assert await host.firewall.zone_of(stage.interface) == "trusted"
        await host.firewall.move(stage.interface, "drop")
        assert await host.firewall.zone_of(stage.interface) == "drop"


async def test_a_move_leaves_the_permanent_files_alone(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.move(stage.interface, "trusted")
        assert await host.firewall.permanent_zone_of(stage.interface) == ""


async def test_a_link_can_be_taken_out_of_its_zone(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.move(stage.interface, "")
        assert await host.firewall.zone_of(stage.interface) == ""
        await host.firewall.move(stage.interface, "")
        await host.firewall.move(stage.interface, "trusted")
        assert await host.firewall.zone_of(stage.interface) == "trusted"


async def test_a_move_to_a_zone_that_is_not_there_is_rejected(host: Host, stage: Stage) -> None:
    before = await host.firewall.zone_of(stage.interface)
    with pytest.raises(Rejected, match="INVALID_ZONE"):
        await host.firewall.move(stage.interface, "strixd-none")
    assert await host.firewall.zone_of(stage.interface) == before


async def test_a_defined_zone_is_read_back_and_in_force(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.define(zone=OWN)
        assert await host.firewall.zone(OWN.name) == OWN
        await host.firewall.move(stage.interface, OWN.name)
        assert await host.firewall.zone_of(stage.interface) == OWN.name
        assert "192.168.213.2" in stage.rules(OWN.name)


async def test_defining_again_leaves_nothing_of_the_earlier_zone(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.define(zone=OWN)
        other = replace(OWN, description="another", target="DROP", rules=(RULE.format(3),))
        await host.firewall.define(zone=other)
        assert await host.firewall.zone(OWN.name) == other
        assert "192.168.213.3" in stage.rules(OWN.name)
        assert "192.168.213.2" not in stage.rules(OWN.name)


async def test_defining_the_same_twice_is_harmless(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.define(zone=OWN)
        await host.firewall.define(zone=OWN)
        assert await host.firewall.zone(OWN.name) == OWN


async def test_defining_a_zone_leaves_a_link_in_the_zone_of_its_profile(host: Host, stage: Stage) -> None:
    """A reload of firewalld lets NetworkManager say the profiles' zones again; moves beside them are lost."""
    async with stored(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(profile.uuid, stage.interface)
        await host.firewall.define(zone=OWN)
        await host.sleep(0.5)
        assert await host.firewall.zone_of(stage.interface) == profile.zone
        await host.firewall.remove(zone=OWN.name)
        await host.sleep(0.5)
        assert await host.firewall.zone_of(stage.interface) == profile.zone


async def test_a_link_stays_in_its_zone_when_that_is_defined_again(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.define(zone=OWN)
        await host.firewall.move(stage.interface, OWN.name)
        await host.firewall.define(zone=replace(OWN, rules=(RULE.format(3),)))
        assert await host.firewall.zone_of(stage.interface) == OWN.name


async def test_a_removed_zone_is_gone(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.define(zone=OWN)
        await host.firewall.remove(zone=OWN.name)
        assert await host.firewall.zone(OWN.name) is None
        with pytest.raises(Rejected):
            await host.firewall.move(stage.interface, OWN.name)


async def test_removing_what_is_not_there_does_nothing(host: Host) -> None:
    await host.firewall.remove(zone="strixd-none", policy="strixd-none")


async def test_the_links_of_a_removed_zone_fall_back(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.define(zone=OWN)
        await host.firewall.move(stage.interface, OWN.name)
        await host.firewall.remove(zone=OWN.name)
        assert await host.firewall.zone_of(stage.interface) in ("", "public")


async def test_firewalld_runs(host: Host) -> None:
    assert await host.firewall.running() == "running"


async def test_firewalld_that_has_failed_is_told_from_one_that_was_stopped_and_starts(host: Host, stage: Stage) -> None:
    async def failed() -> bool:
        return await host.firewall.running() == "failed"

    stage.fail_firewall()
    assert await until(host, failed)
    await host.firewall.start()
    assert await host.firewall.running() == "running"
    assert await host.firewall.zone("public"), "it can be asked"


async def test_a_policy_that_is_not_there_is_none(host: Host) -> None:
    assert await host.firewall.policy("strixd-none") is None


async def test_a_defined_policy_is_read_back_and_in_force(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.define(policy=FENCE)
        assert await host.firewall.policy(FENCE.name) == FENCE
        assert "47010-47019" in stage.policy_rules(FENCE.name)


async def test_a_policy_defined_again_leaves_nothing_of_the_earlier_one(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.define(policy=FENCE)
        other = replace(FENCE, description="another", rules=(REJECT.format("47002"),))
        await host.firewall.define(policy=other)
        assert await host.firewall.policy(FENCE.name) == other
        assert "47002" in stage.policy_rules(FENCE.name)
        assert "47001" not in stage.policy_rules(FENCE.name)


async def test_zone_and_policy_are_defined_and_removed_together(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        await host.firewall.define(zone=OWN, policy=FENCE)
        assert await host.firewall.zone(OWN.name) == OWN
        assert await host.firewall.policy(FENCE.name) == FENCE
        await host.firewall.remove(zone=OWN.name, policy=FENCE.name)
        assert await host.firewall.zone(OWN.name) is None
        assert await host.firewall.policy(FENCE.name) is None


async def test_a_policy_with_the_name_of_a_zone_is_rejected(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        with pytest.raises(Rejected, match="NAME_CONFLICT"):
            await host.firewall.define(policy=replace(FENCE, name="trusted"))
        assert await host.firewall.policy("trusted") is None
