"""A model endpoint that says as much of its answer as a test lets it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PARTS = ("Отставание — **4 дня**.\n\n", "Монтаж сдвигается ", "на 11 декабря.")
_PATIENCE_S = 60


class HeldModel:
    """Speaks OpenAI's chat completions on loopback; each part waits for its permit."""

    def __init__(self) -> None:
        self._permits = threading.Semaphore(0)
        self._is_broken = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def let_say(self, parts: int) -> None:
        """So many more."""
        self._permits.release(parts)

    def break_off(self) -> None:
        """End the answer of now in the middle."""
        self._is_broken.set()
        self._permits.release()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        permits, is_broken = self._permits, self._is_broken

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # as the base class calls it
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not asked.get("stream"):
                    self._answer("application/json", [json.dumps(_whole()).encode()])
                    return
                self._answer("text/event-stream", _events(permits, is_broken))

            def _answer(self, content_type: str, pieces: Any) -> None:
                self.send_response(200)
                self.send_header("Content-Type", content_type)
                self.send_header("Connection", "close")
                self.end_headers()
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()
                self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:  # as the base class has it
                """Say nothing."""

        return Handler


@contextmanager
def held_model() -> Iterator[HeldModel]:
    """One at work."""
    model = HeldModel()
    serving = threading.Thread(target=model.server.serve_forever, daemon=True)
    serving.start()
    try:
        yield model
    finally:
        model.let_say(100)
        model.server.shutdown()
        serving.join()
        model.server.server_close()


def _events(permits: threading.Semaphore, is_broken: threading.Event) -> Iterator[bytes]:
    for part in PARTS:
        permits.acquire(timeout=_PATIENCE_S)
        if is_broken.is_set():
            is_broken.clear()
            return
        yield _event({"choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]})
    yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield b"data: [DONE]\n\n"


def _event(fields: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(_ABOUT | {'object': 'chat.completion.chunk'} | fields)}\n\n".encode()


def _whole() -> dict[str, Any]:
    message = {"role": "assistant", "content": "".join(PARTS)}
    return _ABOUT | {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


_ABOUT: dict[str, Any] = {"id": "one", "created": 0, "model": "held"}
