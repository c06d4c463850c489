"""A server of somebody else's that webhooks are sent to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar


class Receiver(BaseHTTPRequestHandler):
    """Takes what it is sent, but for the first requests while it is `away`."""

    away = 2
    received: ClassVar[list[tuple[dict[str, str], dict[str, Any], bytes]]] = []

    def do_POST(self) -> None:  # as its base calls it
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Receiver.away -= 1
        if Receiver.away < 0:
            Receiver.received.append((dict(self.headers), json.loads(body), body))
        self.send_response(200 if Receiver.away < 0 else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def receiving() -> Iterator[str]:
    Receiver.away, Receiver.received = 2, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/told"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
