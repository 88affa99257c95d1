"""What is told to Prometheus: the families of metrics, from the status, the tally and the link's counters.

Names by Prometheus' conventions: strixd_, base units, the unit in the name. What is in one of several states is one
series per state, 1 for the one it is in; facts in words are labels of a series that is always 1.
"""

from __future__ import annotations

from contextlib import suppress
from typing import get_args

from strixd.api.exposition import Family, Sample, Unit, sample, text
from strixd.engine import incident
from strixd.engine.reconcile import Reconciler
from strixd.engine.status import Phase, Status
from strixd.engine.tally import Tally
from strixd.errors import StrixdError
from strixd.plan import Condition
from strixd.ports import Counters

WORKLOADS = ("ray", "vllm")


async def page(loop: Reconciler) -> str:
    """Everything as of the last pass, and the link's counters as of now; without these when they cannot be read."""
    counters = None
    if loop.tally.link:
        with suppress(StrixdError):  # the next pass says so, which reads more of the same kernel
            counters = await loop.host.links.counters(loop.tally.link)
    return render(loop.status(), loop.tally, counters)


def render(status: Status, tally: Tally, counters: Counters | None) -> str:
    told = (*_node(status, tally), *_cluster(status, tally), *_faults(status, tally))
    return text((*told, *_link(tally.link, counters)))


def _node(status: Status, tally: Tally) -> tuple[Family, ...]:
    phases = tuple(sample(int(phase == status.phase), phase=phase) for phase in get_args(Phase))
    build = sample(1, version=status.version)
    node = sample(1, node=status.node, role=status.role, cluster=status.cluster)
    return (
        Family("strixd_build", "info", "The version of strixd", (build,)),
        Family("strixd_node", "info", "This node, as cluster.toml has it", (node,)),
        Family("strixd_node_phase", "gauge", "1 for the phase that this node is in", phases),
        Family("strixd_resource_condition", "gauge", "1 for the condition that a resource is in", _conditions(status)),
        Family(
            "strixd_pass_duration_seconds", "histogram", "Passes over all resources", (sample(tally.passes),), "seconds"
        ),
        Family("strixd_last_pass_timestamp_seconds", "gauge", "When the last pass ended", _time(status.at), "seconds"),
    )


def _conditions(status: Status) -> tuple[Sample, ...]:
    return tuple(
        sample(int(condition == view.condition), resource=view.name, condition=condition)
        for view in status.resources
        for condition in get_args(Condition)
    )


def _cluster(status: Status, tally: Tally) -> tuple[Family, ...]:
    joined = tuple(sample(int(each.joined), member=each.name, role=each.role) for each in status.members)
    gpus = tuple(sample(each.gpus if each.joined else 0, member=each.name) for each in status.members)
    image, starts = tally.image, tuple(sample(tally.starts[name], workload=name) for name in WORKLOADS)
    known = (sample(1, reference=image.reference, digest=image.digest),) if image.digest else ()
    return (
        Family("strixd_member_joined", "gauge", "1 for a node of cluster.toml that Ray lists as alive", joined),
        Family("strixd_member_gpus", "gauge", "GPUs that a member brings, as Ray counts them", gpus),
        Family("strixd_image", "info", "The container image in use", known),
        *_model(status),
        Family("strixd_workload_starts", "counter", "Starts of a workload by strixd, the first included", starts),
    )


def _model(status: Status) -> tuple[Family, ...]:
    model = status.model
    if model is None:
        return ()
    answered = _time(model.answered_at)
    took = (sample(model.seconds),) if answered else ()
    about = "When a completion last came out of the ordered model"
    return (
        Family("strixd_model", "info", "The ordered model", (sample(1, model=model.name, over=model.over),)),
        Family("strixd_model_ranks", "gauge", "Ranks over which the model is split", (sample(model.parallel),)),
        Family("strixd_model_probe_seconds", "gauge", "How long strixd's last own completion took", took, "seconds"),
        Family("strixd_model_answered_timestamp_seconds", "gauge", about, answered, "seconds"),
    )


def _faults(status: Status, tally: Tally) -> tuple[Family, ...]:
    names = sorted({incident.HOST, *incident.PATH, *tally.incidents})
    counts = tuple(sample(tally.incidents[name], resource=name) for name in names)
    last = status.incident
    at_fault = last.resource if last and not last.ended else ""
    still = tuple(sample(int(name == at_fault), resource=name) for name in names)
    about = "From the first bad sign to the first good completion"
    return (
        Family("strixd_incidents", "counter", "Incidents that are over, by the resource at fault", counts),
        Family("strixd_incident_open", "gauge", "1 for the resource at fault of an incident that is not over", still),
        Family("strixd_recovery_seconds", "histogram", about, (sample(tally.recoveries),), "seconds"),
    )


def _link(device: str, of: Counters | None) -> tuple[Family, ...]:
    """The kernel's counts. Not every driver counts what goes by RDMA among them."""
    if of is None:
        return ()

    def family(name: str, about: str, value: int) -> Family:
        unit: Unit = "bytes" if name.endswith("_bytes") else ""
        return Family(f"strixd_link_{name}", "counter", about, (sample(value, device=device),), unit)

    return (
        family("receive_bytes", "Bytes received on the fabric link", of.rx_bytes),
        family("transmit_bytes", "Bytes sent on the fabric link", of.tx_bytes),
        family("receive_errors", "Errors in receiving on the fabric link", of.rx_errors),
        family("transmit_errors", "Errors in sending on the fabric link", of.tx_errors),
        family("receive_drops", "Packets of the fabric link dropped after they were received", of.rx_dropped),
        family("transmit_drops", "Packets of the fabric link dropped before they were sent", of.tx_dropped),
        family("carrier_changes", "Times that the carrier of the fabric link came or went", of.carrier_changes),
    )


def _time(at: float) -> tuple[Sample, ...]:
    return (sample(at),) if at else ()
