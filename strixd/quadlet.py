"""A container as the text of a Quadlet unit. Pure; the same value always gives the same bytes.

The unit is never enabled and never restarts by itself: strixd alone starts it (one restarter).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

FOLDER = "/run/containers/systemd"
SLICE = "strixd-workload.slice"
_LINK = "# link: "
OOM_SCORE = 900
"""For every process of a container: the kernel's first choice when the host has no memory left, whoever took it last
(GPU memory does not show in a process's size). Ray gives its workers, the ranks among them, 1000: they go first."""


@dataclass(frozen=True, slots=True)
class Container:
    """What both workloads differ in. `command` runs through a login shell of the image, whose profile sets up
    ROCm and the Python environment. `volumes` are "SOURCE:TARGET[:ro]"; `before` is shell text that comes first;
    `keys` differs with the keys that are read at a start, so that no container runs on with an old one; `link`: which
    of the environment was derived from the link (no blanks in it), whatever the file made of it; `service` and `unit`
    are further lines of those sections."""

    name: str
    description: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    podman: tuple[str, ...] = ()
    init: bool = False
    before: str = ""
    keys: str = ""
    link: Mapping[str, str] = field(default_factory=dict)
    unit: tuple[str, ...] = ()
    service: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}.container"

    @property
    def service_name(self) -> str:
        return f"{self.name}.service"


def render(container: Container) -> str:
    """The file's text, with a first line that says whose it is."""
    return "\n".join(
        (
            "# Written by strixd from /etc/strixd/cluster.toml and its orders; changes here are overwritten.",
            "[Unit]",
            f"Description={_percent(container.description)}",
            *container.unit,
            "",
            "[Container]",
            *_container(container),
            "",
            "[Service]",
            f"Slice={SLICE}",
            "Restart=no",
            "KillMode=mixed",
            # With one rank dead the model is dead: the kernel ends the whole unit at once, and its result says why.
            # Not systemd's default here, which for a delegated group (Quadlet) is to go on and say nothing.
            "OOMPolicy=kill",
            "LimitMEMLOCK=infinity",
            "TimeoutStopSec=20",
            "SuccessExitStatus=143",  # how a container ends that was asked to stop
            *container.service,
            "",
            "[Quadlet]",
            "DefaultDependencies=false",  # a start waits for the fabric by itself, never for the uplink
            "",
        )
    )


def _container(container: Container) -> tuple[str, ...]:
    return (
        f"ContainerName={container.name}",
        f"# keys: {container.keys or 'none'}",
        _LINK + " ".join(f"{key}={value}" for key, value in sorted(container.link.items())),
        f"Image={container.image}",
        "Pull=never",
        "Network=host",
        "SecurityLabelDisable=true",  # no SELinux rule allows /dev/infiniband (container-selinux)
        "SeccompProfile=unconfined",  # as the image's own scripts run it
        "Ulimit=memlock=-1:-1",
        "Ulimit=nofile=1048576:1048576",
        "PodmanArgs=--pids-limit=-1",
        f"PodmanArgs=--oom-score-adj={OOM_SCORE}",
        *(("RunInit=true",) if container.init else ()),
        *(f"PodmanArgs={argument}" for argument in container.podman),
        *(f"AddDevice={device}" for device in container.devices),
        *(f"Volume={volume}" for volume in container.volumes),
        *(f"Environment={quote(f'{key}={value}')}" for key, value in sorted(container.environment.items())),
        f"Exec=bash -lc {_dollar(quote(container.before + 'exec ' + shlex.join(container.command)))}",
    )


def quote(word: str) -> str:
    """One word for systemd: quoted, with specifiers taken literally (systemd.syntax(7))."""
    return '"' + _percent(word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) + '"'


def link(text: str) -> dict[str, str]:
    """What the unit with this text was told of the link, as `render` noted it; {} for one that says nothing of it."""
    line = next((line for line in text.splitlines() if line.startswith(_LINK)), _LINK)
    return {key: value for key, _, value in (word.partition("=") for word in line.removeprefix(_LINK).split())}


def _percent(text: str) -> str:
    return text.replace("%", "%%")


def _dollar(text: str) -> str:
    """ExecStart expands variables even within quotes; "$$" is a dollar (systemd.service(5))."""
    return text.replace("$", "$$")
