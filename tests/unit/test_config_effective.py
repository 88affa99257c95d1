"""The effective settings, their origin and their hash."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from strixd import config
from strixd.config import Config, ConfigFile

CASES = Path(__file__).parents[1] / "cases" / "config"
MINIMAL = (CASES / "minimal.toml").read_text()
FULL = (CASES / "full.toml").read_text()
SPARED = MINIMAL.replace("interface = ", 'spare-mac = "02-00-00-00-00-AA"\ninterface = ', 1)
SPARED = SPARED.replace('role = "worker"', 'role = "worker"\nspare-driver = "thunderbolt-net"')
RICH = f"""{MINIMAL}
[kernel]
arguments = [
  "quiet", "x={"y" * 80}",
]
[image.environment]
A = "ü \\\\ \\" 😀 # no comment"
A_LONG_NAME_{"X" * 80} = ""
[model]
arguments = ["{{\\"a\\": 1}}"]
"""


def origins(text: str) -> dict[str, tuple[object, str]]:
    file = config.parse(text, "/etc/strixd/cluster.toml")
    return {setting.key: (setting.value, setting.origin) for setting in config.settings(file)}


def test_where_each_value_comes_from() -> None:
    found = origins(RICH)
    assert found["cluster.name"] == ("halo", "cluster.toml:2")
    assert found["cluster.ray-port"] == (6379, "default")
    assert found["node[2].role"] == ("worker", "cluster.toml:12")
    assert found["kernel.arguments"][1] == "cluster.toml:17"
    assert found["image.environment"][1] == "cluster.toml:20"
    assert "node[1].mac" not in found


def test_derived_values_say_so() -> None:
    assert origins(MINIMAL)["model.tensor-parallel"] == (2, "default: 0, the number of nodes")
    written = MINIMAL + "[model]\ntensor-parallel = 0\n"
    assert origins(written)["model.tensor-parallel"] == (2, "cluster.toml:16: 0, the number of nodes")
    one = MINIMAL + "[model]\ntensor-parallel = 1\n"
    assert origins(one)["model.tensor-parallel"] == (1, "cluster.toml:16")


@pytest.mark.parametrize("text", [MINIMAL, RICH, SPARED, FULL], ids=["minimal", "rich", "spared", "full"])
def test_what_is_shown_can_be_pasted_back(text: str) -> None:
    file = config.parse(text, "cluster.toml")
    shown = config.render(config.settings(file))
    model = replace(file.config.model, tensor_parallel=file.config.tensor_parallel)
    assert config.parse(shown, "shown").config == replace(file.config, model=model)


def test_every_line_shown_names_its_origin() -> None:
    file = config.read(CASES / "full.toml")
    lines = config.render(config.settings(file)).splitlines()
    values = [line for line in lines if " = " in line]
    assert len(values) == len(config.settings(file)) > 35
    assert all(re.search(r"  # (full\.toml:\d+|default)", line) for line in values)
    assert lines[:2] == ["[cluster]", values[0]]
    assert lines.count("[[node]]") == 3


def hash_of(text: str) -> str:
    return config.settings_hash(config.parse(text, "f").config)


def edited(old: str, new: str) -> str:
    assert old in MINIMAL
    return MINIMAL.replace(old, new)


@pytest.mark.parametrize(
    "text",
    [
        edited('"halo"', '"other"'),
        edited('"halo"', '"halo"\nray-port = 6380'),
        edited('"halo2"', '"halo3"'),
        edited("192.168.100.2", "192.168.100.3").replace("/30", "/29"),
        edited('"worker"', '"worker"\ngpus = 2'),
        MINIMAL + "[model]\nport = 8001\n",
        MINIMAL + "[model]\neager = false\n",
        MINIMAL + "[model]\ntensor-parallel = 1\n",
        MINIMAL + '[model]\narguments = ["--x"]\n',
        MINIMAL + '[image]\nreference = "localhost/x"\n',
        MINIMAL + '[image.environment]\nA = "1"\n',
    ],
)
def test_what_must_agree_changes_the_hash(text: str) -> None:
    assert hash_of(text) != hash_of(MINIMAL)


@pytest.mark.parametrize(
    "text",
    [
        MINIMAL + "[model]\ntensor-parallel = 2\nport = 8000\n",
        MINIMAL + '[model]\nlisten = "0.0.0.0"\nmemory-reserve = "4GiB"\nfolder = "/srv"\n',
        MINIMAL + '[metrics]\nlisten = "127.0.0.1:9101"\n',
        MINIMAL + '[kernel]\ngtt = "96GiB"\nreboot = "auto"\n',
        MINIMAL + '[fabric]\nfirewall = false\nmanagement = ["eno1"]\n',
        MINIMAL + '[install]\ntime-zone = "Europe/Berlin"\n',
        edited('"worker"', '"worker"\nserial = "A1"\ndisk = "nvme-X_1234"'),
        edited('"enp194s0np0"', '"enp1s0"'),
        SPARED,
    ],
)
def test_what_each_host_may_do_by_itself_does_not(text: str) -> None:
    assert hash_of(text) == hash_of(MINIMAL)


def test_the_order_of_nodes_and_variables_is_no_difference() -> None:
    file: ConfigFile = config.parse(MINIMAL + '[image.environment]\nA = "1"\nB = "2"\n', "f")
    image = replace(file.config.image, environment={"B": "2", "A": "1"})
    turned: Config = replace(file.config, nodes=file.config.nodes[::-1], image=image)
    assert config.settings_hash(turned) == config.settings_hash(file.config)
    assert re.fullmatch("[0-9a-f]{64}", config.settings_hash(turned))
