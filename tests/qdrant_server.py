"""A double of Qdrant's server on loopback: the client's local mode finds, and what a server refuses is refused.

The refusals, with their words: https://qdrant.tech/documentation/operations/administration/#strict-mode, and
https://github.com/qdrant/qdrant/issues/2537 for the size of a request.
"""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from pydantic import BaseModel
from qdrant_client import QdrantClient, models

MOST_BYTES = 32 * 1024**2


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Request(NamedTuple):
    method: str
    path: str
    body: bytes


class QdrantServer:
    """Collections live in memory, as long as the double. `key` must be sent; `trouble` is the status of all answers."""

    def __init__(self, *, key: str | None = None, is_strict: bool = True, most_bytes: int = MOST_BYTES) -> None:
        self.key, self.is_strict, self.most_bytes = key, is_strict, most_bytes
        self.trouble: int | None = None
        self.asked: Counter[str] = Counter()
        self.indexed: dict[str, dict[str, str]] = {}
        # Local mode is not made for threads.
        self._lock, self._local = threading.Lock(), QdrantClient(":memory:")
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                try:
                    server.admit(self.headers["api-key"], len(body))
                    with server._lock:
                        result = server.answer(Request(self.command, self.path.partition("?")[0], body))
                    self.reply(200, {"result": result, "status": "ok", "time": 0})
                except Refusal as refusal:
                    self.reply(refusal.status, {"status": {"error": str(refusal)}, "time": 0})

            def do_GET(self) -> None:
                self.answer()

            def do_PUT(self) -> None:
                self.answer()

            def do_POST(self) -> None:
                self.answer()

            def do_DELETE(self) -> None:
                self.answer()

            def reply(self, status: int, content: dict[str, Any]) -> None:
                raw = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_trouble: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def admit(self, key: str | None, size: int) -> None:
        if self.key is not None and key != self.key:
            raise Refusal(401, "Must provide an API key or an Authorization bearer token")
        if self.trouble is not None:
            raise Refusal(self.trouble, "Service in trouble")
        if size > self.most_bytes:
            raise Refusal(
                400, f"Payload error: JSON payload ({size} bytes) is larger than allowed (limit: {MOST_BYTES} bytes)."
            )

    def answer(self, request: Request) -> Any:
        parts = request.path.strip("/").split("/")
        if parts == ["collections"]:
            return _plain(self._local.get_collections())
        _, name, *rest = parts
        action = f"{request.method} {'/'.join(rest)}".strip()
        self.asked[action] += 1
        if action == "GET exists":
            return {"exists": name in self.indexed}
        if action == "PUT":
            return self._create(name, request.body)
        if name not in self.indexed:
            raise Refusal(404, f"Not found: Collection `{name}` doesn't exist!")
        answers: dict[str, Callable[[str, bytes], Any]] = {
            "GET": self._info,
            "DELETE": self._delete,
            "PUT index": self._index,
            "PUT points": self._upsert,
            "POST points/delete": self._delete_points,
            "POST points/query": self._query,
            "POST points/scroll": self._scroll,
        }
        return answers[action](name, request.body)

    def _create(self, name: str, body: bytes) -> bool:
        if name in self.indexed:
            raise Refusal(409, f"Wrong input: Collection `{name}` already exists!")
        self._local.create_collection(name, models.CreateCollection.model_validate_json(body).vectors)
        self.indexed[name] = {}
        return True

    def _delete(self, name: str, _body: bytes) -> bool:
        del self.indexed[name]
        return self._local.delete_collection(name)

    def _info(self, name: str, _body: bytes) -> Any:
        schema = {field: {"data_type": kind, "points": 0} for field, kind in self.indexed[name].items()}
        return _plain(self._local.get_collection(name)) | {"payload_schema": schema}

    def _index(self, name: str, body: bytes) -> Any:
        wanted = json.loads(body)
        self.indexed[name][wanted["field_name"]] = wanted["field_schema"]
        return _DONE

    def _upsert(self, name: str, body: bytes) -> Any:
        points = models.PointsList.model_validate_json(body).points
        (size,) = {len(point.vector) for point in points if isinstance(point.vector, list)}
        params = self._local.get_collection(name).config.params.vectors
        if isinstance(params, models.VectorParams) and size != params.size:
            raise Refusal(400, f"Wrong input: Vector dimension error: expected dim: {params.size}, got {size}")
        self._local.upsert(name, points)
        return _DONE

    def _delete_points(self, name: str, body: bytes) -> Any:
        self._local.delete(name, models.PointIdsList.model_validate_json(body))
        return _DONE

    def _query(self, name: str, body: bytes) -> Any:
        asked = models.QueryRequest.model_validate_json(body)
        if self.is_strict and asked.filter is not None:
            self._require_indexes(name, asked.filter)
        found = self._local.query_points(
            name,
            asked.query,
            query_filter=asked.filter,
            limit=asked.limit or 10,
            with_payload=asked.with_payload or False,
        )
        return _plain(found)

    def _scroll(self, name: str, body: bytes) -> Any:
        asked = models.ScrollRequest.model_validate_json(body)
        points, following = self._local.scroll(
            name, limit=asked.limit or 10, offset=asked.offset, with_payload=asked.with_payload or False
        )
        return {"points": [_plain(point) for point in points], "next_page_offset": following}

    def _require_indexes(self, name: str, conditions: models.Filter) -> None:
        for field, kinds in _needed(conditions):
            if self.indexed[name].get(field) not in kinds:
                raise Refusal(
                    400,
                    f'Bad request: Index required but not found for "{field}" of one of the following types: '
                    f"[{', '.join(kinds)}]. Help: Create an index for this key or use a different filter.",
                )


_DONE = {"operation_id": 0, "status": "completed"}


def _plain(value: BaseModel) -> Any:
    return value.model_dump(mode="json")


def _needed(conditions: models.Filter) -> Iterator[tuple[str, tuple[str, ...]]]:
    for each in (conditions.must, conditions.should, conditions.must_not):
        for condition in each if isinstance(each, list) else [] if each is None else [each]:
            match condition:
                case models.Filter():
                    yield from _needed(condition)
                case models.IsEmptyCondition(is_empty=field):
                    yield field.key, ("keyword", "bool", "integer", "float")
                case models.FieldCondition(key=key, match=None):
                    yield key, ("integer", "float")
                case models.FieldCondition(key=key, match=models.MatchAny()):
                    yield key, ("keyword",)
                case _:
                    # Chosen by id, for which no index is needed.
                    assert isinstance(condition, models.HasIdCondition)
