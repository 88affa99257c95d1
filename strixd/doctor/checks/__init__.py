"""The checks, layer by layer. Pure: a judge sees facts, and says what they mean."""

from strixd.doctor.checks import cluster, container, daemon, firmware, host, installation, kernel, network, rdma
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
FIRST_INSTALL: tuple[Check, ...] = (*CHECKS, *installation.CHECKS)
"""With those that are about what an installation leaves, and that no machine but Fedora's can prove."""
