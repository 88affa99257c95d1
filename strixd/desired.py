"""Config + orders → what each resource of this node must be. Every derivation lives here, once. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID, uuid5

from strixd import __version__, collectives, fence, occupied
from strixd.config import Config, Node, settings_hash
from strixd.fabric import Fabric
from strixd.ladder import Wanted
from strixd.orders import Orders
from strixd.ports import Profile, Zone
from strixd.quadlet import Container
from strixd.resources import cmdline, drain, firewall, image, members, memory, mtu, network, ray, vllm
from strixd.resources import fabric as fabric_link

SETTINGS = "/etc/strixd"
CLUSTER_KEY = f"{SETTINGS}/cluster.key"
HUB_TOKEN = f"{SETTINGS}/hf-token"
API_KEY = f"{SETTINGS}/api.key"
PROBE_FOLDER = "/run/strixd/probe"
PROBE = str(Path(__file__).with_name("probe"))
PROBE_THERE = "/strixd/program/strixd/probe"  # in the container: the name under which its files know each other
SHARED_TMP = "/var/lib/strixd/tmp"  # Ray's sessions and vLLM's sockets; root only, never the host's /tmp
CACHE = "/var/lib/strixd/cache"
_NAMESPACE = UUID("6a3d1b5e-52a5-4c0c-9b57-0e6a4c1f7d10")  # of strixd's own profile ids


@dataclass(frozen=True, slots=True)
class Desired:
    """One value per resource; vllm is None on a worker, whose ranks are started by Ray."""

    cmdline: cmdline.Desired
    firewall: firewall.Desired
    network: network.Desired
    dscp: fabric_link.Desired
    memory: memory.Desired
    image: image.Desired
    fabric: fabric_link.Desired
    ray: ray.Desired
    vllm: vllm.Desired | None


def derive(config: Config, node: Node, orders: Orders, card: str = "", apart: float = 0.0) -> Desired:
    """As last observed, `card`: the MAC that the profile of the fabric link is bound to; `apart`: since when the
    cluster has not been together, 0 while it is."""
    fabric = fabric_of(node, card)
    link = fabric_link.Desired(fabric, config.fabric.management, _link(config, node))
    return Desired(
        cmdline=cmdline.desired_arguments(config.kernel.policy, orders.applied),
        firewall=_firewall(config, node, fabric),
        network=replace(_network(config, node, orders, fabric), apart=apart),
        memory=memory.Desired(config.model.memory_reserve_bytes),
        image=image.Desired(config.image.reference, config.image.pull, orders.update_after),
        dscp=link,
        fabric=link,
        ray=_ray(config, node, orders, fabric),
        vllm=_vllm(config, node, orders, fabric) if node.role == "head" else None,
    )


def fabric_of(node: Node, card: str = "") -> Fabric:
    spare = Fabric(node.spare_interface, node.spare_mac, node.spare_driver)
    named = None if spare == Fabric() else spare
    return Fabric(node.interface, node.mac, node.driver, card, node.address, named)


def zone(config: Config) -> str:
    """trusted for two nodes on their own cable, else a zone that opens only what the cluster uses, to the peers."""
    if not config.fabric.firewall:
        return ""
    if config.fabric.zone != "auto":
        return config.fabric.zone
    switched = len(config.nodes) > 2 or config.fabric.kind == "ethernet"
    return "strixd" if switched else "trusted"


def _network(config: Config, node: Node, orders: Orders, fabric: Fabric) -> network.Desired:
    name = f"strixd-{config.cluster.name}"
    profile = Profile(
        uuid=_profile_id(config),
        name=name,
        address=node.address,
        mtu=config.fabric.mtu,
        zone=zone(config),
        autoconnect_priority=network.PRIORITY,
    )
    peers = tuple(mtu.Peer(other.name, str(other.ip.ip)) for other in config.nodes if other != node)
    return network.Desired(fabric, config.fabric.management, profile, peers, orders.applied)


def _link(config: Config, node: Node) -> Wanted:
    person = {key: value for key, value in config.image.environment.items() if key in collectives.LINK}
    own, address = config.fabric, str(node.ip.ip)
    return Wanted(kind=own.kind, allow_tcp=own.allow_tcp, dscp=own.dscp, address=address, person=person)


def _profile_id(config: Config) -> str:
    return str(uuid5(_NAMESPACE, config.cluster.name))


def _firewall(config: Config, node: Node, fabric: Fabric) -> firewall.Desired:
    wanted = zone(config)
    own = _own_zone(config, node) if wanted == "strixd" else None
    return firewall.Desired(
        fabric=fabric,
        management=config.fabric.management,
        zone=wanted,
        own=firewall.Own(own, fence.policy(config, node)) if wanted else firewall.Own(),
        fenced=", ".join(fence.fenced(config)),
        ephemeral=(fence.EPHEMERAL[0], fence.EPHEMERAL[-1]),
        former=fence.NAME,
        profile=_profile_id(config),
        address=node.address,
    )


def _own_zone(config: Config, node: Node) -> Zone:
    """Ranks and Ray's workers choose their ports themselves, so unprivileged TCP ports are open, to the peers only."""
    peers = [str(other.ip.ip) for other in config.nodes if other != node]
    rule = 'rule family="ipv4" source address="{}" port port="1024-65535" protocol="tcp" accept'
    rules = tuple(sorted(rule.format(address) for address in peers))
    return Zone("strixd", f"Cluster {config.cluster.name}, written by strixd", "default", rules)


