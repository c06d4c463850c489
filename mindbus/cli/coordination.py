"""The commands `locks` and `counters`, which agents share."""

from typing import Annotated

import typer

from bus_schema.ids import mint
from bus_schema.swm import AcquireLock, GetCounter, GetLockInfo, IncrementCounter, ReleaseLock
from mindbus.cli.console import show_result
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import answer_to

app = typer.Typer()
locks = typer.Typer(no_args_is_help=True, help="Take and release locks.")
counters = typer.Typer(no_args_is_help=True, help="Add to counters, read them.")
app.add_typer(locks, name="locks")
app.add_typer(counters, name="counters")

LockName = Annotated[str, typer.Argument(metavar="NAME", help="The lock's name, such as report/2026.")]
CounterName = Annotated[str, typer.Argument(metavar="NAME", help="The counter's name, such as drafts.")]


@locks.command()
def acquire(
    name: LockName,
    acting: As = LOCAL_USER,
    wait_ms: Annotated[int, typer.Option("--wait-ms", help="How long to wait in line for it.")] = 0,
    lease_ms: Annotated[int, typer.Option("--lease-ms", help="After how long it is released by itself.")] = 30_000,
    as_json: Json = False,
) -> None:
    """Take a lock. It is held after the command has ended, until its lease ends, or until it is released.

    [bold]Examples[/bold]

    mindbus locks acquire report --wait-ms 5000

    mindbus locks acquire report --as agent.editor --lease-ms 60000 --json
    """
    lock = answer_to(
        lambda: AcquireLock(name=name, wait_ms=wait_ms, lease_ms=lease_ms), acting, longer_by_s=wait_ms / 1000
    )
    text = f"{name} is yours until {lock.expires:%H:%M:%S} UTC, fencing number {lock.fencing}; token {lock.token}"
    show_result(lock, text, as_json=as_json)


@locks.command()
def release(
    name: LockName,
    token: Annotated[str, typer.Option("--token", help="The token that came with the lock.")],
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Release a lock.

    [bold]Examples[/bold]

    mindbus locks release report --token 0f7d0a4be0a84d9b8d5a6c9c3c1f2e11
    """
    answer_to(lambda: ReleaseLock(name=name, token=token), acting)
    show_result({"name": name, "released": True}, f"{name} is free", as_json=as_json)


@locks.command()
def info(name: LockName, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Show who holds a lock, who waits for it.

    [bold]Examples[/bold]

    mindbus locks info report --json
    """
    lock = answer_to(lambda: GetLockInfo(name=name), acting)
    state = f"{name} is held by {lock.holder} until {lock.expires:%H:%M:%S} UTC; {lock.waiting} wait"
    show_result(lock, f"{name} is free" if lock.holder is None else state, as_json=as_json)


@counters.command()
def incr(
    name: CounterName,
    by: Annotated[int, typer.Option("--by", help="How much to add; less than 0 takes away.")] = 1,
    operation: Annotated[
        str | None, typer.Option("--operation", metavar="ID", help="The same id adds once, however often it is run.")
    ] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Add to a counter.

    [bold]Examples[/bold]

    mindbus counters incr drafts

    mindbus counters incr drafts --by 5 --operation import-7 --json
    """
    operation_id = operation or mint("op")
    _show(name, answer_to(lambda: IncrementCounter(name=name, by=by, operation_id=operation_id), acting).value, as_json)


@counters.command()
def get(name: CounterName, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Read a counter.

    [bold]Examples[/bold]

    mindbus counters get drafts --json
    """
    _show(name, answer_to(lambda: GetCounter(name=name), acting).value, as_json)


def _show(name: str, value: int, as_json: bool) -> None:
    show_result({"value": value}, f"{name} stands at {value}", as_json=as_json)
