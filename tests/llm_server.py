"""A scripted model endpoint on loopback that speaks OpenAI's chat completions.

In a test: `async with LlmServer(Says("hello"), Fails(429)) as server: … server.base_url, server.requests`. When the
script is used up, the offline model answers, so that it also serves whole creative runs.

As a process: `python -m tests.llm_server --port 0 --count-file calls.jsonl --delay 0.5` prints its address when it is
ready, and writes down each call when it is asked, again when it is answered (`read_calls`).
"""

import argparse
import asyncio
import hashlib
import json
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self

from agents.models import prompt
from agents.models.errors import ModelRefused
from agents.models.language_model import ModelMessage, ToolCall
from agents.models.offline.model import next_turn
from agents.models.prompt import Verdict

NAME = "scripted-1"
_PIECE_CHARS = 24


@dataclass(frozen=True)
class Says:
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    refusal: str | None = None
    counts_tokens: bool = True


@dataclass(frozen=True)
class Fails:
    status: int
    message: str = "no"
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def busy(cls, status: int = 429, retry_after_s: float = 0.01) -> Self:
        return cls(status, "try later", (("Retry-After", f"{retry_after_s:g}"),))


@dataclass(frozen=True)
class HangsUp:
    """Closes the connection; when streaming, after some pieces."""

    after_pieces: int = 0


@dataclass(frozen=True)
class Stalls:
    """Never answers, as long as the server lives; when streaming, after some pieces of the text."""

    after_pieces: int = 0
    text: str = "word " * 500


@dataclass(frozen=True)
class Drips:
    """Streams a piece of the text every so many seconds; words without end where there is no text."""

    every_s: float = 0.02
    text: str = ""


@dataclass(frozen=True)
class Sends:
    """A body as it is, whatever it means; when streaming, one event each."""

    bodies: tuple[str, ...]


Reply = Says | Fails | HangsUp | Stalls | Drips | Sends


