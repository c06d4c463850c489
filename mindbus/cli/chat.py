"""The command `chat`: one message to the assistant, or a session with streamed answers and notifications."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.text import Text

from bus_schema.conversations import GetMessage
from bus_schema.dialogue import MAX_MESSAGE_CHARS, Answered, CancelAnswer, Invoke, conversation_trace
from bus_schema.ids import mint
from bus_schema.notification import NotificationSent
from bus_schema.replies import restarts
from mindbus.bus.client import Client
from mindbus.bus.subscriptions import EventSubscription
from mindbus.cli.console import errors, note, show, show_json, write
from mindbus.cli.errors import INTERRUPTED, UsageError, read_settings, valid_options
from mindbus.cli.options import Json, User
from mindbus.cli.session import on_the_bus, run
from mindbus.errors import BusUnavailable, ReplyError, SubscriptionRefused
from mindbus.settings import Settings
from mindbus.tasks import end
from mindbus.terminal import escape_controls

_MAX_INPUT_BYTES = 4 * MAX_MESSAGE_CHARS
_CHUNK_BYTES = 4096
_CANCEL_WITHIN_S = 1.0


class AssistantClient:
    """Sends a user's messages to the assistant; `within_s` is how long an answer may take."""

    def __init__(self, bus: Client, settings: Settings) -> None:
        self._bus = bus
        self.within_s = settings.llm_timeout_s + settings.request_timeout_s

    async def answer(self, invocation: Invoke) -> Answered:
        """The answer; printed while it grows where the invocation streams. Raises ReplyError, BusUnavailable."""
        try:
            if invocation.stream:
                return await self._print_answer(invocation)
            trace = conversation_trace(invocation.user_id)
            return await self._bus.request(invocation, trace=trace, timeout_s=self.within_s)
        except asyncio.CancelledError:
            await self._cancel(invocation)
            raise

    async def _cancel(self, invocation: Invoke) -> None:
        """Have the model called no more: nobody waits for the rest."""
        command = CancelAnswer(user_id=invocation.user_id, message_id=invocation.message_id or "")
        with suppress(TimeoutError, BusUnavailable):
            async with asyncio.timeout(_CANCEL_WITHIN_S):
                await self._bus.send(command, trace=conversation_trace(invocation.user_id))

    async def _print_answer(self, invocation: Invoke) -> Answered:
        shown = ""
        pieces = self._bus.stream(invocation, trace=conversation_trace(invocation.user_id), timeout_s=self.within_s)
        async with aclosing(cast("AsyncGenerator[str | Answered]", pieces)):
            async for piece in pieces:
                if isinstance(piece, Answered):
                    write(_rest(piece.response, shown) + "\n")
                    for line in memory_lines(piece):
                        note(line, style="dim")
                    return piece
                if restarts(piece):
                    write("\n")
                    note("The answer begins again.", style="dim")
                    shown = ""
                shown += piece
                write(piece)
        raise AssertionError("unreachable: a stream ends with its result")


class ChatSession:
    """A conversation at the terminal; typed lines and incoming messages never mix."""

    def __init__(self, bus: Client, assistant: AssistantClient, user_id: str) -> None:
        self._bus, self._assistant, self._user_id = bus, assistant, user_id
        self._next: asyncio.Queue[bytes | NotificationSent | None] = asyncio.Queue()
        self._is_prompting = sys.stdin.isatty() and sys.stderr.isatty()

    async def converse(self) -> None:
        """Converse until the input ends."""
        trace = conversation_trace(self._user_id)
        async with AsyncExitStack() as stack:
            # Whose login may not hear events talks without notifications.
            with suppress(SubscriptionRefused):
                notifications = await stack.enter_async_context(self._bus.subscribe(NotificationSent, trace=trace))
                stack.push_async_callback(end, asyncio.create_task(self._receive(notifications)))
            _start_reader(asyncio.get_running_loop(), self._next)
            if self._is_prompting:
                note(f"You are {self._user_id}. Ctrl-D ends the conversation.")
            self._prompt()
            while (item := await self._next.get()) is not None:
                await self._handle(item)
                self._prompt()

    async def _receive(self, notifications: EventSubscription[NotificationSent]) -> None:
        async for sent in notifications:
            if sent.to_user == self._user_id:
                self._next.put_nowait(sent)

    async def _handle(self, item: bytes | NotificationSent) -> None:
        try:
            if isinstance(item, NotificationSent):
                await self._show(item)
            elif item.strip():
                await self._assistant.answer(invocation_of(self._user_id, item.decode(), stream=True))
        except UnicodeDecodeError:
            _print_error("that is not text in UTF-8; set the terminal to that encoding")
        except (UsageError, ReplyError, BusUnavailable) as error:
            _print_error(str(error))

    async def _show(self, sent: NotificationSent) -> None:
        if self._is_prompting:
            # The cursor stands behind the prompt.
            errors().print()
        query = GetMessage(user_id=self._user_id, message_id=sent.message_id)
        message = await self._bus.request(query, trace=conversation_trace(self._user_id))
        show(Text.assemble(("notification: ", "bold yellow"), escape_controls(message.content or "")))

    def _prompt(self) -> None:
        if self._is_prompting:
            errors().print(f"{self._user_id}> ", end="", markup=False)


