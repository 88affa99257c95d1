"""The contract of ports.Ray where no probe is connected; with one, the lab's own tests look at real Ray."""

from __future__ import annotations

from strixd.ports import Host


async def test_without_a_probe_there_is_no_report(host: Host) -> None:
    assert await host.ray.report() is None


async def test_a_record_can_be_published_before_there_is_a_probe(host: Host) -> None:
    await host.ray.publish({"digest": "sha256:0", "version": "0"})
    await host.ray.publish({"digest": "sha256:1"})
    assert await host.ray.report() is None
