"""A lab to try things in: `python -m tests.lab up`, `install`, `lay`, `exec HOST COMMAND...`, `down`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from tests.lab import clean, registry
from tests.lab.cache import say
from tests.lab.cluster import FILE, KEY, lay_cluster
from tests.lab.host import NotUp
from tests.lab.install import install
from tests.lab.lab import NAMES, Ended, LabBusy, kept_lab, start_kept_lab, sweep_leftovers
from tests.lab.shell import CommandFailed


def main() -> int:
    options = _parser().parse_args()
    if os.geteuid() != 0:
        say("this needs root: it boots hosts, with namespaces, mounts and network cards of their own")
        return 1
    try:
        verb: Callable[[argparse.Namespace], int] = options.verb
        return verb(options)
    except KeyboardInterrupt as end:
        return end.status if isinstance(end, Ended) else 130
    except (LabBusy, NotUp, LookupError, CommandFailed, TimeoutError) as failure:
        say(str(failure))
        return 1


def _up(options: argparse.Namespace) -> int:
    lab = start_kept_lab(tuple(options.names) or NAMES)
    for host in lab.hosts:
        say(f"{host.name}: fabric {host.seat.fabric_mac}, management {host.seat.management_address}")
    say(f"image: {registry.REFERENCE}")
    return 0


def _down(_options: argparse.Namespace) -> int:
    clean.sweep()
    return 0


def _leftovers(_options: argparse.Namespace) -> int:
    found = clean.leftovers()
    for line in found:
        say(line)
    return 1 if found else 0


def _clean(_options: argparse.Namespace) -> int:
    sweep_leftovers()
    return 0


def _install(_options: argparse.Namespace) -> int:
    install(kept_lab().hosts)
    return 0


def _lay(_options: argparse.Namespace) -> int:
    lay_cluster(kept_lab().hosts)
    say(f"{FILE} and {KEY} are on each host; next, on each: systemctl enable --now strixd")
    return 0


def _exec(options: argparse.Namespace) -> int:
    command = kept_lab().host(options.host).command(*(options.command or ["bash", "-i"]))
    os.execvp(command[0], command)


def _power(options: argparse.Namespace) -> int:
    getattr(kept_lab().host(options.host), options.action)()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    up = verbs.add_parser("up", help="boot hosts (default: halo1 halo2) and leave them running")
    up.add_argument("names", nargs="*")
    up.set_defaults(verb=_up)
    command = verbs.add_parser("exec", help="run a command in a host")
    command.add_argument("host")
    command.add_argument("command", nargs=argparse.REMAINDER)
    command.set_defaults(verb=_exec)
    power = verbs.add_parser("power", help="boot, off, kill, reboot, freeze, thaw, pull_cable or push_cable a host")
    power.add_argument("host")
    actions = ("boot", "off", "kill", "reboot", "freeze", "thaw", "pull_cable", "push_cable")
    power.add_argument("action", choices=actions)
    power.set_defaults(verb=_power)
    for name, verb, words in (
        ("install", _install, "install this checkout into the running hosts"),
        ("lay", _lay, "give the running hosts a cluster.toml and a key for the model `tiny`"),
        ("down", _down, "take the lab away, whoever started it"),
        ("leftovers", _leftovers, "say what of a lab is on this machine; status 1 if there is something"),
        ("clean", _clean, "clear what a killed run left behind"),
    ):
        verbs.add_parser(name, help=words).set_defaults(verb=verb)
    return parser


if __name__ == "__main__":
    sys.exit(main())
