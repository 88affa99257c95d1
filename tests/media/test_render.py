"""Rendered kickstarts: Fedora's own reader takes them, shellcheck too, and a file that lacks something is named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from strixd.errors import ConfigError, Refused
from strixd.media.explain import explain
from strixd.media.render import chosen
from tests.media.lab import BIN, KEY, cluster, machine, parsed, read, rendered, run_script, script

CLUSTERS = {
    "roce": {"kind": "roce", "card": "mac"},
    "thunderbolt": {"kind": "thunderbolt", "card": "driver"},
    "ethernet": {"kind": "ethernet", "card": "interface"},
}


@pytest.mark.parametrize("nodes", [2, 3, 8])
@pytest.mark.parametrize("fabric", CLUSTERS)
def test_fedora_reads_it_with_what_pre_writes(tmp_path: Path, fabric: str, nodes: int) -> None:
    text = rendered(cluster(nodes, **CLUSTERS[fabric]))
    done = run_script(script(text, "%pre"), machine(tmp_path))
    assert done.returncode == 0, done.stderr
    whole = text.replace("%include /tmp/strixd-node.ks", (tmp_path / "tmp/strixd-node.ks").read_text())
    for version in ("F43", "F44"):
        handler = read(whole, version).handler
        assert handler.ignoredisk.onlyuse == ["nvme0n1"]
        assert handler.clearpart.drives == ["nvme0n1"]
        assert handler.bootloader.appendLine.split()[0] == "iommu=pt"
        assert handler.network.hostname == "halo1"
        assert [(key.username, key.key) for key in handler.sshkey.sshUserList] == [("root", KEY)]
        assert {"strixd", "strixd-selinux", "podman", "chrony"} <= set(handler.packages.packageList)
        assert not handler.packages.excludeDocs  # the manuals are for the nodes
        # The time comes from where Fedora's chrony gets it: nothing here turns that off or puts others in its place.
        assert "chronyd" in handler.services.enabled
        assert (handler.timezone.isUtc, handler.timezone.nontp, handler.timesource.timesource_list) == (True, False, [])


@pytest.mark.parametrize("card", ["mac", "interface", "driver"])
def test_a_kickstart_of_each_node_alone(card: str) -> None:
    text = cluster(3, card=card).replace('serial = "PF', '# serial = "PF')
    for number in (1, 2, 3):
        alone = rendered(text, f"HALO{number}")
        read(alone, "F43")
        assert f"Installs halo{number} of cluster halo," in alone
        assert script(alone, "%pre").count("|192.168.100.") == 1


def test_shellcheck_takes_the_scripts_as_they_will_run(tmp_path: Path) -> None:
    text = rendered(cluster(3, more='repository = "https://mirror.example/$releasever/"'))
    files: list[Path] = []
    for kind in ("%pre", "%post --nochroot", "%post --interpreter"):
        files.append(tmp_path / f"{len(files)}.sh")
        files[-1].write_text(f"#!/bin/bash\n{script(text, kind)}")
    done = subprocess.run([BIN / "shellcheck", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_the_file_says_is_what_is_installed() -> None:
    more = 'time-zone = "Europe/Berlin"\nkeyboard = "de"\n[kernel]\niommu = "off"\narguments = ["quiet", "a=$(b)\'"]'
    handler = read(rendered(cluster(more=more)), "F44").handler
    assert (handler.timezone.timezone, handler.keyboard.x_layouts) == ("Europe/Berlin", ["de"])
    assert handler.bootloader.appendLine == (
        "amd_iommu=off pci=realloc pcie_aspm=off amdgpu.gttsize=126976 ttm.pages_limit=32505856 quiet a=$(b)'"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (cluster().replace(f'"{KEY}"', ""), "cluster.toml:6: install.ssh-keys: nobody could log in"),
        (cluster(card="interface").replace('serial = "PF2"', ""), "cluster.toml:15: node[2]: neither mac nor serial "),
        (cluster(more='[image.environment]\nA = """\\\n%end"""'), "cluster.toml:9: a kickstart cannot hold a line"),
    ],
    ids=["no-keys", "no-machine", "percent"],
)
def test_a_file_that_cannot_install(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        rendered(text)
    (found,) = caught.value.complaints
    assert found.startswith(complaint)


def test_a_node_that_is_not_there() -> None:
    with pytest.raises(Refused, match='no node "halo9"') as caught:
        chosen(parsed(cluster()), "halo9")
    assert caught.value.hint == "it has halo1 and halo2"


def test_the_same_file_gives_the_same_text() -> None:
    assert rendered(cluster(8)) == rendered(cluster(8))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            cluster(),
            [
                "halo1 (head)",
                "a card with MAC b4:96:91:00:00:02",
                "the largest internal disk",
                "names both",
                "again, for ever: take the stick out",
            ],
        ),
        (cluster(card="interface"), ['the serial number "PF1"', "192.168.100.2/24 on the interface enp194s0np0"]),
        (cluster(card="driver"), ["the card of driver thunderbolt-net", "me@laptop", "ttm.pages_limit=32505856"]),
        (
            cluster().replace("[[node]]", '[[node]]\ndisk = "nvme-X_1234"', 1),
            ["erased nvme-X_1234; a machine"],
        ),
        (cluster().replace(KEY, KEY.removesuffix(" me@laptop")), ["ssh-ed25519 …ZXN0dGVz"]),
        (cluster(card="interface").replace("serial", "#"), ["whichever this node's own kickstart is given to"]),
    ],
)
def test_explained_in_words(text: str, words: list[str]) -> None:
    file = parsed(text)
    said = explain(file, file.config.nodes)
    flat = " ".join(said.split())
    assert all(word in flat for word in words), said
    assert all(len(line) <= 100 for line in said.splitlines())
