"""`python -m benchmarks.first_token` measures the time to the first token while three agents read fragments.

The model's endpoint is scripted: it serves four calls at once, or one. Its own time to a first token is fixed, and
subtracted; a fragment takes it two seconds to read.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.servers.workers import workers_of
from bus_schema.dialogue import Answered, DialogueFragment, DialogueMessage, Invoke, conversation_trace
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.logs import configure_logs
from mindbus_fleet.node.private import PrivateNode

# As `mindbus up` groups them.
LIGHT = (
    "storage",
    "history",
    "swm",
    "tracker",
    "context",
    "dialogue",
    "task_manager",
    "context_manager",
    "mood_watcher",
)
MEMORY = ("glm", "kps", "lsm")
FIRST_TOKEN_S, TOKENS, TOKEN_S, READING_S = 0.2, 10, 0.02, 2.0
_READERS, _WARM_UP = 6, 3
_SAID = (
    "Борис, подготовь договор с поставщиком до пятницы, бюджет 500 тысяч рублей.",
    "We decided to move the release to May. Please remind Alice to check the tests tomorrow.",
)
_READING = {"tasks": {"items": []}, "facts": {"items": []}, "mood": {"tone": 0.0, "evidence": []}}


class ScriptedEndpoint:
    """Chat completions on loopback, so many at once; the others wait, as they do at a local server."""

    def __init__(self, at_once: int) -> None:
        self._places = asyncio.Semaphore(at_once)
        self.port = 0
        self.readings = self.broken_off = 0
        self.is_reading = asyncio.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["ScriptedEndpoint"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.split("content-length:")[1].split("\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                answer = asyncio.create_task(self._stream(writer) if body.get("stream") else self._read(body, writer))
                gone = asyncio.create_task(reader.read(1))  # a client sends nothing while it waits
                await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
                if not answer.done():
                    self.broken_off += 1
                answer.cancel()
                gone.cancel()
                await asyncio.wait((answer, gone))
                if body.get("stream") or reader.at_eof():
                    break
        writer.close()

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        async with self._places:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            await asyncio.sleep(FIRST_TOKEN_S)
            for number in range(TOKENS):
                _event(writer, {"index": 0, "delta": {"content": f"word{number} "}, "finish_reason": None})
                await asyncio.sleep(TOKEN_S)
            _event(writer, {"index": 0, "delta": {}, "finish_reason": "stop"})
            writer.write(b"data: [DONE]\n\n")
            await writer.drain()

    async def _read(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.is_reading.set()
        async with self._places:
            await asyncio.sleep(READING_S)
        keys = body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
        answer = {key: value for key, value in _READING.items() if key in keys}
        message = {"role": "assistant", "content": json.dumps(answer)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        data = json.dumps(_envelope("chat.completion", choice)).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        writer.write(f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        await writer.drain()
        self.readings += 1


def _event(writer: asyncio.StreamWriter, choice: dict[str, Any]) -> None:
    writer.write(f"data: {json.dumps(_envelope('chat.completion.chunk', choice))}\n\n".encode())


def _envelope(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted-1", "choices": [choice]}


@dataclass
class FirstTokens:
    """Milliseconds to the first token of answers, beyond the endpoint's own; calls that agents made meanwhile."""

    quiet_ms: list[float] = field(default_factory=list)
    busy_ms: list[float] = field(default_factory=list)
    readings: int = 0
    broken_off: int = 0

    def medians(self) -> dict[str, float]:
        numbers = {"quiet_p50_ms": median(self.quiet_ms), "busy_p50_ms": median(self.busy_ms)}
        numbers["busy_p90_ms"] = quantiles(self.busy_ms, n=10, method="inclusive")[8]
        return {name: round(value, 1) for name, value in numbers.items()} | {
            "readings": self.readings,
            "broken_off": self.broken_off,
        }


