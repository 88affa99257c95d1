"""A disk without room ends no daemon and loses no order that was given before."""

from __future__ import annotations

import pytest

from strixd.errors import StrixdError
from tests.sim.node import MODEL, answering, serving, virtual


@virtual
async def test_recovery_goes_on_without_room_for_its_record() -> None:
    async with serving() as node:
        assert node.engine
        server = node.world.server()
        assert server
        node.world.disk.full = True
        server.fail()
        await node.until(lambda status: not answering(status), seconds=60)
        await node.answers(seconds=180)
        with pytest.raises(StrixdError, match="No space left"):
            await node.engine.serve("another/model", (), by="uid 0: serve")
        assert node.status.model
        assert node.status.model.name == MODEL
        assert not node.dead
