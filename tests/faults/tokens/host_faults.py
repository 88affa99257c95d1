"""What may happen to the hosts: their power, their cable, the services beneath strixd, strixd itself, their disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tests.e2e.cluster import Cluster
from tests.faults.tokens.fault import Act, Fault
from tests.faults.tokens.harm import Said, everywhere, no_loop, run, signalled, then, waiting
from tests.faults.tokens.seeds import drawing
from tests.lab.host import Host

FREEZE = CABLE_LONG = 60.0  # seconds
FOR_EVER = 180.0  # seconds that stand for it: Ray and vLLM have all given up by then
KILLS = 4
KILLING = 20.0  # seconds over which they are spread
KILLED = (r"systemd: (Failed to start )?strixd.*",)  # the second while it was starting
BUS = (r"(systemd|systemd-\w+|dbus-\w+|polkitd|NetworkManager|firewalld|strixd|login|busctl|podman).*",)
FULL = (r".*No space left on device.*", r"(systemd|systemd-\w+|strixd|rsyslogd|podman|conmon).*")
FILL = """\
fallocate -l $(df --output=avail -B1 /var | tail -1) /var/filler 2>/dev/null || true
dd if=/dev/zero of=/var/filler2 bs=1M 2>/dev/null || dd if=/dev/zero of=/var/filler3 bs=4k 2>/dev/null || true
"""
GONE = r"carrier|has not joined|does not answer|Ray|strixd-vllm.service"


def on(place: int, act: Callable[[Host], None]) -> Act:
    return lambda cluster: act(cluster.hosts[place])


def off_and_on(place: int) -> Act:
    """Power loss, and power again after a while."""
    return then(on(place, Host.kill), waiting(5), on(place, Host.boot))


def frozen(place: int) -> Act:
    return then(on(place, Host.freeze), waiting(FREEZE), on(place, Host.thaw))


def cable_out(seconds: float) -> Act:
    return then(on(1, Host.pull_cable), waiting(seconds), on(1, Host.push_cable))


def haunted(fault: Fault) -> Fault:
    """Meanwhile strixd is killed again and again, on either host, at moments that are drawn."""
    name = f"{fault.name}, strixd killed"
    moments = drawing(name)

    def kill_strixd(cluster: Cluster) -> None:
        for _ in range(KILLS):
            time.sleep(moments.uniform(0, 2 * KILLING / KILLS))
            host = moments.choice(cluster.hosts)
            if host.is_up():
                host.attempt("systemctl", "kill", "-s", "KILL", "strixd.service")

    def harm(cluster: Cluster) -> None:
        with ThreadPoolExecutor(1) as beside:
            killing = beside.submit(kill_strixd, cluster)
            fault.harm(cluster)
            killing.result()

    return replace(fault, name=name, harm=harm, expected=(*fault.expected, *KILLED))


POWER = (
    Fault("worker rebooted", on(1, Host.reboot), GONE),
    Fault("head rebooted", on(0, Host.reboot)),
    Fault("worker's power lost", off_and_on(1), GONE),
    Fault("head's power lost", off_and_on(0)),
    Fault("worker frozen for 60 s", frozen(1), GONE),
    Fault("head frozen for 60 s", frozen(0)),
)
CABLE = (
    Fault("cable out for 5 s", cable_out(5), steady=True),
    Fault("cable out for 60 s", cable_out(CABLE_LONG), GONE),
    Fault(
        "cable out for ever",
        on(1, Host.pull_cable),
        GONE,
        meanwhile=no_loop(then(Said(r"carrier|halo2"), waiting(FOR_EVER), Said(r"carrier|halo2")), at_most=2),
        mend=on(1, Host.push_cable),
    ),
)
SERVICES = (
    Fault("NetworkManager restarted", everywhere("systemctl restart NetworkManager"), steady=True),
    Fault("firewalld restarted", everywhere("systemctl restart firewalld"), steady=True),
    Fault("the system bus restarted", everywhere("systemctl restart dbus"), steady=True, expected=BUS),
    Fault("podman's service restarted", everywhere("systemctl restart podman.socket podman.service"), steady=True),
    Fault("strixd killed", everywhere("systemctl kill -s KILL strixd"), steady=True, expected=KILLED),
)
DISK = (
    Fault("disk full", run(0, FILL), mend=then(waiting(20), run(0, "rm -f /var/filler*")), steady=True, expected=FULL),
    Fault(
        "server killed with a full disk",
        then(run(0, FILL), signalled(0, "server")),
        r"killed by signal 9",
        mend=then(waiting(30), run(0, "rm -f /var/filler*")),
        expected=FULL,
    ),
)
HAUNTED = tuple(
    haunted(fault)
    for fault in (*SERVICES[:4], POWER[0], POWER[1], CABLE[0], CABLE[1], Fault("server killed", signalled(0, "server")))
)
FAULTS = (*POWER, *CABLE, *SERVICES, *DISK, *HAUNTED)
