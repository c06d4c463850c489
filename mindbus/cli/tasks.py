"""The commands `tasks`: list, show, add, complete, move, cancel."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer
from pydantic import ValidationError

from bus_schema.dialogue import conversation_trace
from bus_schema.envelope import explain
from bus_schema.identities import is_user_id
from bus_schema.messages import Command, Query
from bus_schema.processing import Task, TaskStatus
from bus_schema.replies import Code
from bus_schema.tasks import AddTask, CallOffTask, CompleteTask, GetTask, ListTasks, TaskPage, UpdateTask
from bus_schema.users import GetUser
from mindbus.bus.client import Client
from mindbus.cli.console import say, say_data, show_json, show_result, show_table
from mindbus.cli.errors import CommandError, UsageError
from mindbus.cli.language import translate
from mindbus.cli.options import LOCAL_USER, Json
from mindbus.cli.session import on_the_bus, run
from mindbus.errors import ReplyError

app = typer.Typer(no_args_is_help=True, help="List, add, complete, move and cancel tasks.")

_PEOPLE = "user."


class Status(StrEnum):
    """Statuses to list."""

    OPEN = "open"
    DONE = "done"
    CANCELLED = "cancelled"
    ALL = "all"


def _user(user_id: str | None) -> str | None:
    if user_id is not None and not is_user_id(user_id):
        raise typer.BadParameter(f"{user_id!r} is not a user id; it has 1 to 64 Latin letters, digits and _@.-")
    return user_id


TaskArgument = Annotated[str, typer.Argument(metavar="ID", help="The task, such as task_0192…")]
ForUser = Annotated[
    str | None,
    typer.Option("--user", metavar="USER", callback=_user, help="In whose name; without it, as the operator."),
]
Due = Annotated[
    str | None,
    typer.Option("--due", metavar="TIME", help="2026-11-26, 2026-11-26T15:00, 'Friday 15:00', 'завтра в 9'."),
]
Owner = Annotated[str | None, typer.Option("--owner", metavar="OWNER", help="A user id or a name.")]


@app.command("ls")
def list_(
    user: ForUser = None,
    status: Annotated[Status, typer.Option("--status", help="Tasks of this status.")] = Status.OPEN,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="USER", callback=_user, help="Owned by this user.")
    ] = None,
    due_before: Annotated[datetime | None, typer.Option("--due-before", help="Due before, on this clock.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="How many on a page.")] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="`next` of the previous page.")] = None,
    as_json: Json = False,
) -> None:
    """List open tasks by due date: those that a user owns or asked for, everybody's without one.

    [bold]Examples[/bold]

    mindbus tasks ls --user anna

    mindbus tasks ls --user anna --status all --limit 200 --json
    """
    page, zone = run(
        _page(
            user,
            ListTasks(
                user_id=user,
                status=None if status is Status.ALL else TaskStatus(status.value),
                owner=owner,
                due_before=due_before.astimezone() if due_before else None,
                cursor=cursor,
                limit=limit,
            ),
        )
    )
    if as_json:
        show_json({"items": [_task_json(task, zone) for task in page.items], "next": page.next_cursor})
        return
    rows = [_task_json(task, zone) for task in page.items]
    show_table(("id", "due", "owner", "status", "text"), ([row[key] for key in _SHOWN] for row in rows))
    if page.next_cursor:
        say(f"more: --cursor '{page.next_cursor}'")


_SHOWN = ("id", "due", "owner", "status", "text")


@app.command()
def show(task: TaskArgument, user: ForUser = None, as_json: Json = False) -> None:
    """Show a task.

    [bold]Example[/bold]

    mindbus tasks show task_0192f1f4 --json
    """
    _answer(GetTask, user, as_json, task_id=task)


@app.command()
def add(text: str, user: ForUser = None, owner: Owner = None, due: Due = None, as_json: Json = False) -> None:
    """Add a task; without an owner it is the user's own.

    [bold]Examples[/bold]

    mindbus tasks add "Позвонить в банк" --user anna --due "завтра в 9"

    mindbus tasks add "Send the report" --user anna --owner boris --due 2026-11-27T15:00
    """
    _answer(AddTask, user, as_json, user_id=user or LOCAL_USER.removeprefix(_PEOPLE), text=text, owner=owner, when=due)


@app.command()
def done(task: TaskArgument, user: ForUser = None, as_json: Json = False) -> None:
    """Mark a task as done.

    [bold]Example[/bold]

    mindbus tasks done task_0192f1f4 --user anna
    """
    _answer(CompleteTask, user, as_json, task_id=task)


@app.command()
def move(
    task: TaskArgument,
    due: Annotated[str, typer.Option("--due", metavar="TIME", help="The new date, such as 'Friday 15:00'.")],
    user: ForUser = None,
    as_json: Json = False,
) -> None:
    """Move a task to another date; a time without a zone is the user's.

    [bold]Example[/bold]

    mindbus tasks move task_0192f1f4 --due "в четверг в 15:00" --user anna
    """
    _answer(UpdateTask, user, as_json, task_id=task, when=due)


@app.command()
def cancel(task: TaskArgument, user: ForUser = None, as_json: Json = False) -> None:
    """Cancel a task.

    [bold]Example[/bold]

    mindbus tasks cancel task_0192f1f4 --user anna
    """
    _answer(CallOffTask, user, as_json, task_id=task)


def _answer(command: type[Command[Task]], user: str | None, as_json: bool, **fields: Any) -> None:
    """Ask for one task and print it. Raises UsageError, CommandError."""
    try:
        asked = command.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as invalid:
        raise UsageError(explain(invalid)) from invalid
    task, zone = run(_one(user, asked))
    show_result(_task_json(task, zone), _show, as_json=as_json)


def _show(told: dict[str, Any]) -> None:
    due, owner = (f", {translate('due')} {told['due']}" if told["due"] else ""), told["owner"] or translate("nobody")
    say_data(f"{told['id']}: {told['text']} ({told['status']}, {owner}{due})")


async def _one(user: str | None, command: Command[Task]) -> tuple[Task, ZoneInfo | None]:
    async with on_the_bus(_identity(user), speaks=not isinstance(command, Query)) as bus:
        try:
            task = await bus.request(command, trace=_trace(user))
        except ReplyError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            raise CommandError(f"{error.message} List them with: mindbus tasks ls", Code.NOT_FOUND) from error
        return task, await _zone(bus, user or task.asked_by)


async def _page(user: str | None, query: ListTasks) -> tuple[TaskPage, ZoneInfo | None]:
    async with on_the_bus(_identity(user)) as bus:
        return await bus.request(query, trace=_trace(user)), await _zone(bus, user)


async def _zone(bus: Client, user: str | None) -> ZoneInfo | None:
    """The user's zone, if they have one on record."""
    if user is None:
        return None
    try:
        record = await bus.request(GetUser(user_id=user))
    except ReplyError:
        return None
    return ZoneInfo(record.zone) if record.zone else None


def _identity(user: str | None) -> str:
    return f"{_PEOPLE}{user}" if user else LOCAL_USER


def _trace(user: str | None) -> str | None:
    return conversation_trace(user) if user else None


def _task_json(task: Task, zone: ZoneInfo | None) -> dict[str, Any]:
    """A date for a day, a minute with its offset for a time; `source` is the message that it comes from."""
    due = task.due.astimezone(zone) if task.due and zone else task.due
    return {
        "id": task.task_id,
        "text": task.text,
        "owner": task.owner_id or task.owner,
        "due": task.due_on.isoformat() if task.due_on else due.isoformat() if due else None,
        "status": task.status.value,
        "by": task.asked_by,
        "source": next(iter(task.message_ids), None),
    }
