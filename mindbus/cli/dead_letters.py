"""The commands `dlq`: list, show, replay and drop dead letters."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from bus_schema.envelope import NotAnEnvelope, from_wire
from bus_schema.replies import Code
from mindbus.bus.connection import find_broker
from mindbus.bus.deadletters import DeadLetter, DeadLetters
from mindbus.cli.console import say, show_json, show_result, show_table
from mindbus.cli.errors import CommandError, UsageError, read_settings
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import require_reachable, run
from mindbus.management import open_management
from mindbus.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Show messages that could not be handled, replay or drop them.")

Service = Annotated[str | None, typer.Option("--service", help="Only this service's; default: all.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Message ids; the beginning is enough.")]
All = Annotated[bool, typer.Option("--all", help="All of them.")]
_DEAD = ".dead"
_PREFIX = "mb.q."
_LIMIT = 10_000
_SHOWN_CHARACTERS = 80


@app.command("ls")
def list_(
    service: Service = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=_LIMIT, help="The most to show of each service.")] = 50,
    as_json: Json = False,
) -> None:
    """List dead letters, the oldest of each service first.

    [bold]Example[/bold]

    mindbus dlq ls --service storage
    """
    letters = run(_list(service, limit))
    rows = [
        (x.message_id, x.service, x.type, x.code, x.attempt, x.reason[:_SHOWN_CHARACTERS], x.died_at) for x in letters
    ]
    columns = ("id", "service", "type", "code", "attempt", "reason", "died at")
    show_result([_plain(x) for x in letters], lambda _letters: show_table(columns, rows), as_json=as_json)


@app.command()
def show(
    message_id: Annotated[str, typer.Argument(metavar="ID", help="The message id; the beginning is enough.")],
    service: Service = None,
    as_json: Json = False,
) -> None:
    """Show one dead letter whole, with its body.

    [bold]Example[/bold]

    mindbus dlq show 0192…
    """
    letters = run(_list(service, _LIMIT))
    letter = next((letter for letter in letters if letter.message_id.startswith(message_id)), None)
    if letter is None:
        raise CommandError(f"there is no dead letter {message_id}: `mindbus dlq ls` lists them", Code.NOT_FOUND)
    show_result(_plain(letter) | {"body": _body(letter)}, _show_letter, as_json=as_json)


@app.command()
def replay(
    ids: Ids = None, every: All = False, service: Service = None, acting: As = LOCAL_USER, as_json: Json = False
) -> None:
    """Send dead letters back to where they failed, as first attempts.

    [bold]Examples[/bold]

    mindbus dlq replay 0192…

    mindbus dlq replay --all --service storage
    """
    chosen = _chosen(ids, every=every)
    letters = run(for_services(service, lambda letters, name: letters.replay(name, chosen, acting)))
    _show_settled("replayed", letters, ids, as_json=as_json)


@app.command()
def drop(ids: Ids = None, every: All = False, service: Service = None, as_json: Json = False) -> None:
    """Delete dead letters for good.

    [bold]Examples[/bold]

    mindbus dlq drop 0192…

    mindbus dlq drop --all --service storage
    """
    chosen = _chosen(ids, every=every)
    letters = run(for_services(service, lambda letters, name: letters.drop(name, chosen)))
    _show_settled("dropped", letters, ids, as_json=as_json)


def _chosen(ids: list[str] | None, *, every: bool) -> Callable[[DeadLetter], bool]:
    # An empty one is an unset variable of a script, and would begin every id.
    if bool(ids) == every or "" in (ids or ()):
        raise UsageError("say which: message ids, or --all (of one service with --service)")
    prefixes = tuple(ids or ("",))
    return lambda letter: letter.message_id.startswith(prefixes)


def _show_settled(done: str, letters: list[DeadLetter], ids: list[str] | None, *, as_json: bool) -> None:
    if ids and not letters:
        raise CommandError(f"there is no dead letter {', '.join(ids)}: `mindbus dlq ls` lists them", Code.NOT_FOUND)
    text = f"{done} {len(letters)}" + "".join(f"\n  {x.message_id}  {x.service}  {x.type}" for x in letters)
    show_result({done: [letter.message_id for letter in letters]}, text, as_json=as_json)


def _show_letter(fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if name != "body":
            say(f"{name:<12} {value}")
    show_json(fields["body"])


async def _list(service: str | None, limit: int) -> list[DeadLetter]:
    return await for_services(service, lambda letters, name: letters.look(name, limit))


async def for_services(
    service: str | None, work: Callable[[DeadLetters, str], Awaitable[list[DeadLetter]]]
) -> list[DeadLetter]:
    """Work on the dead letters of one service, or of all. Raises CommandError, ManagementUnavailable."""
    settings = read_settings()
    amqp_url = find_broker(settings)
    await require_reachable(amqp_url)
    services = await _services(settings, amqp_url)
    if service is not None and service not in services:
        raise CommandError(
            f"{service} has no dead-letter queue; there are {', '.join(services) or 'none'}", Code.NOT_FOUND
        )
    letters = DeadLetters(amqp_url)
    return [letter for name in ([service] if service is not None else services) for letter in await work(letters, name)]


async def _services(settings: Settings, amqp_url: str) -> list[str]:
    queues = await open_management(settings, amqp_url).queues(_PREFIX)
    return [q.name.removeprefix(_PREFIX).removesuffix(_DEAD) for q in queues if q.name.endswith(_DEAD)]


def _plain(letter: DeadLetter) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(letter).items() if name != "body"}


def _body(letter: DeadLetter) -> Any:
    try:
        return from_wire(letter.body).model_dump(mode="json", exclude_none=True)
    except NotAnEnvelope:
        return letter.body.decode("utf-8", errors="replace")
