"""What one value may be, written into a file that is good otherwise; and the numbers that follow from sizes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strixd import config
from strixd.config import checks, machine
from strixd.decode import Check
from strixd.errors import ConfigError
from tests.cluster_file import cluster_file

CASES = Path(__file__).parents[1] / "cases" / "config"
CHECKS = [
    "size",
    "host_name",
    "interface",
    "mac",
    "node_address",
    "ip_address",
    "socket_address",
    "image_reference",
    "absolute_path",
    "plain_text",
    "kernel_argument",
    "vllm_argument",
    "variable",
]
MACHINE_CHECKS = ["ssh_key", "time_zone", "repository", "serial", "disk"]

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAINh0ZXN0dGVzdHRlc3R0ZXN0dGVzdHRlc3R0ZXN0dGVz"
GOOD = {
    "cluster.name": ['"a"', '"halo-2"', f'"{"a" * 32}"'],
    "cluster.ray-port": ["1", "65535"],
    "fabric.kind": ['"auto"', '"roce"', '"infiniband"', '"thunderbolt"', '"ethernet"'],
    "fabric.mtu": ["1280", "65535"],
    "fabric.dscp": ["0", "63"],
    "fabric.management": ['["eno1", "wlp1s0.5"]', f'["{"x" * 15}"]'],
    "kernel.gtt": ['"1MiB"', '"96GiB"', '"1TiB"'],
    "kernel.iommu": ['"off"', '"leave"'],
    "kernel.arguments": ['["quiet", "pci=noaer", "console=ttyS0,115200", "iommu.passthrough=1"]'],
    "image.reference": [
        '"localhost/x"',
        '"quay.io:443/a/b_c.d--e:v1.0_Z"',
        f'"ghcr.io/a/b@sha256:{"0" * 64}"',
        '"a:b"',
    ],
    "image.devices": ['["/dev/kfd"]', "[]"],
    "image.environment": ['{ A = "", _b1 = "x y %h" }'],
    "model.listen": ['"0.0.0.0"', '"::"', '"10.1.2.3"'],
    "model.arguments": ['["--max-model-len=4096", "--foo", "{\\"a b\\": 1}", "--portable"]'],
    "model.memory-reserve": ['"512MiB"'],
    "model.folder": ['"/srv/models/"'],
    "model.tensor-parallel": ["0", "1", "2"],
    "metrics.listen": ['""', '"127.0.0.1:9101"', '"[::1]:9101"'],
    "install.ssh-keys": ["[]", f'["ssh-ed25519 {KEY}", "ssh-ed25519 {KEY} me @ the laptop"]'],
    "install.time-zone": ['"Etc/UTC"', '"Europe/Berlin"', '"America/Argentina/Buenos_Aires"', '"Etc/GMT+3"'],
    "install.keyboard": ['"de"', '"us-intl"'],
    "install.repository": ['""', '"https://mirror.example:8443/fedora/$releasever/os/"', '"http://[fd00::1]/x"'],
    "node.serial": ['"PF4XYZ01"', '"5CD 123/A-7"', '"1"'],
    "node.disk": ['"nvme-WD_BLACK_SN850X_4TB_24123A800001"', '"wwn-0x5002538f00000000"', '"scsi-0QEMU_HARDDISK:1"'],
    "node.name": ['"halo-1.lan"', '"1a"', f'"{"a" * 63}"'],
    "node.address": ['"192.168.100.1/30"'],
    "node.gpus": ["1", "8"],
}
BAD = {
    "cluster.name": ['""', '"Halo"', '"a b"', '"a\\n"', f'"{"a" * 33}"'],
    "cluster.ray-port": ["0", "65536", "-1", "true", f"0x{'f' * 5000}"],
    "fabric.mtu": ["1279", "65536", '"9000"'],
    "fabric.dscp": ["-1", "64"],
    "fabric.management": ['"eno1"', '["a b"]', '["a/b"]', f'["{"x" * 16}"]', '["lo"]', '["."]', '[""]', '["a\\u0000"]'],
    "kernel.gtt": ['"124"', '"124GB"', '"124 GiB"', '"0GiB"', '"-1GiB"', '"1.5GiB"', '"１GiB"', '""', '"4KiB"', "124"],
    "kernel.iommu": ['"on"', "true"],
    "kernel.arguments": [
        '["iommu=pt"]',
        '["amd_iommu=off"]',
        '["amd-iommu=off"]',
        '["ttm.pages-limit=1"]',
        '["amdgpu.gttsize=1"]',
        '["pcie_aspm=off"]',
        '["pci=noaer,realloc=on"]',
        '["--"]',
        '[""]',
        '["=x"]',
        '["a\\tb"]',
        '["a=\'\\"\'"]',
    ],
    "image.reference": ['""', '"docker://a/b"', '"a b"', '"Quay.io/A/b"', '"a@sha256:12"', '"a:"', '"/a"', '"-a"'],
    "image.devices": ['["dev/kfd"]', '["/dev/../etc"]', '["/dev/a:/dev/b"]', '["/dev/a b"]', '["/"]', '"/dev/kfd"'],
    "image.environment": [
        '{ "1A" = "" }',
        '{ "A=B" = "" }',
        '{ HF_TOKEN = "hf_x" }',
        '{ HF_HOME = "/x" }',
        '{ VLLM_HOST_IP = "10.0.0.1" }',
        '{ A = "x\\ny" }',
        "{ A = 1 }",
    ],
    "model.listen": ['""', '"localhost"', '"127.0.0.1:80"', '"fe80::1%eth0"', '"1.2.3"'],
    "model.arguments": [
        '["--port", "80"]',
        '["--tensor_parallel_size=2"]',
        '["-tp"]',
        '["--api-key=x"]',
        '["a\\nb"]',
        '[""]',
    ],
    "model.memory-reserve": ['"8"'],
    "model.folder": ['"models"', '"/a/../b"', '"/"', '"/a b"', '""'],
    "model.tensor-parallel": ["-1", "3"],
    "metrics.listen": [
        '"9101"',
        '":9101"',
        '"127.0.0.1"',
        '"127.0.0.1:0"',
        '"127.0.0.1:70000"',
        '"::1:9101"',
        '"[1.2.3.4]:1"',
    ],
    "install.ssh-keys": [
        f'"ssh-ed25519 {KEY}"',
        '["ssh-ed25519 AAAA"]',
        f'["ssh-rsa {KEY}"]',
        f'["ssh-ed25519 {KEY}!"]',
        f'["ssh-ed25519 {KEY} a\\"b"]',
        f'["command=x ssh-ed25519 {KEY}"]',
    ],
    "install.time-zone": ['"CET+1 "', '"europe/berlin"', '"../etc"', '""'],
    "install.keyboard": ['"DE"', '"us intl"', '""'],
    "install.repository": [
        '"file:///mnt"',
        '"https://"',
        '"https://me:secret@mirror.example/"',
        '"https://a b"',
        '"x"',
    ],
    "node.serial": ['""', '"Default string"', '"To Be Filled By O.E.M."', '"a|b"', '"a\'b"', '" a"'],
    "node.disk": ['""', '"/dev/disk/by-id/nvme-X_1234"', '"nvme-X_1234-part1"', '"nvme0n1"', '"nvme-$(x)"'],
    "node.name": ['""', '"a_b"', '"-a"', '"a..b"', '"10.0.0.1"', f'"{"a" * 64}"', f'"{"a." * 40}a"'],
    "node.address": [
        '"192.168.100.1"',
        '"192.168.100.1/33"',
        '"192.168.100.1/255.255.255.252"',
        '"192.168.100.1/"',
        '"192.168.100.256/30"',
        '"192.168.100.01/30"',
        '"127.0.0.1/8"',
        '"224.0.0.1/8"',
        '"240.0.0.1/8"',
        '"fe80::1/64"',
        '""',
    ],
    "node.gpus": ["0", "1.0"],
}
CARDS_BAD = {
    "interface": ['""', '"eth 1"', '"eth/1"', f'"{"e" * 16}"', '"%d"'],
    "mac": [
        '""',
        '"b4:96:91"',
        '"b4:96:91:00:00:0g"',
        '"b4:96-91:00:00:01"',
        '"01:00:5e:00:00:01"',
        '"00:00:00:00:00:00"',
    ],
    "driver": ['""', '"a b"', '"../ice"'],
}


def file_with(key: str, value: str, *, without: str = "") -> str:
    """A good file but for one key (of the first node where it is a node's) that is given this value."""
    tables: dict[str, dict[str, str]] = {
        "cluster": {"name": '"halo"'},
        "node": {"name": '"x"', "role": '"head"', "address": '"192.168.100.1/30"', "interface": '"eth1"'},
    }
    section, name = key.split(".")
    tables.setdefault(section, {})[name] = value
    tables["node"].pop(without, "")
    text = "".join(table(section, body) for section, body in tables.items())
    other = {"name": '"y"', "role": '"worker"', "address": '"192.168.100.2/30"', "driver": '"ice"'}
    return text + table("node", other)


def table(section: str, body: dict[str, str]) -> str:
    header = "[[node]]" if section == "node" else f"[{section}]"
    return header + "\n" + "".join(f"{name} = {value}\n" for name, value in body.items())


def complaints(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        config.parse(text, "FILE")
    return caught.value.complaints


def each(values: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(key, value) for key, found in values.items() for value in found]


@pytest.mark.parametrize(("key", "value"), each(GOOD))
def test_good_value(key: str, value: str) -> None:
    file = config.parse(file_with(key, value), "FILE")
    written = [setting for setting in config.settings(file) if setting.origin.startswith("FILE:")]
    assert key.replace("node.", "node[1].") in {setting.key for setting in written}


@pytest.mark.parametrize(("key", "value"), each(BAD))
def test_bad_value(key: str, value: str) -> None:
    found = complaints(file_with(key, value))
    wanted = key.replace("node.", "node[1].")
    assert len(found) == 1
    assert re.match(rf"FILE:[1-9]\d*: {re.escape(wanted)}(\[1\]|\.\S+)?: ", found[0])


@pytest.mark.parametrize(("key", "value"), each(CARDS_BAD))
def test_bad_card(key: str, value: str) -> None:
    found = complaints(file_with(f"node.{key}", value, without="interface" if key != "interface" else ""))
    assert len(found) == 1
    assert f"node[1].{key}: " in found[0]


def test_a_mac_is_kept_in_one_form() -> None:
    text = file_with("node.mac", '"B4-96-91-00-00-0A"', without="interface")
    assert config.parse(text, "FILE").config.nodes[0].mac == "b4:96:91:00:00:0a"


def test_minimal_has_the_defaults_that_full_writes_down() -> None:
    minimal = config.load(CASES / "minimal.toml")
    full = config.load(CASES / "full.toml")
    assert replace(full, nodes=()) == replace(minimal, nodes=())
    assert [node.gpus for node in minimal.nodes] == [1, 1]
    assert minimal.head.name == full.head.name == "halo1"


def test_full_names_every_key() -> None:
    file = config.read(CASES / "full.toml")
    default = {setting.key for setting in config.settings(file) if setting.origin == "default"}
    assert default == {"node[2].gpus", "node[3].gpus"}


def test_gtt_of_the_guide() -> None:
    kernel = config.Kernel()
    assert (kernel.gtt_mib, kernel.gtt_pages) == (126976, 32505856)
    assert config.Model().memory_reserve_bytes == 8 << 30


@given(st.integers(1, 999_999), st.sampled_from(["MiB", "GiB", "TiB"]))
def test_sizes_agree_with_each_other(number: int, unit: str) -> None:
    text = f"{number}{unit}"
    kernel = config.Kernel(gtt=text)
    assert checks.size(text) == ""
    assert kernel.gtt_mib * 256 == kernel.gtt_pages
    assert checks.size_in_bytes(text) == kernel.gtt_pages * 4096
    assert kernel.gtt_mib == number * {"MiB": 1, "GiB": 1024, "TiB": 1024**2}[unit]


@pytest.mark.parametrize(("nodes", "good"), [(2, True), (64, True), (65, False)])
def test_how_many_nodes(nodes: int, good: bool) -> None:
    text = cluster_file(count=nodes, prefix=24)
    if good:
        assert len(config.parse(text, "FILE").config.nodes) == nodes
    else:
        assert complaints(text) == ("FILE:4: node: a cluster has 2 to 64 nodes, and this file has 65",)


@pytest.mark.parametrize(
    "check", [getattr(checks, name) for name in CHECKS] + [getattr(machine, name) for name in MACHINE_CHECKS]
)
@given(value=st.text() | st.text("abz01:./%[]@-= ,", max_size=20))
def test_a_check_answers_any_text_with_one_line_or_nothing(check: Check, value: str) -> None:
    assert len(check(value).splitlines()) <= 1


def test_a_private_key_is_not_repeated_to_whoever_reads_the_complaint() -> None:
    (found,) = complaints(file_with("install.ssh-keys", '["-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXk"]'))
    assert "install.ssh-keys[1]: this is a private key" in found
    assert "b3Blbn" not in found
