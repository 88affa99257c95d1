"""A real Prometheus scrapes a real daemon, over a simulated node, and is asked what it knows."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from strixd.node import SIMULATED
from tests.exposition import parsed
from tests.lab.host import wait_for
from tests.lab.layout import PROJECT
from tests.lab.prometheus import Programs, programs
from tests.lab.shell import attempt, run

pytestmark = pytest.mark.lab  # no hosts, but root's cache

SCRAPING = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: strixd
    static_configs: [{{targets: ["{0}"]}}]
"""


@pytest.fixture(scope="module")
def tools() -> Programs:
    return programs()


@contextmanager
def running(*command: str | Path, log: Path) -> Iterator[None]:
    with log.open("w") as out, subprocess.Popen(command, cwd=PROJECT, stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            finally:
                process.kill()


def free() -> str:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prometheus")


@pytest.fixture(scope="module")
def daemon(folder: Path) -> Iterator[str]:
    """Its address for Prometheus; the model answers."""
    address, toml = free(), folder / "cluster.toml"
    toml.write_text(f'{SIMULATED}\n[metrics]\nlisten = "{address}"\n')
    strixd = (sys.executable, "-m", "strixd", "--simulate", "--socket", folder / "s", "--config", toml)
    with running(*strixd, log=folder / "strixd.log"):
        wait_for("the daemon", (folder / "s").exists, 30)
        cli(folder, "serve", "tiny")
        yield address


def cli(folder: Path, *words: str) -> str:
    return run([sys.executable, "-m", "strixd.cli", "--socket", folder / "s", *words]).stdout


class Prometheus:
    """Its HTTP API (https://prometheus.io/docs/prometheus/latest/querying/api/)."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, what: str, **parameters: str) -> Any:
        """None while it does not answer."""
        try:
            url = f"http://{self._address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
            with urllib.request.urlopen(url, timeout=5) as reply:
                return json.load(reply)["data"]
        except OSError:
            return None

    def value(self, query: str) -> float | None:
        """Of the one series that this gives, if it is one."""
        data = self.ask("query", query=query)
        return float(data["result"][0]["value"][1]) if data and len(data["result"]) == 1 else None

    def wait_for(self, query: str, value: float) -> None:
        wait_for(f"{query} = {value}", lambda: self.value(query) == value, 30, pause=0.2)


@pytest.fixture(scope="module")
def prometheus(folder: Path, daemon: str, tools: Programs) -> Iterator[Prometheus]:
    address = free()
    (folder / "prometheus.yml").write_text(SCRAPING.format(daemon))
    options = (
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address={address}",
        "--log.level=warn",
    )
    with running(tools.prometheus, *options, log=folder / "prometheus.log"):
        yield Prometheus(address)


def test_prometheus_scrapes_the_daemon(prometheus: Prometheus, folder: Path) -> None:
    prometheus.wait_for('up{job="strixd"}', 1)
    prometheus.wait_for('strixd_node_phase{phase="ready"}', 1)
    [target] = prometheus.ask("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    assert prometheus.value("sum(strixd_member_joined)") == 2
    assert prometheus.value('strixd_model_info{model="tiny"}') == 1
    assert prometheus.value('strixd_incidents_total{resource="vllm"}') == 0
    assert prometheus.value("count(strixd_link_receive_bytes_total)") == 1
    assert "out of order" not in (folder / "prometheus.log").read_text()


def test_prometheus_keeps_the_whole_page(prometheus: Prometheus, folder: Path) -> None:
    prometheus.wait_for('up{job="strixd"}', 1)
    told = {sample.name for family in parsed(cli(folder, "metrics")).values() for sample in family.samples}
    wait_for("all series", lambda: told <= set(prometheus.ask("label/__name__/values")), 30, pause=0.2)
    kinds = {name: facts[0]["type"] for name, facts in prometheus.ask("metadata").items()}
    assert kinds["strixd_recovery_seconds"] == "histogram"
    assert kinds["strixd_node_phase"] == "gauge"
    assert kinds["strixd_build"] == "info"
    assert "counter" in (kinds.get("strixd_incidents"), kinds.get("strixd_incidents_total"))


def test_prometheus_sees_an_incident_and_its_end(prometheus: Prometheus, folder: Path) -> None:
    prometheus.wait_for('strixd_node_phase{phase="ready"}', 1)
    with socket.socket(socket.AF_UNIX) as faults:
        faults.connect(f"{folder}/s.faults")
        faults.sendall(b"kill vllm\n")
        faults.recv(100)
    prometheus.wait_for('strixd_incidents_total{resource="vllm"}', 1)
    prometheus.wait_for("strixd_recovery_seconds_count", 1)
    prometheus.wait_for("strixd_incident_open", 0)
    assert prometheus.value('strixd_workload_starts_total{workload="vllm"}') == 2
    assert prometheus.value("histogram_quantile(0.5, strixd_recovery_seconds_bucket)")


class Again(Collector):
    """The page in the older text format, which is the only one that promtool reads."""

    def __init__(self, page: str) -> None:
        self._page = page

    def collect(self) -> Iterator[Metric]:
        yield from parsed(self._page).values()


def test_promtool_has_no_complaint(daemon: str, folder: Path, tools: Programs) -> None:
    registry = CollectorRegistry()
    registry.register(Again(cli(folder, "metrics")))
    older = generate_latest(registry).decode()
    assert "strixd_incidents_total{" in older
    done = attempt([tools.promtool, "check", "metrics"], stdin=older)
    assert (done.rc, done.stdout, done.stderr) == (0, "", "")
