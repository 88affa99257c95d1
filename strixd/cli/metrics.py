"""metrics: what is told to Prometheus, from the daemon's other socket."""

from __future__ import annotations

from strixd.api.wire import metrics_beside
from strixd.cli import client
from strixd.cli.parse import Asked
from strixd.cli.terminal import put
from strixd.errors import NotPermitted, Unavailable


def metrics(asked: Asked) -> int:
    head, body = _get(metrics_beside(asked.socket))
    status = "".join(head.split()[1:2])
    if status not in ("", "200"):
        said, _, hint = body.strip().partition("\n")
        raise (NotPermitted if status == "403" else Unavailable)(said, hint=hint)
    if not body.endswith("# EOF\n"):
        raise Unavailable("Cannot read the metrics: strixd hung up before their end", hint="systemctl status strixd")
    put(body)
    return 0


def _get(path: str) -> tuple[str, str]:
    with client.connect(path) as connection, connection.makefile("rb") as reply:
        connection.settimeout(client.PATIENCE)
        try:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: strixd\r\n\r\n")
            head, _, body = reply.read().partition(b"\r\n\r\n")
        except OSError as error:
            raise Unavailable(
                f"Cannot read the metrics: {error.strerror or error}", hint="systemctl status strixd"
            ) from None
    return head.decode(errors="replace"), body.decode(errors="replace")
