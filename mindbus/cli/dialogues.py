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
    conversation_trace,
)
from mindbus.cli.console import local_time, show_result, show_table
from mindbus.cli.errors import read_settings
from mindbus.cli.options import LOCAL_USER, As, Json, UserArgument
from mindbus.cli.session import answer_to, items_of, on_the_bus, request_items, run
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus.sdk.errors import ArtifactError, StorageAway
from mindbus.terminal import escape_controls

app = typer.Typer(no_args_is_help=True, help="List and show dialogues, end one.")

_PAGE = 200
_SHORT_BYTES = 4 * MAX_MESSAGE_CHARS
_MARKS = {"hidden": "dim", "notification": "yellow", "response": "cyan"}


@app.command("ls")
def list_(
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many to show, latest first.")] = 100,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """List dialogues, the latest first; one is under way as long as something said is in no fragment yet.

    [bold]Example[/bold]

    mindbus dialogues ls
    """
    dialogues = items_of(lambda: ListDialogues(limit=min(limit, _PAGE)), acting, limit)
    show_result(dialogues, _show_dialogues, as_json=as_json)


@app.command()
def history(
    user: UserArgument,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="How many of the last messages; default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a user's dialogue in order, as it is stored: hidden instructions too, marked as such.

    [bold]Examples[/bold]

    mindbus dialogues history anna --limit 20

    mindbus dialogues history anna --json
    """
    messages = run(_history(user, limit))
    show_result(messages, lambda _all: show_table(("at", "who", "kind", "what"), map(_row, messages)), as_json=as_json)


@app.command()
def end(user: UserArgument, as_json: Json = False) -> None:
    """End a user's dialogue: what is in its buffer becomes a fragment, which the agents read.

    [bold]Example[/bold]

    mindbus dialogues end anna
    """
    ended = answer_to(lambda: EndDialogue(user_id=user), f"user.{user}", trace=conversation_trace(user))
    text = f"ended; fragment {ended.fragment_id}" if ended.fragment_id else "there was nothing to make a fragment of"
    show_result(ended, text, as_json=as_json)


async def _history(user_id: str, limit: int | None) -> list[dict[str, Any]]:
    settings = read_settings()
    async with on_the_bus(f"user.{user_id}", settings) as bus:
        # From the newest back: the last few need not wait for the rest.
        query = GetMessages(user_id=user_id, order="newest", limit=min(limit or _PAGE, _PAGE))
        messages = (await request_items(bus, query, limit, conversation_trace(user_id)))[::-1]
        if all(message.ref is None for message in messages):
            return [_plain(message) for message in messages]
        async with open_artifacts(bus, settings) as artifacts:
            return [_plain(message) | await _resolve_pointer(message, artifacts) for message in messages]


def _show_dialogues(dialogues: list[Dialogue]) -> None:
    show_table(
        ("user", "messages", "last activity", "state"),
        (
            (d.user_id, d.messages, local_time(d.last_activity), "under way" if d.is_active else "at rest")
            for d in dialogues
        ),
    )


def _plain(message: DialogueMessage) -> dict[str, Any]:
    named = {name for name in ("kem_ids", "episodes", "memory") if getattr(message, name)}
    return message.model_dump(mode="json", include={"message_id", "role", "kind", "content", "time"} | named)


async def _resolve_pointer(message: DialogueMessage, artifacts: Artifacts) -> dict[str, Any]:
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


def _row(message: dict[str, Any]) -> tuple[object, ...]:
    ref = message.get("ref")
    what = (
        escape_controls(message["content"] or "")
        if ref is None
        else f"(in {ref['artifact_id']}, {ref['size_bytes']} bytes)"
    )
    kind = message["kind"]
    shown = "hidden instruction" if kind == "hidden" else kind
    style = _MARKS.get(kind, "")
    at = local_time(datetime.fromisoformat(message["time"]))
    return at, message["role"], Text(shown, style=style), Text(what, style=style)
