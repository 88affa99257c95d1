"""Runs inside the second of two virtual machines: does what the first one says, over the cable. A connection is a line
of shell and, back, all that it writes; the line "end" is the end. Tells what was asked."""

from __future__ import annotations

import json
import socketserver
import subprocess
import sys
import threading

PORT = 7000
PATIENCE = 600.0  # seconds that a line may take
asked: list[str] = []


class Order(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        line = self.rfile.readline().decode().strip()
        asked.append(line)
        if line == "end":
            threading.Thread(target=self.server.shutdown).start()
            return
        said = self.connection.fileno()
        subprocess.run(
            ["sh", "-c", line], stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False, timeout=PATIENCE
        )


with socketserver.ThreadingTCPServer(("", PORT), Order) as server:
    server.serve_forever()
json.dump({"asked": asked}, sys.stdout)
