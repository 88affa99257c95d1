"""Where a contract is played: the simulated node, or this host. What a test must arrange outside the ports is here.

Real: run as root on a lab host, `pytest tests/contract --real`, with STRIXD_CONTRACT_LINK naming the fabric
interface and STRIXD_CONTRACT_TAKEN an address that another host has there. STRIXD_CONTRACT_HOST ("module:function")
names who assembles the adapters, an async context manager.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar, cast

from strixd.ports import Holder, Host
from strixd.sim import World, simulated_host
from strixd.sim.hotplug import spared
from strixd.sim.vllm import Listener
from strixd.sim.world import FABRIC, SPARE

T = TypeVar("T")
STRANGER = "contract-stranger.service"
SECOND = "second0"
BRIEF = 3.0  # seconds of a network checkpoint that is to run out


class Stage(Protocol):
    """`interface` is the fabric link; `real` says that this is no simulation; `taken`: an address that another host on
    the link has."""

    interface: str
    real: bool
    taken: str

    def host(self, *, rollback: float = 60.0) -> AbstractAsyncContextManager[Host]:
        """`rollback`: seconds of a network checkpoint."""

    def second(self) -> AbstractContextManager[str]:
        """Another link with carrier is there meanwhile; gives its name."""

    def mode(self, path: str) -> int:
        """Permission bits of a file."""

    def listing(self, folder: str) -> list[str]:
        """Names of the files in a folder."""

    def permanently(self, zone: str) -> AbstractContextManager[None]:
        """Somebody else's permanent zone file names the fabric link meanwhile."""

    def serving(self, model: str) -> AbstractContextManager[str]:
        """A model server that answers; gives its URL."""

    def listening(self, address: str, port: int) -> AbstractContextManager[None]:
        """STRANGER, a python3, listens there meanwhile."""

    def gated(self, model: str) -> AbstractContextManager[None]:
        """A hub that refuses this model, and only this one."""

    def without_rdma_cm(self) -> AbstractContextManager[None]:
        """The kernel shows nothing of rdma_cm meanwhile."""

    def without_boot_tool(self) -> AbstractContextManager[None]:
        """Nothing here can change boot entries meanwhile."""

    def restart_network(self) -> None:
        """NetworkManager is stopped and started again."""

    def fail_firewall(self) -> None:
        """firewalld ends, and nobody stopped it."""

    def without_power(self) -> AbstractContextManager[None]:
        """Nobody here can reboot this host meanwhile."""

    def losing(self, size: int) -> AbstractContextManager[None]:
        """Packets of more bytes than this do not come in from the fabric meanwhile; larger ones still go out."""

    def rules(self, zone: str) -> str:
        """Rich rules of a zone in force now, one a line."""

    def policy_rules(self, policy: str) -> str:
        """Rich rules of a policy in force now, one a line."""


class Simulated:
    """A fresh world for each test."""

    interface = FABRIC
    real = False
    taken = "192.168.213.66/24"

    def __init__(self) -> None:
        self.world = World()
        self.world.network.duplicates.add(self.taken)
        self.world.cluster.others["halo2"].address = self.taken.partition("/")[0]

    @asynccontextmanager
    async def host(self, *, rollback: float = 60.0) -> AsyncIterator[Host]:
        yield simulated_host(self.world, rollback=rollback)

    @contextmanager
    def second(self) -> Iterator[str]:
        spared(self.world)
        yield SPARE

    @contextmanager
    def without_rdma_cm(self) -> Iterator[None]:
        self.world.rdma.loaded = False
        yield

    @contextmanager
    def without_boot_tool(self) -> Iterator[None]:
        self.world.boot_files.content = replace(self.world.boot_files.content, tool="")
        yield

    @contextmanager
    def without_power(self) -> Iterator[None]:
        self.world.calls.down.add("power")
        yield

    def mode(self, path: str) -> int:
        return self.world.disk.modes[path]

    def listing(self, folder: str) -> list[str]:
        inside = [path for path in self.world.disk.files if path.startswith(folder + "/")]
        return [path.removeprefix(folder + "/") for path in inside]

    @contextmanager
    def permanently(self, zone: str) -> Iterator[None]:
        self.world.firewalld.files[self.interface] = zone
        yield
        self.world.firewalld.files.pop(self.interface, None)

    @contextmanager
    def serving(self, model: str) -> Iterator[str]:
        listeners = self.world.serving.listeners
        listeners[18000] = Listener(model)
        yield "http://127.0.0.1:18000"
        listeners.pop(18000, None)

    @contextmanager
    def listening(self, address: str, port: int) -> Iterator[None]:
        holder = Holder(address, unit=STRANGER, processes=((4242, "python3"),))
        self.world.serving.listeners[port] = Listener("", holder=holder)
        yield
        del self.world.serving.listeners[port]

    @contextmanager
    def gated(self, model: str) -> Iterator[None]:
        self.world.hub[model] = f"Cannot fetch {model}: it is gated; accept its licence at https://hub/{model}"
        yield

    def restart_network(self) -> None:
        self.world.network.restart()

    def fail_firewall(self) -> None:
        self.world.firewalld.fail()

    @contextmanager
    def losing(self, size: int) -> Iterator[None]:
        self.world.wire.back = size
        yield

    def rules(self, zone: str) -> str:
        return "\n".join(self.world.firewalld.zones[zone].rules)

    def policy_rules(self, policy: str) -> str:
        return "\n".join(self.world.firewalld.policies[policy].rules)


