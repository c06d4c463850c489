"""A talk of long ago for long-term memory, with the times at which it was said."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from bus_schema.lsm import Recorded
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.cli.console import say, show_json
from mindbus.cli.errors import CommandError
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.paging import progress_of
from mindbus.cli.session import on_the_bus, run
from mindbus.errors import BusUnavailable, ReplyError
from mindbus_fleet.cli.episode_lines import Batch, Said, batches_of, read_said


class Imported(BaseModel):
    """How much of a file is in the log for good, how much of it since now."""

    messages: int
    new: int
    chats: int


def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", exists=True, dir_okay=False, readable=True, help="JSON, a message a line."),
    ],
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Have long-term memory take in what was said, at the times that the file gives; again, it changes nothing.

    A line is {chat_id, role, content, time}, with message_id and speaker where they are known; role is user or
    assistant, time has a zone. Nothing is sent before every line can be used.

    [bold]Examples[/bold]

    mindbus episodes import chats.jsonl

    mindbus episodes import chats.jsonl --json
    """
    said = read_said(file)
    with progress_of("remembering") as tell:
        imported = run(_import(said, acting, tell))
    if as_json:
        show_json(imported)
    else:
        say(f"{imported.messages} messages of {imported.chats} chats are remembered, {imported.new} of them new")


async def _import(said: list[Said], identity: str, tell: Callable[[int, int], None]) -> Imported:
    done = new = 0
    tell(done, len(said))
    async with on_the_bus(identity) as bus:
        for batch in batches_of(said):
            new += (await _recorded(batch, done, bus)).new
            done += len(batch.said)
            tell(done, len(said))
    return Imported(messages=done, new=new, chats=len({each.chat_id for each in said}))


async def _recorded(batch: Batch, done: int, bus: Client) -> Recorded:
    try:
        return await bus.request(batch.command)
    except (ReplyError, BusUnavailable) as no:
        code = no.code if isinstance(no, ReplyError) else Code.UNAVAILABLE
        kept = f"{done} messages are remembered; the same import again goes on from there"
        raise CommandError(f"{batch.lines}: {no}\n{kept}", code) from no
