"""The contract of ports.Model, on a server that answers, none, and one that goes away. Whoever watches asks."""

from __future__ import annotations

from strixd.ports import Answer, Host, Served
from tests.contract.stage import Stage, until, watching


async def test_nobody_is_asked_when_nothing_is_served(host: Host) -> None:
    assert await host.model.look(None) == Answer()


async def test_the_first_look_knows_nothing_yet(host: Host, stage: Stage) -> None:
    with stage.serving("tiny") as url:
        assert (await host.model.look(Served(url, "tiny", "run-1"))).at == 0


async def _answered(host: Host, served: Served) -> Answer:
    async def look() -> Answer | None:
        answer = await host.model.look(served)
        return answer if answer.at else None

    found = await until(host, look, seconds=20)
    assert found, await host.model.look(served)
    return found


async def _failed(host: Host, served: Served, *, seconds: float = 40) -> Answer:
    async def look() -> Answer | None:
        answer = await host.model.look(served)
        return answer if answer.failed_at > answer.at else None

    found = await until(host, look, seconds=seconds)
    assert found, await host.model.look(served)
    return found


async def test_a_completion_is_seen(host: Host, stage: Stage) -> None:
    async with watching(host):
        with stage.serving("tiny") as url:
            before = host.now()
            answer = await _answered(host, Served(url, "tiny", "run-1"))
            assert before <= answer.at <= host.now()
            assert 0 < answer.seconds < 10
            assert answer.failed_at <= answer.at
            assert await host.model.look(None) == Answer()


async def test_nobody_listens(host: Host) -> None:
    async with watching(host):
        answer = await _failed(host, Served("http://127.0.0.1:9", "tiny", "run-1"))
        assert answer.at == 0
        assert answer.error
        await host.model.look(None)


async def test_another_model_is_no_answer(host: Host, stage: Stage) -> None:
    async with watching(host):
        with stage.serving("tiny") as url:
            answer = await _failed(host, Served(url, "large", "run-1"))
            assert answer.at == 0
            assert answer.error
            await host.model.look(None)


async def test_a_server_that_goes_away_is_noticed(host: Host, stage: Stage) -> None:
    async with watching(host):
        with stage.serving("tiny") as url:
            served = Served(url, "tiny", "run-1")
            answer = await _answered(host, served)
        failed = await _failed(host, served)
        assert failed.at >= answer.at
        assert failed.error
        await host.model.look(None)


async def test_an_answer_belongs_to_its_run(host: Host, stage: Stage) -> None:
    async with watching(host):
        with stage.serving("tiny") as url:
            await _answered(host, Served(url, "tiny", "run-1"))
            assert (await host.model.look(Served(url, "tiny", "run-2"))).at == 0
            assert (await _answered(host, Served(url, "tiny", "run-2"))).at
            await host.model.look(None)