class Real:
    """This host, as root."""

    real = True

    def __init__(self) -> None:
        self.interface = os.environ["STRIXD_CONTRACT_LINK"]
        self.taken = os.environ["STRIXD_CONTRACT_TAKEN"]

    def host(self, *, rollback: float = 60.0) -> AbstractAsyncContextManager[Host]:
        self._occupy()
        module, _, name = os.environ.get("STRIXD_CONTRACT_HOST", "strixd.node:real_host").partition(":")
        assemble = getattr(importlib.import_module(module), name)
        return cast(AbstractAsyncContextManager[Host], assemble(rollback=rollback))

    def _occupy(self) -> None:
        """The automatic profile gives up after some minutes without DHCP: then it is told to try again."""
        if _output("nmcli", "-g", "GENERAL.CONNECTION", "device", "show", self.interface).strip() in ("", "--"):
            _output("nmcli", "--wait", "0", "device", "connect", self.interface)
            time.sleep(0.5)

    @contextmanager
    def second(self) -> Iterator[str]:
        """NetworkManager learns of it a moment later."""
        _output("ip", "link", "add", SECOND, "type", "veth", "peer", "name", f"{SECOND}-end")
        try:
            _output("ip", "link", "set", f"{SECOND}-end", "up")
            for _ in range(100):
                if SECOND in _output("nmcli", "-g", "DEVICE", "device").split():
                    break
                time.sleep(0.1)
            _output("nmcli", "device", "set", SECOND, "managed", "yes")
            yield SECOND
        finally:
            _output("ip", "link", "del", SECOND)

    @contextmanager
    def without_rdma_cm(self) -> Iterator[None]:
        """A lab host has no module of the kernel's, and no configfs."""
        assert not Path("/sys/kernel/config/rdma_cm").exists()
        yield

    @contextmanager
    def without_boot_tool(self) -> Iterator[None]:
        tool = Path(shutil.which("grubby") or "")
        away = tool.rename(tool.with_name("away"))
        yield
        away.rename(tool)

    @contextmanager
    def without_power(self) -> Iterator[None]:
        _output("systemctl", "mask", "--runtime", "--now", "systemd-logind.service")
        try:
            yield
        finally:
            _output("systemctl", "unmask", "--runtime", "systemd-logind.service")
            _output("systemctl", "start", "systemd-logind.service")

    def mode(self, path: str) -> int:
        return Path(path).stat().st_mode & 0o7777

    def listing(self, folder: str) -> list[str]:
        return [path.name for path in Path(folder).iterdir()]

    @contextmanager
    def permanently(self, zone: str) -> Iterator[None]:
        """Over D-Bus: firewall-cmd would write into the NetworkManager profile instead."""
        service, root = "org.fedoraproject.FirewallD1", "/org/fedoraproject/FirewallD1/config"
        config = f"{service}.config"
        path = _output("busctl", "call", service, root, config, "getZoneByName", "s", zone).split('"')[1]
        call = ("busctl", "call", service, path, f"{config}.zone")
        _output(*call, "addInterface", "s", self.interface)
        try:
            yield
        finally:
            _output(*call, "removeInterface", "s", self.interface)
            _output(*call, "loadDefaults")

    @contextmanager
    def serving(self, model: str) -> Iterator[str]:
        with _stub("model", model) as url:
            yield url

    @contextmanager
    def listening(self, address: str, port: int) -> Iterator[None]:
        serve = ("python3", "-m", "http.server", "--bind", address, str(port))
        _output("systemd-run", f"--unit={STRANGER}", "--collect", *serve)
        for _ in range(100):
            if _output("ss", "-Hltn", f"sport = :{port}"):
                break
            time.sleep(0.1)
        try:
            yield
        finally:
            _output("systemctl", "stop", STRANGER)

    @contextmanager
    def gated(self, model: str) -> Iterator[None]:
        """Works for adapters that read HF_ENDPOINT when they are made: enter before `host`."""
        with _stub("hub", model) as url:
            os.environ["HF_ENDPOINT"] = url
            try:
                yield
            finally:
                del os.environ["HF_ENDPOINT"]

    def restart_network(self) -> None:
        _output("systemctl", "restart", "NetworkManager")
        _output("nm-online", "--quiet", "--wait-for-startup", "--timeout=20")

    def fail_firewall(self) -> None:
        _output("systemctl", "kill", "--signal=KILL", "firewalld")

    @contextmanager
    def losing(self, size: int) -> Iterator[None]:
        chain = f"{{ type filter hook ingress device {self.interface} priority 0; meta length > {size} drop; }}"
        _output("nft", f"table netdev contract {{ chain losing {chain}; }}")
        try:
            yield
        finally:
            _output("nft", "delete table netdev contract")

    def rules(self, zone: str) -> str:
        return _output("firewall-cmd", f"--zone={zone}", "--list-rich-rules")

    def policy_rules(self, policy: str) -> str:
        return _output("firewall-cmd", f"--policy={policy}", "--list-rich-rules")


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextmanager
def _stub(kind: str, model: str) -> Iterator[str]:
    """A process of its own, so that a blocked test cannot block it."""
    command = [sys.executable, str(Path(__file__).with_name("stub.py")), kind, model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


async def until(host: Host, look: Callable[[], Awaitable[T]], *, seconds: float = 5.0) -> T:
    """Looks again until what it sees is true; gives the last sight, which the test then judges."""
    deadline = host.now() + seconds
    while not (seen := await look()) and host.now() < deadline:
        await host.sleep(0.05)
    return seen


@asynccontextmanager
async def watching(host: Host) -> AsyncIterator[list[str]]:
    """The reasons that were given; the subscriptions stand when this is entered."""
    reasons: list[str] = []
    task = asyncio.create_task(_watch(host, reasons))
    await host.sleep(0.5)
    reasons.clear()
    try:
        yield reasons
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _watch(host: Host, reasons: list[str]) -> None:
    await host.watch(reasons.append)
