"""`make demo`: the main job on real parts, told as it happens. Without root: the same on the simulated node."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.cluster import MODEL, Cluster, pieces
from tests.lab.host import NotUp
from tests.lab.install import install
from tests.lab.lab import Ended, running_lab
from tests.lab.shell import CommandFailed

BEGAN = time.monotonic()
STATE = "timeout 20 strixd-cli status; journalctl -b -u 'strixd*' -p notice -n 25 -o cat --no-pager"


def say(words: str) -> None:
    print(f"[{time.monotonic() - BEGAN:6.1f} s] {words}", flush=True)


def show(text: str) -> None:
    print("".join(f"    {line}\n" for line in text.rstrip().splitlines()), end="", flush=True)


def main() -> int:
    try:
        return real() if os.geteuid() == 0 else simulated()
    except KeyboardInterrupt as end:
        say("interrupted; nothing is left of the hosts")
        return end.status if isinstance(end, Ended) else 130


def real() -> int:
    say("two hosts with systemd, NetworkManager, firewalld and podman on this machine")
    with running_lab() as lab:
        cluster = Cluster(lab.new_hosts())
        try:
            _main_job(cluster)
        except (CommandFailed, NotUp, TimeoutError, AssertionError) as failure:
            _explain(cluster, failure)
            return 1
        say("tear-down")
    say('done: tokens, a crash, tokens again; nothing is left of the hosts. To play on: README, "real lab hosts"')
    return 0


def _main_job(cluster: Cluster) -> None:
    say("installed: strixd from this checkout; one cluster.toml and one cluster.key on both")
    install(cluster.hosts)
    cluster.lay()
    _bring_up(cluster)
    _serve(cluster)
    _crash(cluster)


def _explain(cluster: Cluster, failure: Exception) -> None:
    """What is gone with the hosts in a moment."""
    for host in cluster.hosts:
        show(f"{host.name}:\n" + host.attempt("bash", "-c", STATE).stdout)
    say(f"failed: {failure}")
    say("tear-down; it says above what each host was at. On a busy machine waits can be too short: make demo again")


def _versions(cluster: Cluster) -> None:
    for host in cluster.hosts:
        show(f"{host.name}:\n" + host.sh("strixd-cli version; systemctl --version | sed -n 1p; podman --version"))


def _bring_up(cluster: Cluster) -> None:
    say("systemctl enable --now strixd, on both")
    cluster.start()
    _versions(cluster)
    say("what it changes, from its journal:")
    for host in cluster.hosts:
        cluster.cli("wait", "ready", "--timeout", "170", host=host).check()
        show(
            f"{host.name}:\n"
            + host.sh("journalctl -u strixd -o cat --no-pager | grep -E '^(firewall|network|image|ray|vllm): '")
        )


def _serve(cluster: Cluster) -> None:
    say(f"halo1$ strixd-cli serve {MODEL}    (half a minute to two)")
    show(cluster.serve().stdout)
    say("halo1$ strixd-cli status  (ignore cmdline and memory: a demo host has no boot loader and no such limit)")
    show(cluster.cli("status").check().stdout)
    _answer(cluster)
    words = "journalctl -u strixd-vllm -o cat --no-pager | grep -o 'tensor_parallel_size=[0-9]*' | sort -u"
    parallel = cluster.head.sh(words)
    show(f"the server reports {parallel.strip()}")


def _answer(cluster: Cluster) -> None:
    say("a streamed completion from http://127.0.0.1:8000/v1/completions:")
    parts = pieces(cluster.head.run(*cluster.stream(12), timeout=120).stdout)
    show(f"{len(parts)} pieces (random weights, so the text is noise; it came through both hosts): {parts}")


def _crash(cluster: Cluster) -> None:
    pid = cluster.server_pid()
    say(f"halo1$ kill -KILL {pid}    (the process that answers; tokens again after half a minute to two)")
    cluster.kill_server()
    cluster.wait_for_tokens()
    cluster.cli("wait", "ready", "--timeout", "170").check()  # strixd has seen the end of it, too
    say("it answers again, with nobody having typed anything")
    say("halo1$ strixd-cli incidents 1")
    show(cluster.cli("incidents", "1").check().stdout)
    _answer(cluster)


def simulated() -> int:
    say("not root, so no real hosts: the same on a simulated node, ten times as fast as the clock")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "io.strixd")
        daemon = subprocess.Popen([sys.executable, "-m", "strixd", "--simulate", "--socket", path])
        try:
            return _tour(path)
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(10)


def _tour(path: str) -> int:
    while not Path(path).exists():
        time.sleep(0.1)
    before = (["wait", "ready", "--timeout", "60"], ["serve", MODEL], ["status"])
    after = (["wait", "ready", "--timeout", "60"], ["status"])
    if status := _commands(path, before):
        return status
    say("a fault, as from outside: kill vllm")
    with socket.socket(socket.AF_UNIX) as faults:
        faults.connect(f"{path}.faults")
        faults.sendall(b"kill vllm\n")
        faults.recv(100)
    time.sleep(1)
    return _commands(path, after)


def _commands(path: str, commands: Sequence[list[str]]) -> int:
    """Each in turn, until one fails; its exit status."""
    for words in commands:
        say("strixd-cli " + " ".join(words))
        cli = subprocess.run([sys.executable, "-m", "strixd.cli", "--socket", path, *words], check=False)
        if cli.returncode:
            return cli.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
