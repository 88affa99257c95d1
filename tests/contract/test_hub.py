"""The contract of ports.Hub."""

from __future__ import annotations

import pytest

from tests.contract.stage import Stage

GATED = "strixd-contract/gated"


async def test_a_gated_model_is_refused_with_the_page_to_open(stage: Stage) -> None:
    with stage.gated(GATED):
        async with stage.host() as host:
            why = await host.hub.refusal(GATED)
            assert GATED in why
            assert "http" in why


async def test_another_model_is_not_refused(stage: Stage) -> None:
    with stage.gated(GATED):
        async with stage.host() as host:
            assert await host.hub.refusal("strixd-contract/free") == ""


async def test_a_hub_that_cannot_be_reached_proves_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    async with stage.host() as host:
        before = host.now()
        assert await host.hub.refusal("strixd-contract/unreachable") == ""
        assert host.now() - before < 15
