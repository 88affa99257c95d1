"""The peer: the guide's own commands in plain systemd units with `Restart=always`, and nobody who knows more.

`ray start --head`, `ray start --address=…` and `vllm serve`, each in a podman container that has the host's namespaces
and /tmp, as a toolbox has. Nothing is held against it that a setting of systemd's would mend: it may restart without
limit and after a second.
"""

from __future__ import annotations

import shlex
from contextlib import suppress

from tests.e2e.cluster import MODEL, Cluster
from tests.faults.tokens.fault import AWAY
from tests.lab import registry
from tests.lab.cluster import ENVIRONMENT
from tests.lab.host import Host
from tests.lab.layout import FABRIC

PORT = 6379
RAY, VLLM = "plain-ray", "plain-vllm"
NAMESPACES = "--network=host --ipc=host --pid=host --security-opt=seccomp=unconfined"
VOLUMES = "--volume=/tmp:/tmp --volume=/var/lib/strixd/models:/models"
UNIT = """\
[Unit]
Description={name}
Wants=network-online.target
After=network-online.target {after}
StartLimitIntervalSec=0

[Service]
ExecStart={command}
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
"""
ASIDE = "systemctl disable -q --now strixd.socket strixd.service; systemctl stop strixd-vllm strixd-ray; podman rm -fa"
DOWN = "systemctl kill -s KILL 'plain-*'; systemctl stop 'plain-*'; podman rm -fa; true"


def container(name: str, command: str, address: str, head: str) -> str:
    """The command of podman's for one of the guide's."""
    own = {"VLLM_HOST_IP": address, "GLOO_SOCKET_IFNAME": FABRIC, "RAY_ADDRESS": f"{head}:{PORT}"}
    environment = {**ENVIRONMENT, **own, "RAY_AUTH_MODE": "disabled"}
    variables = " ".join(f"--env={name}={value}" for name, value in environment.items())
    run = f"/usr/bin/podman run --rm --replace --name={name} {NAMESPACES} {VOLUMES} {variables}"
    return f"{run} {registry.REFERENCE} bash -lc {shlex.quote('exec ' + command)}"


def ray_start(address: str, head: str) -> str:
    role = f"--head --port={PORT} --include-dashboard=false" if address == head else f"--address={head}:{PORT}"
    return f"ray start {role} --node-ip-address={address} --num-cpus=2 --num-gpus=1 --disable-usage-stats --block"


def vllm_serve() -> str:
    flags = "--enforce-eager --host 127.0.0.1 --port 8000 --max-model-len 1024"
    ranks = "--tensor-parallel-size 2 --distributed-executor-backend ray"
    return f"vllm serve /models/{MODEL} --served-model-name {MODEL} {flags} {ranks}"


def units(address: str, head: str) -> dict[str, str]:
    """By name, for the host with that address."""
    commands = {RAY: ray_start(address, head)} | ({VLLM: vllm_serve()} if address == head else {})
    return {
        name: UNIT.format(
            name=name,
            after=f"{RAY}.service" if name == VLLM else "",
            command=container(name, command, address, head),
        )
        for name, command in commands.items()
    }


def take_over(cluster: Cluster) -> None:
    """strixd and its workloads go; the link that it has set up stays, as if it had been set up by hand."""
    head = cluster.head.seat.fabric_address
    for host in cluster.hosts:
        host.attempt("bash", "-c", ASIDE, timeout=120)
        for name, text in units(host.seat.fabric_address, head).items():
            host.write(f"/etc/systemd/system/{name}.service", text)
        host.run("systemctl", "daemon-reload")
    _up(cluster)


def revive(cluster: Cluster) -> None:
    """What a person would do, who starts over."""
    for host in cluster.hosts:
        with suppress(*AWAY):
            host.attempt("bash", "-c", DOWN, timeout=120)
    _up(cluster)


def _up(cluster: Cluster) -> None:
    for host in cluster.hosts:
        host.run("systemctl", "enable", "--now", *_names(host, cluster), timeout=60)
    cluster.wait_for_tokens()


def _names(host: Host, cluster: Cluster) -> list[str]:
    return [f"{name}.service" for name in units(host.seat.fabric_address, cluster.head.seat.fabric_address)]
