"""The commands `history`: conversation histories that models are given."""

from typing import Annotated

import typer
from rich.text import Text

from bus_schema.history import (
    ClearHistory,
    HistoryMessage,
    HistorySummary,
    ListHistories,
    ShowHistory,
    chat_key,
)
from mindbus.cli.console import local_time, say, show_json, show_result, show_table
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import answer_to, items_of
from mindbus.cli.users import require_consent
from mindbus.terminal import escape_controls

app = typer.Typer(no_args_is_help=True, help="Show and clear what models are reminded of.")

_PAGE = 200
_STYLES = {"system": "dim", "tool": "dim", "assistant": "cyan"}

Key = Annotated[
    str,
    typer.Argument(
        metavar="KEY", help="chat_history:CHAT or subagent:NAME:CHAT; a number alone is a chat's own history."
    ),
]


@app.command()
def show(key: Key, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Show all that is kept under a key; as JSON, the array as it is stored.

    [bold]Examples[/bold]

    mindbus history show chat_history:12345

    mindbus history show subagent:analytic:12345 --json
    """
    messages = answer_to(lambda: ShowHistory(key=_whole(key)), acting).messages
    if as_json:
        show_json([message.as_stored() for message in messages])
    elif not messages:
        say(f"nothing is kept under {_whole(key)}")
    else:
        show_table(("time", "role", "content"), map(_row, messages))


@app.command("ls")
def list_(
    chat: Annotated[str | None, typer.Option("--chat", metavar="CHAT", help="Only this chat.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many to show.")] = 100,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """List histories by their keys.

    [bold]Examples[/bold]

    mindbus history ls

    mindbus history ls --chat 12345 --json
    """
    rows = items_of(lambda: ListHistories(chat_id=chat, limit=min(limit, _PAGE)), acting, limit)
    show_result(rows, lambda _all: show_table(("key", "messages", "last"), map(_summary, rows)), as_json=as_json)


@app.command()
def clear(
    key: Key,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Delete what is kept under a key, for good.

    [bold]Examples[/bold]

    mindbus history clear subagent:analytic:12345

    mindbus history clear 12345 --yes
    """
    full_key = _whole(key)
    require_consent(f"Forget what is kept under {full_key}, for good?", is_given=yes)
    answer_to(lambda: ClearHistory(key=full_key), acting)
    show_result({"key": full_key, "cleared": True}, f"nothing is kept under {full_key} any more", as_json=as_json)


def _whole(key: str) -> str:
    return chat_key(key) if key.isdecimal() else key


def _row(message: HistoryMessage) -> tuple[object, ...]:
    style = _STYLES.get(message.role, "")
    calls = [f"{call.function.name}({call.function.arguments})" for call in message.tool_calls or ()]
    pointed = [f"(in {message.ref.artifact_id}, {message.ref.size_bytes} bytes)"] if message.ref else []
    content = "\n".join(filter(None, [message.content, *calls, *pointed]))
    who = f"{message.role} {message.name}" if message.name else message.role
    return (
        local_time(message.timestamp),
        Text(escape_controls(who), style=style),
        Text(escape_controls(content), style=style),
    )


def _summary(one: HistorySummary) -> tuple[object, ...]:
    length = "no history" if one.length is None else one.length
    return one.key, length, local_time(one.last) if one.last else ""
