"""The commands `agents`: what the processing agents find in messages by their rules."""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from agents.annotation import Annotation, SpokenMessage, annotate
from agents.people_directory import open_people_directory
from bus_schema.envelope import explain
from config.settings import FleetSettings
from language.words import Language
from mindbus.cli.console import show_json_line, show_table
from mindbus.cli.errors import UsageError, read_settings, valid_options
from mindbus.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="The agents that read what people say.")


def _moment(text: str) -> datetime:
    """A time with its zone, which dates in the message are reckoned in; without one, this machine's."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a time; write it such as 2026-04-01T12:00:00+03:00") from None
    return at if at.tzinfo else at.astimezone()


@app.callback()
def _group() -> None:
    """Keep `hear` a command of its group while it is the only one."""


@app.command()
def hear(
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="A message; or see --file.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="Who speaks, such as anna.")] = None,
    at: Annotated[
        datetime | None, typer.Option("--at", metavar="TIME", parser=_moment, help="When; default: now.")
    ] = None,
    lang: Annotated[Language | None, typer.Option("--lang", help="The language; default: that of each text.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="LINES.jsonl", help="Messages, one JSON object a line; - is stdin.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the tasks, facts, mood and task changes that the agents find in a message, without a fleet or a model.

    A line of --file has text, user, at and, if anything was said just before it, context; other keys are ignored.

    [bold]Examples[/bold]

    mindbus agents hear "Remind me tomorrow at 9am to call mom" --user anna

    mindbus agents hear --file messages.jsonl --json
    """
    settings = read_settings(FleetSettings)
    people = open_people_directory(settings.people, settings.sim_dir).people(())
    for message in _messages(text, user, at, file):
        found = annotate(message, people, lang)
        show_json_line(found) if as_json else _show(message, found)


def _messages(text: str | None, user: str | None, at: datetime | None, file: Path | None) -> Iterator[SpokenMessage]:
    if (text is None) == (file is None):
        raise UsageError("give either a TEXT or a --file")
    if file is not None:
        yield from _lines(file)
    elif user is None:
        raise UsageError("say who speaks: --user USER")
    else:
        with valid_options():
            message = SpokenMessage.model_validate(
                {"text": text, "user": user, "at": at or datetime.now().astimezone()}
            )
        yield message


def _lines(file: Path) -> Iterator[SpokenMessage]:
    written = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    for number, line in enumerate(written.splitlines(), 1):
        if line.strip():
            try:
                yield SpokenMessage.model_validate_json(line)
            except ValidationError as invalid:
                raise UsageError(f"{file}:{number}: {explain(invalid)}") from invalid


def _show(message: SpokenMessage, found: Annotation) -> None:
    rows = [
        *(("task", each.text, each.owner or "", each.due or "") for each in found.tasks),
        *((each.kind, each.text, "", "") for each in found.facts),
        *((each.change, each.of, "", each.due or "") for each in found.changes),
        ("mood", f"{found.mood:+.2f}", "", ""),
    ]
    show_table(("", "", "owner", "due"), rows, message.text)
