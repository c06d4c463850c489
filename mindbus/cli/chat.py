"""The command `chat`: one message to the assistant, or a session at the terminal."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bus_schema.dialogue import MAX_MESSAGE_CHARS, Answered, Invoke, conversation_trace
from mindbus.cli.chat_session import AssistantClient, ChatSession, invocation_of
from mindbus.cli.console import show_json
from mindbus.cli.environment import read_settings
from mindbus.cli.errors import UsageError
from mindbus.cli.options import Json, User
from mindbus.cli.session import on_the_bus, run

app = typer.Typer()

_LONGEST_BYTES = 4 * MAX_MESSAGE_CHARS
_INTERRUPTED = 130


@app.command()
def chat(
    user: User,
    message: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="Say this alone; - is standard input.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Say what this text file says; - is standard input.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say something to the assistant as a user, or talk until Ctrl-D: the answer is shown as it comes.

    In a talk a line is a message; notifications that come meanwhile are shown, marked as such.

    [bold]Examples[/bold]

    mindbus chat --user anna

    mindbus chat --user anna --message "What is due today?"

    mindbus chat --user anna --message - --json < question.txt
    """
    text = _text(message, file)
    if text is not None:
        said = invocation_of(user, text, stream=not as_json)
        try:
            answered = run(_say(user, said))
        except KeyboardInterrupt:
            raise typer.Exit(_INTERRUPTED) from None
        if as_json:
            # Nobody is delegated to yet.
            show_json({"message_id": answered.message_id, "response": answered.response, "delegations": []})
        return
    if as_json:
        raise UsageError("--json is for one message; give it with --message TEXT or --file FILE")
    try:
        run(_talk(user))
    except KeyboardInterrupt:
        return


async def _say(user_id: str, said: Invoke) -> Answered:
    settings = read_settings()
    async with on_the_bus(f"user.{user_id}", settings) as bus:
        speaker = AssistantClient(bus, settings)
        if said.stream:
            return await speaker.say_aloud(said)
        return await bus.request(said, trace=conversation_trace(user_id), timeout_s=speaker.within_s)


async def _talk(user_id: str) -> None:
    settings = read_settings()
    async with on_the_bus(f"user.{user_id}", settings) as bus:
        await ChatSession(bus, AssistantClient(bus, settings), user_id).go_on()


def _text(message: str | None, file: Path | None) -> str | None:
    """What is to be said; None: it will be typed. Raises UsageError."""
    if message is not None and file is not None:
        raise UsageError("give the message by --message or by --file, not by both")
    if message != "-" and file is None:
        return message
    name = "standard input" if file is None or str(file) == "-" else str(file)
    try:
        content = _read(None if name == "standard input" else file)
        if len(content) > _LONGEST_BYTES:
            raise UsageError(f"{name} is longer than a message, which has {MAX_MESSAGE_CHARS} characters at most")
        return content.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except OSError as unreadable:
        raise UsageError(f"{name} cannot be read: {unreadable.strerror}") from unreadable
    except UnicodeDecodeError as undecodable:
        raise UsageError(f"{name} is not text in UTF-8; save it in that encoding") from undecodable


def _read(file: Path | None) -> bytes:
    if file is None:
        return sys.stdin.buffer.read(_LONGEST_BYTES + 1)
    with file.open("rb") as source:
        return source.read(_LONGEST_BYTES + 1)
