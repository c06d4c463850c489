"""A collector of OpenTelemetry's, as far as an exporter sees: OTLP over HTTP, protobuf, gzip or not."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class CollectedSpan:
    """A span as it arrived; `service` and `pid` are the resource's."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    service: str
    pid: int
    start_ns: int
    end_ns: int
    has_failed: bool
    attributes: dict[str, Any] = field(default_factory=dict)


class Collector:
    """All that has been exported to it, at `endpoint`."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.bodies: list[bytes] = []
        self._spans: list[CollectedSpan] = []
        self._lock = threading.Lock()

    @property
    def spans(self) -> list[CollectedSpan]:
        with self._lock:
            return list(self._spans)

    def of_trace(self, trace_id: str) -> list[CollectedSpan]:
        return sorted((each for each in self.spans if each.trace_id == trace_id), key=lambda each: each.start_ns)

    def named(self, name: str) -> list[CollectedSpan]:
        return [each for each in self.spans if each.name == name]

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        found = [
            _collected(resource.resource, span)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        with self._lock:
            self.bodies.append(body)
            self._spans += found


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a port of its own, for the time of a block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_known = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
            if is_known:
                collector.take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_about: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield collector
        finally:
            server.shutdown()
            serving.join()


def _collected(resource: Any, span: Any) -> CollectedSpan:
    about = {each.key: each.value for each in resource.attributes}
    return CollectedSpan(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        about["service.name"].string_value,
        about["process.pid"].int_value,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code == 2,  # STATUS_CODE_ERROR
        {each.key: getattr(each.value, each.value.WhichOneof("value") or "string_value") for each in span.attributes},
    )
