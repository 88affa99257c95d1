"""The first cluster.toml: what is asked, which card is meant, and that what is written can be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_process import cli

from strixd import config
from strixd.cli.cards import cards, fitting
from strixd.cli.init import Ask, answers, compose
from strixd.cli.parse import parse
from strixd.errors import Refused
from tests.laid_tree import lay

DRIVERS = "\n".join(f"sys/drivers/{name}/" for name in ("ice", "igc", "thunderbolt-net"))


def card(interface: str, driver: str, mac: str = "02:00:00:00:00:01", more: str = "") -> str:
    lines = (f"device/driver -> sys/drivers/{driver}", f"address: {mac}", more)
    return "\n".join(f"sys/class/net/{interface}/{line}" for line in lines if line)


def host(root: Path, *found: str) -> Path:
    lay(root, "\n".join((DRIVERS, "sys/class/net/lo/mtu: 65536", *found)))
    (root / "proc/net").mkdir(parents=True)
    (root / "proc/net/route").write_text("Iface\tDestination\tGateway\neno1\t00000000\t0102A8C0\n")
    return root


E810 = card("enp194s0np0", "ice", more="carrier: 1\nsys/class/net/enp194s0np0/speed: 100000")
SECOND = card("enp194s0np1", "ice", more="carrier: 0")
WAY_IN = card("eno1", "igc", more="carrier: 1")
THUNDERBOLT = card("thunderbolt0", "thunderbolt-net", more="carrier: 1")


class Person:
    """Answers some questions; the others with what is offered."""

    def __init__(self, **said: str) -> None:
        self.said = said
        self.heard: list[str] = []

    def __call__(self, question: str, otherwise: str) -> str:
        self.heard.append(question)
        return next((answer for word, answer in self.said.items() if word in question), otherwise)


def written(line: str, root: Path, ask: Ask) -> config.Config:
    said = answers(parse(["init", *line.split()]), cards(root), ask, "halo1")
    return config.parse(compose(said), "made").config


def test_asked_for_everything(tmp_path: Path) -> None:
    person = Person(cluster="two", names="halo1 halo2")
    made = written("", host(tmp_path, E810, WAY_IN), person)
    assert len(person.heard) == 4
    assert made.cluster.name == "two"
    assert [(node.name, node.role, node.address, node.driver) for node in made.nodes] == [
        ("halo1", "head", "192.168.100.1/30", "ice"),
        ("halo2", "worker", "192.168.100.2/30", "ice"),
    ]


def test_options_leave_nothing_to_ask(tmp_path: Path) -> None:
    person = Person()
    line = "--cluster x --nodes a,b,c --card enp194s0np0 --network 10.9.0.0/24"
    made = written(line, host(tmp_path, E810, SECOND, WAY_IN), person)
    assert person.heard == []
    assert [(node.address, node.interface) for node in made.nodes] == [
        (f"10.9.0.{number}/24", "enp194s0np0") for number in (1, 2, 3)
    ]


@pytest.mark.parametrize(("count", "prefix"), [(2, 30), (3, 29), (6, 29), (7, 28), (64, 25)])
def test_the_network_is_as_large_as_it_must_be(tmp_path: Path, count: int, prefix: int) -> None:
    names = ",".join(f"n{number}" for number in range(count))
    made = written(f"--nodes {names}", host(tmp_path, E810), Person())
    assert {node.ip.network.prefixlen for node in made.nodes} == {prefix}


CARDS = {
    "one with a known driver": ((E810, WAY_IN), "enp194s0np0"),
    "of two the one with a carrier": ((E810, SECOND), "enp194s0np0"),
    "two with a carrier": ((E810, THUNDERBOLT), None),
    "only the way in": ((WAY_IN,), None),
    "none": ((), None),
}


@pytest.mark.parametrize("case", CARDS)
def test_the_card_that_is_meant(tmp_path: Path, case: str) -> None:
    found, wanted = CARDS[case]
    chosen = fitting(cards(host(tmp_path, *found)))
    assert (chosen.interface if chosen else None) == wanted


def test_a_card_is_told_with_what_speaks_for_it(tmp_path: Path) -> None:
    assert [str(each) for each in cards(host(tmp_path, E810, SECOND, WAY_IN))] == [
        "enp194s0np0 (ice, 02:00:00:00:00:01, 100 Gb/s)",
        "enp194s0np1 (ice, 02:00:00:00:00:01, no carrier)",
        "eno1 (igc, 02:00:00:00:00:01, the way in: its default route)",
    ]


WRONG = {
    "--nodes a": "a cluster has 2 nodes at least, and 1 is named",
    "--nodes a,b --card eth9": 'there is no card "eth9" here. There are: enp194s0np0',
    "--nodes a,b --card=": "it is not clear which card is the link's. There are: enp194s0np0 (ice",
    "--nodes a,b --card enp194s0np0 --network 10.0.0.0/31": "10.0.0.0/31 has no room for 2 nodes",
    "--nodes a,b --card enp194s0np0 --network home": '"home" is no network',
}


@pytest.mark.parametrize("line", WRONG)
def test_what_makes_no_sense_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(Refused, match=re.escape(WRONG[line])):
        written(line, host(tmp_path, E810, THUNDERBOLT), Person())


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    """This machine's own cards are looked at; which they are does not matter."""
    file = tmp_path / "cluster.toml"
    interface = next(iter(cards()), None)
    if interface is None:
        done = cli("init", "--nodes", "a,b", "--file", str(file))
        assert (done.returncode, file.exists()) == (2, False)
        return
    line = ("init", "--nodes", "a,b", "--card", interface.interface, "--file", str(file))
    done = cli(*line)
    assert (done.returncode, done.stderr) == (0, "")
    assert file.stat().st_mode & 0o777 == 0o644
    before = file.read_text()
    assert before in done.stdout
    again = cli(*line)
    assert (again.returncode, file.read_text()) == (2, before)
    assert "is there already" in again.stderr
