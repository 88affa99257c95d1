"""Which TCP ports the cluster uses on a node, and the rules that keep them to the fabric. Pure.

Ray is told its ports. The ranks are not: torch and gloo let the kernel choose, one of them on all addresses (seen with
vLLM 0.32: the rendezvous of its Ray executor), so the kernel's ephemeral ports are fenced as well. A service has no
business there: whatever connects may hold its port. The model's API and the metrics never are: who reaches those is
the administrator's to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from strixd.config import Config, Node
from strixd.ports import Policy
from strixd.richrule import spelled, without

NAME = "strixd-fence"  # firewalld refuses a policy with the name of a zone, and "strixd" is one
WIDTH = 1000
BASES = (23000, 29000, 21000, 31000)
"""Where the range may begin, below the ephemeral ports and with no well-known service in it; there is one more than
there are ports in the file that could lie in it."""
WORKERS = 100  # below are the ports of Ray's own processes, from here on those of its workers
EPHEMERAL = range(32768, 61000)
"""The kernel's default of net.ipv4.ip_local_port_range."""


def ray_ports(config: Config) -> range:
    """The range that Ray gets, the same on every node."""
    ranges = (range(base, base + WIDTH) for base in BASES)
    return next(each for each in ranges if not any(port in each for port in (config.cluster.ray_port, *_open(config))))


def ray_arguments(config: Config, node: Node) -> tuple[str, ...]:
    """Of `ray start`. What they do not name (gcs, dashboard) has the port of the file or is turned off."""
    ports = ray_ports(config)
    names = ["node-manager", "object-manager", "metrics-export", "dashboard-agent-grpc"]
    names += ["dashboard-agent-listen", "runtime-env-agent"]
    names += ["ray-client-server"] if node.role == "head" else []
    single = tuple(f"--{name}-port={port}" for name, port in zip(names, ports, strict=False))
    return (*single, f"--min-worker-port={ports[WORKERS]}", f"--max-worker-port={ports[-1]}")


def autoscaler_port(config: Config) -> int:
    """Of the metrics of Ray's autoscaler on the head, which listens on all addresses, too."""
    return ray_ports(config)[WORKERS - 1]


def fenced(config: Config) -> tuple[str, ...]:
    """Ports and ranges as firewalld spells them."""
    ports, ephemeral = ray_ports(config), without(EPHEMERAL, _open(config))
    return (str(config.cluster.ray_port), *map(spelled, (ports, *ephemeral)))


def policy(config: Config, node: Node) -> Policy:
    """Rejects and never accepts. It goes by the sender's network and names no interface, so that no other interface
    needs to be known; what a stranger sends under an address of the fabric is answered over the fabric."""
    description = f"Cluster {config.cluster.name}: its ports are for the fabric only. Written by strixd"
    return Policy(NAME, description, tuple(sorted(_rules(config, node))))


def _rules(config: Config, node: Node) -> Iterator[str]:
    for ports in fenced(config):
        match = f'port port="{ports}" protocol="tcp" reject type="tcp-reset"'  # at once; ICMP is rate-limited
        yield f'rule family="ipv4" source NOT address="{node.ip.network}" {match}'
        yield f'rule family="ipv6" {match}'


def _open(config: Config) -> tuple[int, ...]:
    """Ports of this file that are not the cluster's own affair."""
    metrics = config.metrics.listen.rpartition(":")[2]
    return (config.model.port, *((int(metrics),) if metrics else ()))
