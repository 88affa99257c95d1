"""The archive of a host that holds a token, a prompt in its log, and addresses, has none of them in any byte."""

from __future__ import annotations

import json
import os
import socketserver
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_process import ROOT, cli
from doctor_host import Laid, healthy_status

from strixd.doctor.anonymous import Anonymous
from strixd.doctor.report import report, write_archive
from strixd.errors import Refused, Rejected

HEAD = "(APIServer pid=7) INFO 11-29 10:00:01 [request_logger.py:65] Received request a: params: X(stop='Zebra prompt')"
SAID = (
    HEAD,
    "(APIServer pid=7) WARNING 11-29 10:00:03 [h.py:1] 401 for hf_abcdefgh4713, sent Authorization: Bearer bearer4714",
    "(Engine pid=9) ERROR 11-29 10:00:04 [x.py:1] halo2.home.example (192.168.100.2) hung up; clusterkey4711",
    "(Engine pid=9) ERROR 11-29 10:00:05 [x.py:1] from 203.0.113.77:4022 and from:2001:db8::7f: no route, tcp_10.0.0.5",
    "ice 0000:01:00.0: b4:96:91:00:00:01 is enxb49691000001, GUID b496:91ff:fe00:0001",
    "usb 1-1: SerialNumber: USBSERIAL4715",
    "HALO1 is up, BIOS SN-4716 on PF4717X",
    "RuntimeError: the last words, after 10:00:05 in c10::Error",
)
SECRETS = (
    "Zebra",
    "clusterkey4711",
    "environ4712",
    "hf_abcdefgh4713",
    "bearer4714",
    "apikey4718",
    "192.168.100.",
    "203.0.113.77",
    "2001:db8",
    "10.0.0.5",
    "b4:96:91",
    "b49691000001",
    "b496:91ff",
    "fe80::",
    "halo1",
    "halo2",
    "home.example",
    "USBSERIAL4715",
    "SN-4716",
    "PF4717X",
    "0123456789abcdef0123456789abcdef",
    "c0a8:6401",
)


