"""What a node has counted after something happened to it."""

from __future__ import annotations

from strixd.api.metrics import page
from strixd.sim.world import VLLM
from tests.exposition import parsed
from tests.sim.node import Node, serving, virtual

Series = tuple[str, str]


async def told(node: Node) -> dict[Series, float]:
    """The value of each series, by its name and the values of its labels."""
    assert node.loop
    samples = [sample for family in parsed(await page(node.loop)).values() for sample in family.samples]
    return {(sample.name, " ".join(sample.labels.values())): sample.value for sample in samples}


@virtual
async def test_a_crash_of_the_model_and_its_recovery_are_counted() -> None:
    async with serving() as node:
        before = await told(node)
        node.world.kill(VLLM)
        await node.until(lambda status: status.incident is not None, seconds=10)
        await node.answers(seconds=120)
        after = await told(node)
    grown = {series: value - before[series] for series, value in after.items() if series in before}
    assert grown["strixd_incidents_total", "vllm"] == 1
    assert grown["strixd_workload_starts_total", "vllm"] == 1
    assert grown["strixd_workload_starts_total", "ray"] == 0
    assert grown["strixd_recovery_seconds_count", ""] == 1
    assert 0 < grown["strixd_recovery_seconds_sum", ""] < 120
    assert grown["strixd_pass_duration_seconds_count", ""] > 1
    assert after["strixd_incident_open", ""] == 0


@virtual
async def test_the_links_counters_are_of_the_moment() -> None:
    async with serving() as node:
        before = await told(node)
        node.world.plug(cable=False)
        after = await told(node)
    changes = next(series for series in after if series[0] == "strixd_link_carrier_changes_total")
    assert after[changes] == before[changes] + 1


@virtual
async def test_without_an_answer_of_the_kernel_the_rest_is_told() -> None:
    async with serving() as node:
        node.world.calls.down.add("links")
        after = await told(node)
    assert after["strixd_node_phase", "ready"] == 1
    assert not [name for name, _ in after if name.startswith("strixd_link")]
