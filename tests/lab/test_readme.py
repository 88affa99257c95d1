"""README's way from packages to tokens and back, line by line: what a lab host cannot do has a stand-in, named here."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.e2e.cluster import MODEL
from tests.lab.cluster import FILE, KEY, cluster_toml
from tests.lab.fixtures import Pair
from tests.lab.host import Host
from tests.lab.install import install
from tests.lab.judge import GOING_DOWN, Judge
from tests.lab.layout import PROJECT

pytestmark = pytest.mark.lab

README = (PROJECT / "README.md").read_text().replace("\\\n", " ")
NAMED = "Qwen/Qwen3-235B-A22B-GPTQ-Int4"


def lines(begin: str, end: str) -> list[str]:
    """The commands between two texts, without their comments."""
    part = README.partition(begin)[2].partition(end)[0]
    return [re.sub(r" +# .*", "", line).strip() for line in re.findall(r"^    (\S.*)$", part, re.M)]


INSTALL = lines("## Install, start, serve", "The smallest file")
ERASE = lines("**To be rid of strixd**", "## How it is made")
STEPS = (
    *("make rpm", "dnf install", "strixd-cli init", "strixd-cli key new", "scp", "ssh", "strixd-cli config check"),
    *("systemctl enable", "strixd-cli status", "strixd-cli doctor", "strixd-cli serve", "curl"),
)
"""How the lines of INSTALL begin."""


@pytest.fixture(scope="module")
def way() -> dict[str, str]:
    """Each line by how it begins."""
    found = dict(zip(STEPS, INSTALL, strict=True))
    assert [line for begin, line in found.items() if not line.startswith(begin)] == []
    return found


def test_each_pattern_for_dnf_is_one_package(way: dict[str, str], packages: Path) -> None:
    names = [file.name for file in packages.glob("*.rpm")]
    for pattern in way["dnf install"].split()[2:]:
        assert len([name for name in names if fnmatch(f"./{name}", pattern)]) == 1, pattern


def test_from_the_packages_to_tokens(way: dict[str, str], bare_pair: Pair, packages: Path) -> None:
    head, worker = bare_pair
    install(bare_pair, packages)  # make rpm, dnf
    head.write(FILE, cluster_toml(bare_pair))  # init, which takes no card that has no device behind it, as these
    head.sh(way["strixd-cli key new"])
    worker.write(FILE, head.read(FILE))  # scp
    worker.run("bash", "-c", way["ssh"].partition("| ")[2], stdin=head.read(KEY))
    for host in bare_pair:
        for begin in ("strixd-cli config check", "systemctl enable", "strixd-cli status"):
            host.sh(way[begin])
    assert "to be tried by hand" in head.attempt(*way["strixd-cli doctor"].split()).stdout
    head.sh(way["strixd-cli serve"].replace(NAMED, MODEL), timeout=300)
    assert '"choices"' in head.sh(way["curl"].replace(NAMED, MODEL))


def test_and_back(bare_pair: Pair, judge: Judge) -> None:
    judge.expect(*GOING_DOWN)
    stop, undo, disable, erase = ERASE
    assert stop == "strixd-cli stop"
    # The manual's, which tests/rpm/test_install.py goes by.
    assert erase in (PROJECT / "packaging/strixd.8").read_text().splitlines()
    bare_pair[0].sh(stop)
    for host in bare_pair:
        host.sh(undo)
        host.sh(disable)
        assert left(host) == ("", "", "disabled")


def left(host: Host) -> tuple[str, str, str]:
    """The fence, the profile of the link, and whether it would start again."""
    fence = host.sh("firewall-cmd --get-policies | grep -o strixd-fence || true")
    profile = host.sh("nmcli -g NAME connection show | grep strixd || true")
    return fence.strip(), profile.strip(), host.attempt("systemctl", "is-enabled", "strixd.service").stdout.strip()
