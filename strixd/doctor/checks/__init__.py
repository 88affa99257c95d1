"""The checks, layer by layer. Pure: a judge sees facts, and says what they mean."""

from strixd.doctor.checks import cluster, container, daemon, firmware, host, kernel, network, rdma
from strixd.doctor.finding import Check

CHECKS: tuple[Check, ...] = (
    *daemon.CHECKS,
    *firmware.CHECKS,
    *kernel.CHECKS,
    *rdma.CHECKS,
    *network.CHECKS,
    *container.CHECKS,
    *host.CHECKS,
    *cluster.CHECKS,
)
