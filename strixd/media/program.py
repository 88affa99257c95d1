"""The command line of strixd-media → one function of this package → exit status, as in strixd-cli."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from strixd import __version__
from strixd.config import ConfigFile, read
from strixd.errors import Refused, Rejected, StrixdError
from strixd.media.build import Order, build
from strixd.media.explain import AGAIN, explain
from strixd.media.progress import Progress
from strixd.media.render import chosen, kickstart
from strixd.media.templates import load

INTERRUPTED = 130
NOBODY_READS = 141  # as a process ends that SIGPIPE kills
_VALUABLE = "The cluster key is on this medium: it is now as valuable as root on every node. Lock it away.\n"
_WAITS = "The cluster key is not on it: each node waits for `strixd-cli key import`.\n"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(message, hint=f"{self.prog} --help")


def main(arguments: list[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, _end)
    try:
        options = parser().parse_args(arguments)
        _COMMANDS[options.command](options)
        sys.stdout.flush()
    except StrixdError as error:
        return _complain(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except OSError as error:  # a full disk, wherever it is noticed
        return _complain(Rejected(f"Cannot go on: {error.strerror}{f': {error.filename}' if error.filename else ''}"))
    return 0


def _end(_signal: int, _frame: FrameType | None) -> None:
    """As Ctrl-C, so that everything under way is cleared."""
    raise KeyboardInterrupt


def _complain(error: StrixdError) -> int:
    """Complaints about a file stand alone, as a compiler's do, so that an editor can jump to them."""
    text = str(error) if error.code == "ConfigError" else f"strixd-media: {error}"
    hint = "".join(f"\n  {line}" for line in error.hint.splitlines())
    sys.stderr.write(f"{text}{hint}\n")
    return error.exit_status


def _kickstart(options: argparse.Namespace) -> None:
    sys.stdout.write(_text(_file(options), options.node))


def _explain(options: argparse.Namespace) -> None:
    file = _file(options)
    sys.stdout.write(explain(file, chosen(file, options.node)))


def _build(options: argparse.Namespace) -> None:
    file = _file(options)
    order = Order(
        file=file,
        kickstart=_text(file, options.node),
        out=options.out,
        iso=options.iso,
        rpms=options.rpms,
        image=options.image,
        model=options.model,
        key=options.with_cluster_key,
    )
    with Progress() as progress:
        found = build(order, progress)
    sys.stdout.write(f"{found.words}\n" + (f"  {found.hint}\n" if found.hint else ""))
    sys.stdout.write(_VALUABLE if order.key else _WAITS)
    sys.stdout.write(f"{AGAIN[0].upper()}{AGAIN[1:]}.\n")


def _file(options: argparse.Namespace) -> ConfigFile:
    return read(options.cluster)


def _text(file: ConfigFile, node: str | None) -> str:
    return kickstart(file, chosen(file, node), load())


_COMMANDS = {"kickstart": _kickstart, "explain": _explain, "build": _build}


def parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="strixd-media", description="Kickstart and installation medium of a strixd cluster.")
    parser.add_argument("--version", action="version", version=f"strixd-media {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    one = commands.add_parser("kickstart", help="the kickstart of one node, or one that finds its node, to stdout")
    which = one.add_mutually_exclusive_group(required=True)
    which.add_argument("--node", metavar="NAME", help="of this node")
    which.add_argument("--all", action="store_true", help="of all: the machine finds its node by MAC or serial number")
    words = commands.add_parser("explain", help="what each node will get and what will be erased, in words")
    words.add_argument("--node", metavar="NAME", help="of this node alone")
    medium = commands.add_parser("build", help="a medium that installs the nodes")
    _medium(medium)
    for command in (one, words, medium):
        command.add_argument("--cluster", metavar="FILE", type=Path, required=True, help="the cluster.toml")
    return parser


def _medium(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--node", metavar="NAME", help="for this node alone")
    for name, value, about in _PARTS:
        parser.add_argument(name, metavar=value, type=Path, help=about)
    key = f"the cluster key too ({_KEY} unless named): the medium is then as valuable as root"
    parser.add_argument("--with-cluster-key", metavar="FILE", type=Path, nargs="?", const=_KEY, help=key)
    about = "NAME.iso, or NAME.img for a FAT volume; must not be there"
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help=about)


_KEY = Path("/etc/strixd/cluster.key")
_PARTS = (
    ("--iso", "FEDORA.iso", "put everything into a copy of Fedora's own image, which then boots unattended"),
    ("--rpms", "DIR", "strixd's packages, and any others that a node shall not have to fetch"),
    ("--image", "ARCHIVE", "the container image, as podman save --format oci-archive writes it"),
    ("--model", "DIR", "the weights of a model"),
)