def _print_error(message: str) -> None:
    errors().print(Text.assemble(("error: ", "bold red"), escape_controls(message)), soft_wrap=True)


def _start_reader(loop: asyncio.AbstractEventLoop, lines: "asyncio.Queue[bytes | NotificationSent | None]") -> None:
    """Hand over what is typed, line by line, then None."""

    def enqueue(line: bytes | None) -> None:
        with suppress(RuntimeError):  # the talk is over, its loop closed
            loop.call_soon_threadsafe(lines.put_nowait, line)

    # Nothing can interrupt a thread that waits for input: as a daemon it does not hold up the end. Not through
    # sys.stdin: a thread inside its lock would spoil the interpreter's own end.
    threading.Thread(target=partial(_read_lines, enqueue), name="typed lines", daemon=True).start()


def _read_lines(enqueue: Callable[[bytes | None], None]) -> None:
    remainder = b""
    while chunk := os.read(0, _CHUNK_BYTES):
        *lines, remainder = (remainder + chunk).split(b"\n")
        for line in lines:
            enqueue(line)
        # Too long for a message already, however it goes on.
        remainder = remainder[: _MAX_INPUT_BYTES + _CHUNK_BYTES]
    if remainder:
        enqueue(remainder)
    enqueue(None)


def invocation_of(user_id: str, text: str, *, stream: bool) -> Invoke:
    """Raises UsageError where it cannot be said."""
    with valid_options():
        return Invoke(user_id=user_id, message=text, message_id=mint("msg"), stream=stream)


def memory_lines(answer: Answered) -> list[str]:
    """The memory that an answer was made with, for `mindbus episodes show ID`, or that it did not come in time."""
    lines = [] if answer.memory is None else [f"(memory was {answer.memory}: this may lack something that is known)"]
    used = [f"{each.episode_id} ({each.time:%Y-%m-%d})" for each in answer.episodes if each.used]
    seen = len(answer.episodes) - len(used)
    if used:
        lines.append(f"(from memory: {', '.join(used)})")
    if seen or answer.kem_ids:
        lines.append(f"(also looked at: episodes {seen}, units of shared memory {len(answer.kem_ids)})")
    return lines


def _rest(response: str, shown: str) -> str:
    """The part of the answer that the streamed pieces have not shown; pieces may be lost, the whole answer never is."""
    return response.removeprefix(shown) if response.startswith(shown) else f"\n{response}"


app = typer.Typer()


@app.command()
def chat(
    user: User,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="Send this one message; - is standard input.")
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="The same as TEXT.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Send the text of this file; - is standard input.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Talk to the assistant as a user, one message or until Ctrl-D: the answer is shown as it comes.

    In a conversation each line is a message; notifications that arrive meanwhile are shown, marked as such.

    [bold]Examples[/bold]

    mindbus chat --user anna

    mindbus chat --user anna "What is due today?"

    mindbus chat --user anna - --json < question.txt
    """
    if text is not None and message is not None:
        raise UsageError("give the message once, as TEXT or by --message; quote one of several words")
    said = _text(message if text is None else text, file)
    if said is not None:
        invocation = invocation_of(user, said, stream=not as_json)
        try:
            answered = run(_send(user, invocation))
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        if as_json:
            show_json(answered.model_dump(mode="json", include={"message_id", "response", "delegations"}))
        return
    if as_json:
        raise UsageError("--json is for one message; give it as TEXT or with --file FILE")
    try:
        run(_talk(user))
    except KeyboardInterrupt:
        return


async def _send(user_id: str, invocation: Invoke) -> Answered:
    settings = read_settings()
    async with on_the_bus(f"user.{user_id}", settings, goes_on=None, speaks=True) as bus:
        return await AssistantClient(bus, settings).answer(invocation)


async def _talk(user_id: str) -> None:
    settings = read_settings()
    async with on_the_bus(f"user.{user_id}", settings, goes_on=None, speaks=True) as bus:
        await ChatSession(bus, AssistantClient(bus, settings), user_id).converse()


def _text(message: str | None, file: Path | None) -> str | None:
    """The message given by option or file, None for an interactive session. Raises UsageError."""
    if message is not None and file is not None:
        raise UsageError("give the message as TEXT or by --file, not both")
    if message != "-" and file is None:
        return message
    name = "standard input" if file is None or str(file) == "-" else str(file)
    try:
        content = _read(None if name == "standard input" else file)
        if len(content) > _MAX_INPUT_BYTES:
            raise UsageError(f"{name} is longer than a message, which has {MAX_MESSAGE_CHARS} characters at most")
        return content.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except OSError as unreadable:
        raise UsageError(f"{name} cannot be read: {unreadable.strerror}") from unreadable
    except UnicodeDecodeError as undecodable:
        raise UsageError(f"{name} is not text in UTF-8; save it in that encoding") from undecodable


def _read(file: Path | None) -> bytes:
    if file is None:
        return sys.stdin.buffer.read(_MAX_INPUT_BYTES + 1)
    with file.open("rb") as source:
        return source.read(_MAX_INPUT_BYTES + 1)