def _peer(node: Node) -> members.Peer:
    return members.Peer(node.name, node.role, str(node.ip.ip), node.gpus)


def _tokens(config: Config) -> bool:
    """Ray asks for the cluster key unless the file turns that off outright."""
    return config.image.environment.get("RAY_AUTH_MODE", "token") == "token"


def _environment(config: Config, node: Node) -> dict[str, str]:
    """What both containers need; the file's own entries win. Sources: vLLM's and Ray's documentation and the image's
    own cluster scripts (memory monitor off: it kills ranks on unified memory); health checks as measured."""
    head = f"{config.head.ip.ip}:{config.cluster.ray_port}"
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": CLUSTER_KEY} if _tokens(config) else {}
    return {
        "HF_HOME": "/models",
        "HF_TOKEN_PATH": HUB_TOKEN,
        "VLLM_HOST_IP": str(node.ip.ip),
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CACHE_ROOT": "/cache/vllm",
        "VLLM_CONFIG_ROOT": "/cache/vllm-config",
        "TRITON_CACHE_DIR": "/cache/triton",
        "MIOPEN_USER_DB_PATH": "/cache/miopen",
        "NCCL_NET_GDR_LEVEL": "0",
        "NCCL_IB_TIMEOUT": "23",
        "NCCL_IB_RETRY_CNT": "7",
        "AUTOSCALER_METRIC_PORT": str(fence.autoscaler_port(config)),
        "RAY_ADDRESS": head,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_memory_monitor_refresh_ms": "0",
        "RAY_EXPERIMENTAL_NOSET_ROCR_VISIBLE_DEVICES": "1",
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_timeout_ms": "2000",
        "RAY_health_check_failure_threshold": "3",
        "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
        **token,
        **config.image.environment,
    }


def _volumes(config: Config) -> tuple[str, ...]:
    """Keys and tokens go in as files: the folder, so that a new token counts without a restart."""
    return (
        f"{config.model.folder}:/models",
        f"{SHARED_TMP}:/tmp",
        f"{CACHE}:/cache",
        f"{PROBE_FOLDER}:/strixd/probe",
        f"{PROBE}:{PROBE_THERE}:ro",
        f"{SETTINGS}:{SETTINGS}:ro",
    )


def _ray(config: Config, node: Node, orders: Orders, fabric: Fabric) -> ray.Desired:
    container = Container(
        name=ray.NAME,
        description=f"strixd: Ray {node.role} of cluster {config.cluster.name}",
        image="",
        command=_ray_start(config, node),
        environment=_environment(config, node),
        devices=config.image.devices,
        volumes=_volumes(config),
        podman=("--ipc=shareable", f"--shm-size={SHM}"),
        init=True,
        service=(
            f"ExecStartPre=/usr/bin/find {SHARED_TMP} -mindepth 1 -delete",
            # A dead vLLM container's record would hold this one's name ("has dependent containers", podman 5.4, seen).
            f"ExecStartPre=-/usr/bin/podman rm -v -f -i --depend {ray.NAME}",
        ),
    )
    return ray.Desired(
        node=_peer(node),
        head=_peer(config.head),
        port=config.cluster.ray_port,
        peers=tuple(_peer(other) for other in config.nodes),
        fabric=fabric,
        management=config.fabric.management,
        container=container,
        reference=config.image.reference,
        key=CLUSTER_KEY if _tokens(config) else "",
        settings=settings_hash(config),
        version=__version__,
        retry_after=orders.at,
        restart=orders.restart_ray,
        link=_link(config, node),
    )


