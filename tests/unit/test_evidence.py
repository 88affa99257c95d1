"""A bundle is bounded in size, number and time whatever its sources do; and what each source makes of what it reads."""

from __future__ import annotations

import json
import shutil
import threading
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from strixd.errors import Unavailable
from strixd.evidence import bundle, sources
from strixd.evidence.bundle import KEPT, MOST, Source, collect, make
from strixd.evidence.processes import SLICE, processes
from strixd.evidence.redact import Redaction

Usage = namedtuple("Usage", "total used free")


def lay(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


# The bundle


def test_the_oldest_go_and_nothing_of_others(tmp_path: Path) -> None:
    lay(tmp_path, {"notes/mine.txt": "keep", "20200101T000000Z.txt": "keep"})
    made = [make("strixd-vllm.service", 1_800_000_000 + hour * 3600, tmp_path) for hour in range(KEPT + 3)]
    assert [folder.exists() for folder in made] == [False] * 3 + [True] * KEPT
    assert made[0].name == "20270115T080000Z-strixd-vllm.service"
    assert (tmp_path / "notes/mine.txt").exists()
    assert (tmp_path / "20200101T000000Z.txt").exists()


def test_two_in_a_second_and_a_name_that_is_a_path(tmp_path: Path) -> None:
    first, second = (make("../../etc", 0.0, tmp_path) for _ in range(2))
    assert first != second
    assert {first.parent, second.parent} == {tmp_path}
    assert first.stat().st_mode & 0o777 == 0o700


def test_a_full_disk_is_not_made_fuller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 1 << 40, 1 << 20))
    with pytest.raises(Unavailable, match=r"1 MiB are free .* 64 MiB are needed"):
        make("x", 0.0, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_has_a_bound_and_says_so(tmp_path: Path) -> None:
    collect(tmp_path, [Source("a.txt", lambda: ("é" * 1000 for _ in range(2000)), 30.0)], Redaction())
    assert MOST - 4000 < (tmp_path / "a.txt").stat().st_size <= MOST
    assert (tmp_path / "a.txt").read_text().endswith("[the rest is left out: a file has 1 MiB at most]\n")


def test_one_that_fails_and_one_that_hangs_cost_nothing_but_themselves(tmp_path: Path) -> None:
    never = threading.Event()

    def hangs() -> Iterator[str]:
        yield "before"
        never.wait()

    def fails() -> Iterator[str]:
        yield "so far"
        raise OSError(5, "Input/output error")

    def absent() -> Iterator[str]:
        raise Unavailable("not here, HF_TOKEN=planted")

    told = collect(
        tmp_path,
        [
            Source("hangs.txt", hangs, 0.2),
            Source("fails.txt", fails, 30.0),
            Source("absent.txt", absent, 30.0),
            Source("good.json", lambda: ['{"why": "HF_TOKEN=planted"}'], 30.0),
        ],
        Redaction(),
    )
    never.set()
    assert "hangs.txt: not read to its end within 0.2 s" in told[0]
    assert told[1] == "fails.txt: failed: [Errno 5] Input/output error"
    assert told[2] == "absent.txt: failed: not here, HF_TOKEN=[masked]"
    assert (tmp_path / "hangs.txt").read_text() == "before\n"
    assert (tmp_path / "fails.txt").read_text() == "so far\n"
    assert not (tmp_path / "absent.txt").exists()
    assert json.loads((tmp_path / "good.json").read_text()) == {"why": "HF_TOKEN=[masked]"}


# The sources

STAT = "{pid} (py (thon) 3) {state} 1 1 1 0 -1 4194304 0 0 0 0 250 50 0 0 20 0 {threads} 0 100 1000000 25600 0 0"


def test_processes_and_threads_that_stand_at_the_same_place(tmp_path: Path) -> None:
    group = f"sys{SLICE}/strixd-vllm.service/container"
    lay(
        tmp_path,
        {
            f"{group}/cgroup.procs": "41\n42\n",
            "proc/41/stat": STAT.format(pid=41, state="D", threads=3),
            "proc/41/cgroup": f"0::{SLICE}/strixd-vllm.service/container\n",
            "proc/41/cmdline": "VLLM::EngineCore\0",
        }
        | {
            f"proc/41/task/{thread}/{name}": text
            for thread, stack in ((41, "amdgpu_wait"), (43, "futex_wait"), (44, "futex_wait"))
            for name, text in (
                ("stat", STAT.format(pid=thread, state="D", threads=3)),
                ("wchan", stack),
                ("comm", f"t{thread}\n"),
                ("stack", f"[<0>] {stack}+0x1/0x2\n"),
            )
        },
    )
    lines = list(processes(root=tmp_path / "sys", proc=tmp_path / "proc"))
    assert lines[0] == f"2 processes in {SLICE}"
    (process,) = [line for line in lines if line.startswith("41 (")]
    assert process.startswith("41 (py (thon) 3) D, parent 1, 3.0 s of CPU, 100 MiB, 3 threads")
    assert process.endswith("in /strixd-vllm.service/container")
    assert "  threads 43 44 (t43, t44) D, waiting in futex_wait" in lines
    assert sum("futex_wait+0x1" in line for line in lines) == 1
    assert any(line.startswith("42: ") and "No such file" in line for line in lines)
    assert "41 VLLM::EngineCore" in lines[lines.index("titles:") :]


def test_rdma_ports_and_the_addresses_that_are_set(tmp_path: Path) -> None:
    port = "class/infiniband/rocep194s0/ports/1"
    zero = "0000:0000:0000:0000:0000:0000:0000:0000"
    lay(
        tmp_path,
        {
            f"{port}/state": "4: ACTIVE\n",
            f"{port}/counters/port_xmit_wait": "17\n",
            f"{port}/hw_counters/RetransSegs": "3\n",
            f"{port}/gids/0": zero + "\n",
            f"{port}/gids/10": "0000:0000:0000:0000:0000:ffff:c0a8:6401\n",
            f"{port}/gid_attrs/types/10": "RoCE v2\n",
            f"{port}/gid_attrs/ndevs/10": "enp194s0np0\n",
        },
    )
    lines = [line.strip() for line in sources.rdma(tmp_path)]
    assert lines[0] == "rocep194s0/ports/1:"
    assert {"state 4: ACTIVE", "counters/port_xmit_wait 17", "hw_counters/RetransSegs 3"} <= set(lines)
    assert "gids/10 0000:0000:0000:0000:0000:ffff:c0a8:6401 RoCE v2 enp194s0np0" in lines
    assert zero not in "".join(lines)
    assert next(iter(sources.rdma(tmp_path / "none"))).startswith("no RDMA device")


def test_memory_of_host_slice_and_gpu(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "proc/meminfo": "MemAvailable: 5 kB\n",
            f"sys/fs/cgroup{SLICE}/memory.events": "oom_kill 1\n",
            "sys/class/drm/card1/device/mem_info_gtt_used": "118111600640\n",
            "sys/class/drm/card1/device/vendor": "0x1002\n",
        },
    )
    lines = list(sources.memory(tmp_path / "sys", tmp_path / "proc"))
    assert "MemAvailable: 5 kB" in lines
    assert "memory.events oom_kill 1" in lines
    assert "class/drm/card1/device/mem_info_gtt_used 118111600640" in lines
    assert "0x1002" not in "".join(lines)


def test_keys_that_must_not_be_found(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "etc/cluster.key": "k1k1k1\n",
            "etc/hf-token": "hf_x\n",
            "etc/cluster.toml": "name = 1",
            "run/strixd-ray.container": '[Container]\nEnvironment="MY_SECRET=s2s2s2"\n',
        },
    )
    assert set(sources.secrets(tmp_path / "etc", tmp_path / "run")) == {"k1k1k1", "hf_x", "s2s2s2"}


def test_a_whole_run_of_the_longest_source_ends_before_systemd_ends_it() -> None:
    unit = (Path(__file__).parents[2] / "units/strixd-evidence.service").read_text()
    limit = float(unit.partition("TimeoutStartSec=")[2].split()[0])
    assert max(source.within for source in sources.all_sources()) + 2 < limit
    assert bundle.KEPT == 10
