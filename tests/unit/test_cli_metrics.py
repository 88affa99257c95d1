"""strixd-cli metrics, against the door of the metrics and against what hangs up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_process import cli

from strixd.api.access import Access
from strixd.api.listen import bind
from strixd.api.scrape import Scrape
from strixd.api.wire import METRICS, metrics_beside

PAGE = 'strixd_x{why="é"} 1\n# EOF\n'


async def page() -> str:
    return PAGE


@contextmanager
def told(path: Path, access: Access) -> Iterator[None]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    task = asyncio.run_coroutine_threadsafe(Scrape(page, access).on_unix(metrics_beside(str(path))), loop)
    try:
        while not Path(metrics_beside(str(path))).exists():
            time.sleep(0.01)
        yield
    finally:
        task.cancel()
        loop.call_soon_threadsafe(loop.call_later, 0.1, loop.stop)
        thread.join()
        loop.close()


@pytest.mark.parametrize(
    ("access", "status", "out", "err"),
    [
        (Access(), 0, PAGE, ""),
        (
            Access(frozenset(), lambda _: None),
            77,
            "",
            "strixd-cli: Cannot call Metrics: it takes root or membership in the group strixd or strixd-observe",
        ),
    ],
    ids=["member", "stranger"],
)
def test_the_metrics_are_printed_as_they_are(tmp_path: Path, access: Access, status: int, out: str, err: str) -> None:
    with told(tmp_path / "s", access):
        done = cli("metrics", socket=tmp_path / "s")
    assert (done.returncode, done.stdout) == (status, out)
    assert done.stderr.startswith(err)
    assert bool(done.stderr) == bool(err)


def test_a_daemon_that_hangs_up_is_named(tmp_path: Path) -> None:
    with bind(str(tmp_path / "s.metrics")) as listener:
        hanging = threading.Thread(target=lambda: listener.accept()[0].close())
        hanging.start()
        done = cli("metrics", socket=tmp_path / "s")
        hanging.join()
    assert done.returncode == 69
    assert done.stderr.startswith("strixd-cli: Cannot read the metrics: ")


def test_no_daemon_is_named(tmp_path: Path) -> None:
    done = cli("metrics", socket=tmp_path / "s")
    assert done.returncode == 69
    assert done.stderr.startswith(f"strixd-cli: Cannot reach strixd at {tmp_path}/s.metrics: there is no such socket")


def test_the_place_beside_the_usual_socket() -> None:
    assert metrics_beside("/run/strixd/io.strixd") == METRICS
