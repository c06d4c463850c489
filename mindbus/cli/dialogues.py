"""The commands `dialogues`: list, show and end dialogues."""

from datetime import datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from bus_schema.artifacts import ArtifactRef
from bus_schema.conversations import Dialogue, GetMessages, ListDialogues
from bus_schema.dialogue import (
    MAX_MESSAGE_CHARS,
    DialogueMessage,
    EndDialogue,
    Ended,
    conversation_trace,
)
from mindbus.bus.client import Client
from mindbus.cli.console import say, show_json, show_table
from mindbus.cli.environment import read_settings
from mindbus.cli.options import LOCAL_USER, As, Json, UserArgument
from mindbus.cli.session import on_the_bus, run
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus.sdk.errors import ArtifactError, StorageAway
from mindbus.terminal import escape_controls

app = typer.Typer(no_args_is_help=True, help="Look at dialogues, end one.")

_PAGE = 200
_SHORT_BYTES = 4 * MAX_MESSAGE_CHARS
_MARKS = {"hidden": "dim", "notification": "yellow", "response": "cyan"}


@app.command("ls")
def list_(
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="The latest so many.")] = 100,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """List dialogues, the latest first; one is under way as long as something said is in no fragment yet.

    [bold]Example[/bold]

    mindbus dialogues ls
    """
    found = run(_dialogues(limit, acting))
    if as_json:
        show_json(found)
        return
    show_table(
        ("user", "messages", "last activity", "state"),
        ((d.user_id, d.messages, _at(d.last_activity), "under way" if d.is_active else "at rest") for d in found),
    )


@app.command()
def history(
    user: UserArgument,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="The last so many; else all.")] = None,
    as_json: Json = False,
) -> None:
    """Show what was said with a user, in order, as it is stored: hidden instructions too, marked as such.

    [bold]Examples[/bold]

    mindbus dialogues history anna --limit 20

    mindbus dialogues history anna --json
    """
    found = run(_history(user, limit))
    if as_json:
        show_json(found)
    else:
        show_table(("at", "who", "kind", "what"), map(_row, found))


@app.command()
def end(user: UserArgument, as_json: Json = False) -> None:
    """End a user's dialogue: what is in its buffer becomes a fragment, which the agents hear.

    [bold]Example[/bold]

    mindbus dialogues end anna
    """
    ended = run(_end(user))
    if as_json:
        show_json(ended)
    else:
        say(f"ended; fragment {ended.fragment_id}" if ended.fragment_id else "there was nothing to make a fragment of")


async def _dialogues(limit: int, identity: str) -> list[Dialogue]:
    found: list[Dialogue] = []
    wanted = ListDialogues(limit=min(limit, _PAGE))
    async with on_the_bus(identity) as bus:
        while True:
            page = await bus.request(wanted)
            found += page.items
            if page.next_cursor is None or len(found) >= limit:
                return found[:limit]
            wanted = wanted.model_copy(update={"cursor": page.next_cursor})


async def _history(user_id: str, limit: int | None) -> list[dict[str, Any]]:
    settings = read_settings()
    async with on_the_bus(f"user.{user_id}", settings) as bus:
        said = await _messages(bus, user_id, limit)
        if all(message.ref is None for message in said):
            return [_told(message) for message in said]
        async with open_artifacts(bus, settings) as artifacts:
            return [_told(message) | await _pointed_at(message, artifacts) for message in said]


async def _messages(bus: Client, user_id: str, limit: int | None) -> list[DialogueMessage]:
    """From the newest back: whoever wants the last few does not wait for the rest."""
    found: list[DialogueMessage] = []
    wanted = GetMessages(user_id=user_id, order="newest", limit=min(limit or _PAGE, _PAGE))
    while True:
        page = await bus.request(wanted, trace=conversation_trace(user_id))
        found += page.items
        if page.next_cursor is None or (limit is not None and len(found) >= limit):
            return found[:limit][::-1]
        wanted = wanted.model_copy(update={"cursor": page.next_cursor})


def _told(message: DialogueMessage) -> dict[str, Any]:
    named = {"kem_ids"} if message.kem_ids else set()
    return message.model_dump(mode="json", include={"message_id", "role", "kind", "content", "time"} | named)


async def _pointed_at(message: DialogueMessage, artifacts: Artifacts) -> dict[str, Any]:
    """The words where they are few, else the way to them."""
    ref = message.ref
    if ref is None:
        return {}
    text = await _short_text(ref, message.trace_id, artifacts)
    return {"content": text} if text is not None else {"ref": ref.model_dump(mode="json")}


async def _short_text(ref: ArtifactRef, trace: str, artifacts: Artifacts) -> str | None:
    if ref.size_bytes > _SHORT_BYTES:
        return None
    try:
        return (await artifacts.get(ref.artifact_id, trace=trace, max_bytes=_SHORT_BYTES)).decode()
    except (ArtifactError, StorageAway, UnicodeDecodeError):
        # That it was said is known, whatever has become of the words.
        return None


async def _end(user_id: str) -> Ended:
    async with on_the_bus(f"user.{user_id}") as bus:
        return await bus.request(EndDialogue(user_id=user_id), trace=conversation_trace(user_id))


def _row(told: dict[str, Any]) -> tuple[object, ...]:
    ref = told.get("ref")
    what = (
        escape_controls(told["content"] or "")
        if ref is None
        else f"(in {ref['artifact_id']}, {ref['size_bytes']} bytes)"
    )
    kind = told["kind"]
    shown = "hidden instruction" if kind == "hidden" else kind
    style = _MARKS.get(kind, "")
    at = _at(datetime.fromisoformat(told["time"]))
    return at, told["role"], Text(shown, style=style), Text(what, style=style)


def _at(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
