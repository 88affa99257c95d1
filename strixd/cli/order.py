"""stop, pause, resume and image update: one order, and one sentence about what it means."""

from __future__ import annotations

from strixd.cli import client
from strixd.cli.parse import Asked
from strixd.cli.terminal import say


def stop(asked: Asked) -> int:
    client.call(asked.socket, "Stop")
    say("stopped: no model is ordered; what runs is being ended")
    return 0


def pause(asked: Asked) -> int:
    client.call(asked.socket, "Pause")
    say("paused: nothing on this host is changed until strixd-cli resume; what runs goes on")
    return 0


def resume(asked: Asked) -> int:
    client.call(asked.socket, "Resume")
    say("resumed: strixd has this host in hand again")
    return 0


def image_update(asked: Asked) -> int:
    client.call(asked.socket, "UpdateImage")
    say("ordered: the newest image is fetched and taken; strixd-cli watch shows it")
    return 0
