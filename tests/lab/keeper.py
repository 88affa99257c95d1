"""One process per powered-on host: plugs its network cards, runs systemd-nspawn, and boots it again when it reboots.

`python -m tests.lab.keeper NAME`. It outlives the command that started it, so that a host can be left running; it ends
when its host has powered off or been killed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lab import network, pidfile
from tests.lab.layout import FILES, PREFIX, Seat, cgroup, cgroup_mount
from tests.lab.state import State, load

REBOOT = 133  # systemd-nspawn's exit status when the host asked for one


def main(name: str) -> int:
    state = load()
    seat = next(seat for seat in state.seats if seat.name == name)
    while _one_boot(seat, state) == REBOOT:
        pass
    return 0


def _one_boot(seat: Seat, state: State) -> int:
    _make_cgroup(seat)
    network.plug_host(seat, spare=state.spare)
    network.settle_cables(state.seats)
    process = subprocess.Popen(_command(seat, state.binds), stdin=subprocess.DEVNULL)
    pidfile.write(_pid_file(seat), process.pid)
    status = process.wait()
    _pid_file(seat).unlink(missing_ok=True)
    network.unplug_host(seat)
    network.settle_cables(state.seats)
    sweep_cgroup(seat.cgroup)
    return status


def _command(seat: Seat, binds: tuple[str, ...]) -> list[str | Path]:
    apart: list[str | Path] = ["unshare", "--mount", "--propagation", "private", "bash", FILES / "boot.sh"]
    disk = [f"--directory={seat.root}", f"--bind={(seat.folder / 'containers').resolve()}:/var/lib/containers"]
    network_card = f"--network-namespace-path=/run/netns/{seat.netns}"
    return [*apart, seat.name, f"{PREFIX}/{seat.name}", *disk, network_card, *(f"--bind-ro={bind}" for bind in binds)]


def _make_cgroup(seat: Seat) -> None:
    """The host's cgroup, with the controllers that the machine can give (none on a hybrid one)."""
    seat.cgroup.mkdir(parents=True, exist_ok=True)
    (seat.cgroup / "cgroup.freeze").write_text("0")
    available = (cgroup_mount() / "cgroup.controllers").read_text().split()
    for parent in (cgroup_mount(), cgroup()):
        for controller in available:
            try:
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")
            except OSError:
                continue


def sweep_cgroup(folder: Path) -> None:
    """Remove what is empty below a cgroup, deepest first, and leave what is not."""
    for child in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        try:
            child.rmdir()
        except OSError:
            continue


def _pid_file(seat: Seat) -> Path:
    return seat.folder / "nspawn.pid"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