@dataclass(frozen=True)
class Request:
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def messages(self) -> list[ModelMessage]:
        return [ModelMessage(role=each["role"], content=each.get("content") or "") for each in self.body["messages"]]

    @property
    def prompt(self) -> prompt.Prompt:
        return prompt.read(self.messages)

    @property
    def digest(self) -> str:
        """Equal for equal questions, which is how a test sees that something was paid twice."""
        return hashlib.sha256(json.dumps(self.body["messages"], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Call:
    """A line of the count file."""

    event: Literal["asked", "answering", "answered"]
    task: str
    step: str
    digest: str


def read_calls(count_file: Path) -> list[Call]:
    lines = count_file.read_text(encoding="utf-8").splitlines() if count_file.exists() else []
    return [Call(**json.loads(line)) for line in lines]


def offline_reply(request: Request) -> Reply:
    asked = request.body.get("response_format", {}).get("json_schema", {}).get("name")
    if asked not in (None, Verdict.__name__):
        return Fails(400, f"no such schema here: {asked}")
    try:
        return Says(str(next_turn(request.messages, (), Verdict if asked else None)))
    except ModelRefused as error:
        return Fails(400, str(error))


class LlmServer:
    def __init__(
        self,
        *script: Reply,
        otherwise: Callable[[Request], Reply] = offline_reply,
        port: int = 0,
        delay: timedelta = timedelta(0),
        count_file: Path | None = None,
    ) -> None:
        self.script = deque(script)
        self.requests: list[Request] = []
        self.port = port
        self.otherwise = otherwise
        self._delay = delay
        self._count_file = count_file
        self._stopped = asyncio.Event()
        self._connections: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopped.set()
        self._server.close()
        open_now = dict(self._connections)
        for writer in open_now.values():
            writer.close()
        await asyncio.gather(*filter(None, open_now), return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._connections[task] = writer
        try:
            while request := await _read(reader):
                await self._handle(request, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, as clients do
        finally:
            del self._connections[task]
            writer.close()

    async def _handle(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(request)
        self._count("asked", request)
        reply = self.script.popleft() if self.script else await asyncio.to_thread(self.otherwise, request)
        await asyncio.sleep(self._delay.total_seconds())
        if reader.at_eof():
            return
        # Whoever is gone the moment after has the answer or not: it is not counted as answered then.
        self._count("answering", request)
        exchange = _Exchange(writer, self._stopped)
        await (exchange.stream(reply) if request.streams else exchange.answer(reply))
        self._count("answered", request)

    def _count(self, event: Literal["asked", "answering", "answered"], request: Request) -> None:
        if self._count_file:
            call = Call(event, request.prompt.task, request.prompt.step, request.digest)
            with self._count_file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(asdict(call)) + "\n")


class _Exchange:
    """One reply on the wire, whole or in pieces."""

    def __init__(self, writer: asyncio.StreamWriter, stopped: asyncio.Event) -> None:
        self._writer = writer
        self._stopped = stopped

    async def answer(self, reply: Reply) -> None:
        match reply:
            case Says():
                await self._send(200, json.dumps(_completion(reply)))
            case Sends(bodies):
                await self._send(200, "".join(bodies))
            case Fails(status, message, headers):
                await self._send(status, json.dumps({"error": {"message": message}}), headers)
            case HangsUp():
                self._writer.close()
            case Stalls() | Drips():
                await self._stopped.wait()

    async def stream(self, reply: Reply) -> None:
        match reply:
            case Says():
                await self._events([*map(json.dumps, _pieces(reply)), "[DONE]"])
            case Sends(bodies):
                await self._events(bodies)
            case Fails():
                return await self.answer(reply)
            case Drips(every_s, text) if text:
                self._begin_events()
                for piece in _pieces(Says(text)):
                    await self._event(json.dumps(piece))
                    await asyncio.sleep(every_s)
            case Drips(every_s):
                await self._events([json.dumps(_piece({"role": "assistant", "content": ""}))])
                while not self._stopped.is_set():
                    self._writer.write(f"data: {json.dumps(_piece({'content': 'word '}))}\n\n".encode())
                    await self._writer.drain()
                    await asyncio.sleep(every_s)
            case HangsUp(after):
                await self._events(list(map(json.dumps, _pieces(Says("word " * 500))))[:after])
            case Stalls(after, text):
                await self._events(list(map(json.dumps, _pieces(Says(text))))[:after])
                await self._stopped.wait()
        # Without a length only the end of the connection ends the body.
        self._writer.close()
        return None

    async def _events(self, events: Sequence[str]) -> None:
        self._begin_events()
        for event in events:
            await self._event(event)

    def _begin_events(self) -> None:
        self._writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")

    async def _event(self, event: str) -> None:
        self._writer.write(f"data: {event}\n\n".encode())
        await self._writer.drain()

    async def _send(self, status: int, body: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        data = body.encode()
        head = [f"HTTP/1.1 {status} {'OK' if status == 200 else 'No'}", "Content-Type: application/json"]
        head += [f"Content-Length: {len(data)}", *(f"{name}: {value}" for name, value in headers)]
        self._writer.write("\r\n".join([*head, "", ""]).encode() + data)
        await self._writer.drain()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    if reader.at_eof() or not (first := await reader.read(1)):
        return None
    head = first.decode() + (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
    }
    body = await reader.readexactly(int(headers["content-length"]))
    return Request(json.loads(body), headers)


def _completion(reply: Says) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.tool_calls:
        message["tool_calls"] = [_call(call, call.arguments) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _reason(reply)}
    return {**_envelope("chat.completion"), "choices": [choice], "usage": _usage(reply)}


def _pieces(reply: Says) -> Iterator[dict[str, Any]]:
    yield _piece({"role": "assistant", "content": ""})
    for at in range(0, len(reply.text), _PIECE_CHARS):
        yield _piece({"content": reply.text[at : at + _PIECE_CHARS]})
    for index, call in enumerate(reply.tool_calls):
        middle = len(call.arguments) // 2
        yield _piece({"tool_calls": [{"index": index, **_call(call, call.arguments[:middle])}]})
        yield _piece({"tool_calls": [{"index": index, "function": {"arguments": call.arguments[middle:]}}]})
        yield _piece({"tool_calls": [{"index": index}]})
    yield _piece({}, _reason(reply))
    if reply.counts_tokens:
        yield {**_envelope("chat.completion.chunk"), "choices": [], "usage": _usage(reply)}


def _piece(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {**_envelope("chat.completion.chunk"), "choices": [choice]}


def _envelope(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": NAME}


def _call(call: ToolCall, arguments: str) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _reason(reply: Says) -> str:
    return "tool_calls" if reply.tool_calls else reply.finish_reason


def _usage(reply: Says) -> dict[str, int] | None:
    tokens = len(reply.text.split())
    return (
        {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens} if reply.counts_tokens else None
    )


async def _run(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = LlmServer(port=arguments.port, delay=timedelta(seconds=arguments.delay), count_file=arguments.count_file)
    async with server:
        print(server.base_url, flush=True)
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="Answers creative prompts as the offline model does, over HTTP.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--count-file", type=Path)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds per call")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
