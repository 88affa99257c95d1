"""metrics: what is told to Prometheus, from the daemon's other socket."""

from __future__ import annotations

from strixd.api.wire import metrics_beside
from strixd.cli import client
from strixd.cli.parse import Asked
from strixd.cli.terminal import put
from strixd.errors import NotPermitted, Unavailable


def metrics(asked: Asked) -> int:
    head, body = _get(metrics_beside(asked.socket))
    words = head.split(None, 2)
    if words[1:2] != ["200"]:
        kind = NotPermitted if words[1:2] == ["403"] else Unavailable
        said, _, hint = body.strip().partition("\n")
        raise kind(said or "Cannot read the metrics: strixd hung up", hint=hint)
    put(body)
    return 0


def _get(path: str) -> tuple[str, str]:
    with client.connect(path) as connection, connection.makefile("rb") as reply:
        connection.settimeout(client.PATIENCE)
        try:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: strixd\r\n\r\n")
            head, _, body = reply.read().partition(b"\r\n\r\n")
        except OSError as error:
            raise Unavailable(f"Cannot read the metrics: {error}", hint="systemctl status strixd") from None
    return head.decode(errors="replace"), body.decode(errors="replace")