@pytest.fixture
def laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laid:
    """With all that must not be given away, in every place where it is."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    made = Laid(tmp_path / "root", tmp_path / "bin")
    made.lay("etc/strixd/cluster.key", "clusterkey4711\n")
    made.lay("etc/strixd/hf-token", "hf_abcdefgh4713\n")
    made.lay("etc/strixd/api.key", "apikey4718\n")
    made.lay("run/containers/systemd/strixd-ray.container", '[Container]\nEnvironment="SOME_API_KEY=environ4712"\n')
    made.lay("proc/sys/kernel/hostname", "halo1\n")
    made.lay("etc/hosts", "127.0.0.1 localhost\n192.168.100.2 halo2.home.example halo2\n")
    made.lay("etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    made.lay("sys/class/dmi/id/product_serial", "SN-4716\n")
    made.lay("sys/class/dmi/id/board_serial", "Default string\n")
    made.lay("sys/class/nvme/nvme0/serial", "PF4717X   \n")
    port = "sys/class/infiniband/rocep194s0/ports/1"
    made.lay(f"{port}/gids/1", "0000:0000:0000:0000:0000:ffff:c0a8:6401\n")
    made.lay(f"{port}/gids/0", "fe80:0000:0000:0000:b696:91ff:fe00:0001\n")
    made.lay("etc/os-release", 'NAME="Fedora Linux"\nVERSION="43"\n')
    entry = {"__REALTIME_TIMESTAMP": "1800000000000000", "SYSLOG_IDENTIFIER": "strixd-vllm"}
    made.says("journalctl.json", "".join(json.dumps({**entry, "MESSAGE": line}) + "\n" for line in SAID))
    made.says("ip", json.dumps([{"ifname": "enp194s0np0", "address": "b4:96:91:00:00:01", "local": "192.168.100.1"}]))
    made.says("ethtool", "NIC statistics:\n     tx_timeout: 3\n     rx_bytes: 0\n")
    made.condition("ray", "held", "halo2 (192.168.100.2) said environ4712", "ssh root@halo2")
    return made


@contextmanager
def strixd(path: Path, replies: dict[str, object]) -> Iterator[str]:
    """A daemon that has one answer to each method."""

    class Peer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked = json.loads(b"".join(iter(lambda: self.rfile.read(1), b"\0")))
            method = asked["method"].rpartition(".")[2]
            self.wfile.write(json.dumps({"parameters": replies[method]}).encode() + b"\0")

    with socketserver.ThreadingUnixStreamServer(str(path), Peer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield str(path)
        server.shutdown()


def members(file: Path) -> dict[str, bytes]:
    found = {}
    with tarfile.open(file, "r:gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content
            found[member.name.removeprefix("strixd-report/")] = content.read()
    return found


def made(laid: Laid, tmp_path: Path) -> dict[str, bytes]:
    incident = {"id": "i1", "cause": "192.168.100.2 is silent: Bearer bearer4714", "began": 1.0}
    replies: dict[str, object] = {"Status": {"status": laid.around.told}, "Incidents": {"incidents": [incident]}}
    with strixd(tmp_path / "socket", replies) as socket:
        report(laid.scene(), tmp_path / "r.tar.gz", socket)
    return members(tmp_path / "r.tar.gz")


def test_nothing_that_must_not_be_given_away_is_in_it(laid: Laid, tmp_path: Path) -> None:
    found = made(laid, tmp_path)
    everything = b"\n".join(found.values()) + "\n".join(found).encode()
    assert [each for each in SECRETS if each.lower().encode() in everything.lower()] == []


def test_what_explains_a_fault_is_in_it(laid: Laid, tmp_path: Path) -> None:
    found = {name: content.decode() for name, content in made(laid, tmp_path).items()}
    assert set(found) == {
        *("contents.txt", "doctor.txt", "doctor.json", "status.json", "incidents.json", "settings.txt", "versions.txt"),
        *("journal-strixd.txt", "journal-ray.txt", "journal-vllm.txt", "journal-kernel.txt"),
        *("links.json", "link-counters.txt", "rdma.txt", "memory.txt"),
    } - ({"link-counters.txt"} if "link-counters.txt" not in found else set())
    assert "RuntimeError: the last words, after 10:00:05 in c10::Error" in found["journal-vllm.txt"]
    assert "ray" in [each["name"] for each in json.loads(found["doctor.json"])["findings"] if each["verdict"] != "ok"]
    assert json.loads(found["incidents.json"])["incidents"][0]["id"] == "i1"
    assert "gtt = " in found["settings.txt"]
    assert "6.18.4-200.fc43.x86_64" in found["versions.txt"]
    assert "of ip" in found["contents.txt"]
    assert "  rdma.txt: " in found["contents.txt"]


def test_equal_things_stay_recognisable_over_all_files(laid: Laid, tmp_path: Path) -> None:
    found = {name: content.decode() for name, content in made(laid, tmp_path).items()}
    (link,) = json.loads(found["links.json"])
    assert link["address"].startswith("<mac-")
    assert f"{link['address']} is enx{link['address']}" in found["journal-kernel.txt"]
    assert f"gids/1 {link['local']}" in found["rdma.txt"]
    assert f'address = "{link["local"]}/30"' in found["settings.txt"]


def test_it_is_told_before_it_is_written_and_for_root_alone(
    laid: Laid, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(laid, tmp_path)
    said = capsys.readouterr().out
    assert said.index("this will be in the archive:") < said.index("written: ")
    assert all(f"  {name}: " in said for name in ("doctor.txt", "settings.txt", "journal-vllm.txt"))
    assert (tmp_path / "r.tar.gz").stat().st_mode & 0o777 == 0o600


def test_without_a_daemon_there_is_the_rest(laid: Laid, tmp_path: Path) -> None:
    report(laid.scene(), tmp_path / "r.tar.gz", str(tmp_path / "none"))
    found = members(tmp_path / "r.tar.gz")
    assert "status.json" not in found
    assert b"status.json: failed: Cannot reach strixd" in found["contents.txt"]
    assert b"last words" in found["journal-vllm.txt"]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_there_is_not_written_over(laid: Laid, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "r.tar.gz"
    if kind == "file":
        file.write_text("precious")
    else:
        file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="is there already"):
        report(laid.scene(), file, str(tmp_path / "none"))
    assert not (tmp_path / "elsewhere").exists()
    assert kind == "link" or file.read_text() == "precious"


def test_a_folder_that_is_not_there_is_named(laid: Laid, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no folder"):
        report(laid.scene(), tmp_path / "none/r.tar.gz", str(tmp_path / "none"))


def test_a_name_that_cannot_be(laid: Laid, tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="File name too long"):
        report(laid.scene(), tmp_path / ("x" * 300), str(tmp_path / "none"))


def test_no_half_archive_is_left(tmp_path: Path) -> None:
    (tmp_path / "made/a.txt").parent.mkdir()
    (tmp_path / "made/a.txt").write_text("whole")
    (tmp_path / "made/b.txt").mkdir()  # what cannot be read as a file
    with pytest.raises(IsADirectoryError):
        write_archive(tmp_path / "r.tar.gz", tmp_path / "made")
    assert not (tmp_path / "r.tar.gz").exists()


# Placeholders


def cleaned(*lines: str) -> list[str]:
    names = {"host": ("halo1", "halo1.example.org"), "serial": ("SN12",)}
    return list(Anonymous((), names).lines(lines))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("halo1.example.org and halo10, HALO1", "<host-1> and <host-2>0, <host-2>"),
        ("10.1.2.3:80, 10.1.2.3/24, 10.1.2.4, ::ffff:10.1.2.3", "<ip-1>:80, <ip-1>/24, <ip-2>, <ip-1>"),
        ("peer fe80::1%eth0 [2001:db8::2]:22 fe80::1: gone", "peer <ip-1>%eth0 [<ip-2>]:22 <ip-1>: gone"),
        ("B4-96-91-00-00-01 is b4:96:91:00:00:01", "<mac-1> is <mac-1>"),
        ("0x001122fffe334455 0011:22ff:fe33:4455", "<guid-1> <guid-2>"),
        ("root=UUID=0a1b2c3d-0001-4002-8003-aabbccddeeff", "root=UUID=<id-1>"),
        ("rd.luks.uuid=luks-0a1b2c3d-0001-4002-8003-aabbccddeeff", "rd.luks.uuid=luks-<id-1>"),
        ("nvme-eui.0025385b71b0c1d2 wwn-0x5002538e00000001", "nvme-<guid-1> wwn-<guid-2>"),
        ("Serial Number: 4711XYZ9 of SN12", "Serial Number: [masked] of <serial-1>"),
    ],
)
def test_placeholders(line: str, expected: str) -> None:
    assert cleaned(line) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-29T22:24:38Z strixd: 10:00:05 after 127.0.0.1:8000 and [::1]:22",
        "std::vector c10::Error torch::autograd ::",
        "pci 0000:c5:00.0: 0x1002 0x030000",
        "sha256:" + "ab" * 32,
        "Linux version 6.18.4-200.fc43.x86_64, firmware 4.91 0x800214af 1.3909.0",
        "netmask 255.255.255.0 on 0.0.0.0",
        "serial console enabled",
    ],
)
def test_what_identifies_nobody_stays(line: str) -> None:
    assert cleaned(line) == [line]


@pytest.mark.skipif(os.geteuid() != 0, reason="a report is for root")
def test_the_cli_runs_it(tmp_path: Path) -> None:
    (tmp_path / "r.tar.gz").write_text("precious")
    done = cli("report", str(tmp_path / "r.tar.gz"), PYTHONPATH=str(ROOT))
    assert done.returncode == 2
    assert done.stderr.startswith(f"strixd-cli: {tmp_path}/r.tar.gz is there already, and is not written over\n  ")
    assert (tmp_path / "r.tar.gz").read_text() == "precious"


def test_the_laid_status_is_the_daemons() -> None:
    """What the stand-in for a daemon answers has what the real one's screen needs."""
    assert {"phase", "problem", "role", "resources", "members", "version"} <= set(healthy_status())