async def measure(at_once: int, questions: int, *, apart: bool) -> FirstTokens:
    """Ask while nothing else goes on, then while fragments of other users are read without pause."""
    report = FirstTokens()
    async with _fleet(at_once, apart=apart) as (bus, endpoint):
        for number in range(questions + _WARM_UP):
            took = await _first_token_ms(bus, "quiet", f"{number}: {_SAID[number % 2]}")
            report.quiet_ms += [took] if number >= _WARM_UP else []
        reading = asyncio.create_task(_make_fragments(bus, READING_S / at_once))
        try:
            await endpoint.is_reading.wait()
            for number in range(questions + _WARM_UP):
                took = await _first_token_ms(bus, "busy", f"{number}: {_SAID[number % 2]}")
                report.busy_ms += [took] if number >= _WARM_UP else []
                # Not in step with the readings.
                await asyncio.sleep(0.5 + 0.37 * (number % 4))
        finally:
            reading.cancel()
            await asyncio.wait((reading,))
        report.readings, report.broken_off = endpoint.readings, endpoint.broken_off
    return report


async def _first_token_ms(bus: Client, user_id: str, message: str) -> float:
    began, first = time.perf_counter(), 0.0
    command = Invoke(user_id=user_id, message=message, stream=True)
    async for piece in bus.stream(command, trace=conversation_trace(user_id), timeout_s=120):
        if not first and (piece if isinstance(piece, str) else True):
            first = time.perf_counter()
        if isinstance(piece, Answered) and not piece.response.startswith("word0"):
            raise RuntimeError(f"another answer than the endpoint's: {piece.response}")
    return 1000 * (first - began - FIRST_TOKEN_S)


async def _make_fragments(bus: Client, pause_s: float) -> None:
    """Publish fragments of many users, so that there is always one to read."""
    for number in count():
        user_id, now = f"reader-{number % _READERS}", datetime.now(UTC)
        said = tuple(
            DialogueMessage(
                message_id=f"msg_{number}-{place}", user_id=user_id, role="user", content=f"{number}: {text}", time=now
            )
            for place, text in enumerate(_SAID)
        )
        fragment = DialogueFragment(
            fragment_id=f"frag_{number}",
            user_id=user_id,
            message_ids=tuple(message.message_id for message in said),
            messages=said,
            started_at=now,
            ended_at=now,
            reason="ended",
        )
        await bus.publish(fragment, trace=conversation_trace(user_id))
        await asyncio.sleep(pause_s)


@asynccontextmanager
async def _fleet(at_once: int, *, apart: bool) -> AsyncIterator[tuple[Client, ScriptedEndpoint]]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mindbus-bench-")))
        endpoint = await stack.enter_async_context(ScriptedEndpoint(at_once).serving())
        node = PrivateNode(folder / "rabbitmq")
        await node.start()
        stack.push_async_callback(node.kill)
        settings = FleetSettings(
            amqp_url=node.amqp_url,
            data_dir=folder / "data",
            log_level="ERROR",
            llm_base_url=endpoint.base_url,
            llm_model="scripted-1",
            llm_concurrency=at_once,
        )
        workers = stack.enter_context(workers_of(settings))
        await (workers.start(*MEMORY) if apart else workers.start_together(*MEMORY))
        await (workers.start(*LIGHT) if apart else workers.start_together(*LIGHT))
        yield await stack.enter_async_context(connect("user.local", settings=settings)), endpoint


def _as_text(at_once: int, report: FirstTokens) -> str:
    found = report.medians()
    return (
        f"  serves {at_once} at once   nothing else p50 {found['quiet_p50_ms']:7.1f} ms   while fragments are read "
        f"p50 {found['busy_p50_ms']:7.1f} ms   p90 {found['busy_p90_ms']:7.1f} ms   "
        f"({report.readings} readings, {report.broken_off} interrupted)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few questions, to see that it works")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    parser.add_argument("--apart", action="store_true", help="each worker in a process of its own")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    questions = 3 if options.quick else 20
    reports = {at_once: asyncio.run(measure(at_once, questions, apart=options.apart)) for at_once in (4, 1)}
    if options.json:
        print(json.dumps({at_once: asdict(report) | report.medians() for at_once, report in reports.items()}))
        return
    print(f"time to first token beyond the endpoint's own {1000 * FIRST_TOKEN_S:.0f} ms, {questions} questions each")
    print("\n".join(_as_text(at_once, report) for at_once, report in reports.items()), file=sys.stdout)


if __name__ == "__main__":
    main()
