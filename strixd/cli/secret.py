"""key new and token set: secrets into files of root's own, whole or not at all, and never onto a screen."""

from __future__ import annotations

import getpass
import os
import re
import sys
from pathlib import Path

from strixd.cli.parse import Asked
from strixd.cli.terminal import say
from strixd.cli.whole import create, explained, replace
from strixd.errors import Refused

KEY_FILE = "/etc/strixd/cluster.key"
TOKEN_FILE = "/etc/strixd/hf-token"
_KEY = re.compile("[0-9a-f]{64}")  # as key_new() makes it
_TOKEN = re.compile("hf_[A-Za-z0-9_]{8,200}")


def key_new(asked: Asked) -> int:
    path = Path(asked.given.get("--file", KEY_FILE))
    secret = os.urandom(32).hex() + "\n"
    with explained(path, "strixd-cli key new"):
        _put(path, secret, asked, "strixd-cli key new --replace makes another; every node then needs the new one")
    say(f"a new cluster key is in {path}")
    say("copy it to the same place on every other node (mode 0600): nodes with different keys do not join")
    return 0


def key_import(asked: Asked) -> int:
    """The key of another node, from standard input. The same one again is no change."""
    path = Path(asked.given.get("--file", KEY_FILE))
    key = (_typed("Cluster key (not shown): ") if sys.stdin.isatty() else _piped()).strip()
    if not _KEY.fullmatch(key):
        hint = "on a node that has it: cat /etc/strixd/cluster.key"
        raise Refused("this is no cluster key: it has 64 of 0-9 and a-f, and nothing else", hint=hint)
    with explained(path, "strixd-cli key import"):
        if not _holds(path, key):
            _put(path, f"{key}\n", asked, "strixd-cli key import --replace puts this one in its place")
    say(f"the cluster key is in {path}")
    return 0


def _holds(path: Path, key: str) -> bool:
    return path.is_file() and path.read_text(encoding="ascii", errors="replace").strip() == key


def _put(path: Path, secret: str, asked: Asked, otherwise: str) -> None:
    if asked.has("--replace"):
        replace(path, secret)
    else:
        create(path, secret, taken=otherwise)


def token_set(asked: Asked) -> int:
    path = Path(asked.given.get("--file", TOKEN_FILE))
    token = _typed("Hugging Face token (not shown): ") if sys.stdin.isatty() else _piped()
    if not _TOKEN.fullmatch(token.strip()):
        raise Refused(
            "this is no Hugging Face token: it begins with hf_ and has letters and digits only",
            hint="https://huggingface.co/settings/tokens shows yours",
        )
    with explained(path, "strixd-cli token set"):
        replace(path, token.strip() + "\n")
    say(f"the token is in {path}; containers get it as a file at their next start")
    return 0


def _typed(prompt: str) -> str:
    try:
        return getpass.getpass(prompt)
    except (EOFError, UnicodeDecodeError):
        return ""


def _piped() -> str:
    try:
        return sys.stdin.read(4096)
    except UnicodeDecodeError:
        return ""