STOP = 8  # seconds until SIGKILL: vLLM gives its engine 5 of them (resources/drain.py); one that hangs takes them all
SHM = "10g"  # a bound, not a reservation; Ray's own object store and the ranks' shared memory fit
OBJECT_STORE = 4 << 30  # bytes; by itself Ray takes 30 % of the memory, and a disk where shared memory is smaller
CPUS = 2  # what Ray may count: it also caps its pool of idle Python workers, 40 MB each


def _ray_start(config: Config, node: Node) -> tuple[str, ...]:
    address, port = str(node.ip.ip), config.cluster.ray_port
    role: tuple[str, ...] = (f"--address={config.head.ip.ip}:{port}",)
    if node.role == "head":
        role = ("--head", f"--port={port}", "--include-dashboard=false")
    counts = (f"--num-cpus={CPUS}", f"--num-gpus={node.gpus}", f"--object-store-memory={OBJECT_STORE}")
    common = (f"--node-ip-address={address}", *fence.ray_arguments(config, node), *counts)
    start = ("ray", "start", *role, *common, f"--labels=strixd-node={node.name}", "--disable-usage-stats", "--block")
    options = ("--socket", "/strixd/probe/socket", "--sweep", "/dev/shm")
    return ("python3", f"{PROBE_THERE}/__main__.py", *options, "--", *start)


def _vllm(config: Config, node: Node, orders: Orders, fabric: Fabric) -> vllm.Desired:
    model = orders.model
    return vllm.Desired(
        container=_vllm_container(config, node, orders) if orders.served else None,
        model=model,
        local=f"{config.model.folder}/{model}",
        cached=f"{config.model.folder}/hub/models--{model.replace('/', '--')}/refs",
        path=f"/models/{model}",
        url=api_url(config),
        listen=occupied.Seat(config.model.listen, config.model.port, "[model] port"),
        key=CLUSTER_KEY if _tokens(config) else "",
        api_key=API_KEY if _open(config) else "",
        fabric=fabric,
        management=config.fabric.management,
        retry_after=orders.at,
        grows=(config.model.folder, CACHE),
        drain=drain.Desired(config.model.drain, orders.drained, orders.restart_vllm),
    )


def api_url(config: Config) -> str:
    """Where the head itself reaches the model's API."""
    listen = ipaddress.ip_address(config.model.listen)
    host = ("127.0.0.1" if listen.version == 4 else "::1") if listen.is_unspecified else str(listen)
    return f"http://{f'[{host}]' if listen.version == 6 else host}:{config.model.port}"


def _open(config: Config) -> bool:
    """The API listens beyond this host."""
    return not ipaddress.ip_address(config.model.listen).is_loopback


def _vllm_container(config: Config, node: Node, orders: Orders) -> Container:
    eager = ("--enforce-eager",) if config.model.eager else ()
    graceful = (f"--shutdown-timeout={drain.ENGINE_END}",) if config.model.drain else ()
    return Container(
        name=vllm.NAME,
        description=f"strixd: vLLM serving {orders.model}",
        image="",
        command=vllm.command(
            model=orders.model,
            port=config.model.port,
            listen=config.model.listen,
            parallel=config.tensor_parallel,
            arguments=(*eager, *graceful, *config.model.arguments, *orders.arguments),
        ),
        environment=_environment(config, node),
        devices=config.image.devices,
        volumes=_volumes(config),
        podman=(f"--ipc=container:{ray.NAME}", f"--pid=container:{ray.NAME}", f"--stop-timeout={STOP}"),
        before=collectives.keep_own() + (f"export VLLM_API_KEY=$(cat {API_KEY}); " if _open(config) else ""),
        unit=(f"BindsTo={ray.NAME}.service", f"After={ray.NAME}.service"),
    )
