"""A scripted endpoint on loopback that speaks OpenAI's embeddings: by its script, then with hashed words."""

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.hashing_embedder import HashingModel


class EmbeddingServer:
    """`answers` are (status, body); a body that is not text is sent as JSON.

    With `most_chars`, requests with a longer text, or an empty one, are refused with status `too_long`.
    """

    def __init__(self, *answers: tuple[int, Any], most_chars: int | None = None, too_long: int = 400) -> None:
        self.requests: list[dict[str, Any]] = []
        self.model, self._most_chars = HashingModel("small"), most_chars
        script = deque(answers)
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body: Any
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(request | {"path": self.path, "key": self.headers["Authorization"]})
                if server.refuses(request["input"]):
                    status, body = too_long, {"error": {"message": "input is too large to process"}}
                else:
                    status, body = script.popleft() if script else (200, server.answer(request))
                raw = (body if isinstance(body, str) else json.dumps(body)).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def refuses(self, texts: list[str]) -> bool:
        return self._most_chars is not None and not all(0 < len(text) <= self._most_chars for text in texts)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """In no order, as it is allowed to be."""
        texts = request["input"]
        vectors = self.model.passages(texts)
        data = [{"object": "embedding", "index": n, "embedding": vectors[n].tolist()} for n in range(len(texts))]
        return {"object": "list", "model": request["model"], "data": data[::-1], "usage": USAGE}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_trouble: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


USAGE = {"prompt_tokens": 1, "total_tokens": 1}
