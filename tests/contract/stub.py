"""Stand-ins for foreign HTTP services, in a process of their own: `stub.py model NAME` or `stub.py hub NAME`.

Prints its URL. "model" answers completions for NAME as an OpenAI-style server does; "hub" refuses NAME as gated and
allows every other model.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Stub(BaseHTTPRequestHandler):
    """What both have in common."""

    name = ""

    def reply(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status == 403:
            self.send_header("X-Error-Code", "GatedRepo")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Model(Stub):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked.get("model") != self.name:
            self.reply(404, {"error": {"message": f"The model `{asked.get('model')}` does not exist."}})
            return
        choice = {"index": 0, "text": " and", "message": {"role": "assistant", "content": " and"}}
        self.reply(200, {"model": self.name, "choices": [choice], "usage": {"completion_tokens": 1}})

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"vllm:num_requests_running 0.0\nvllm:generation_tokens_total 1.0\n")
        else:
            self.reply(200, {"object": "list", "data": [{"id": self.name, "object": "model"}]})


class Hub(Stub):
    def do_GET(self) -> None:
        if self.name in self.path:
            self.reply(403, {"error": f"Access to model {self.name} is restricted."})
        else:
            self.reply(200, {"id": self.path.removeprefix("/api/models/"), "gated": False})

    do_HEAD = do_GET


def main() -> None:
    kind, Stub.name = sys.argv[1:]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model if kind == "model" else Hub)
    sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
