"""The checks, layer by layer. Pure: a judge sees facts, and says what they mean."""

from strixd.doctor.checks import cluster, container, daemon, firmware, host, kernel, network
from strixd.doctor.finding import Check

CHECKS: tuple[Check, ...] = (
    *daemon.CHECKS,
    *firmware.CHECKS,
    *kernel.CHECKS,
    *network.CHECKS,
    *container.CHECKS,
    *host.CHECKS,
    *cluster.CHECKS,
)
