"""The commands `locks`: locks that agents share."""

from typing import Annotated

import typer

from bus_schema.swm import AcquireLock, GetLockInfo, ReleaseLock
from mindbus.cli.console import say, show_json
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import answer_to

app = typer.Typer(no_args_is_help=True, help="Take locks, let go of them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the lock, such as report/2026.")]


@app.command()
def acquire(
    name: Name,
    acting: As = LOCAL_USER,
    wait_ms: Annotated[int, typer.Option("--wait-ms", help="How long to wait for it, in turn.")] = 0,
    lease_ms: Annotated[int, typer.Option("--lease-ms", help="After how long it is free by itself.")] = 30_000,
    as_json: Json = False,
) -> None:
    """Take a lock. It is held after the command has ended, until its lease ends, or until it is released.

    [bold]Examples[/bold]

    mindbus locks acquire report --wait-ms 5000

    mindbus locks acquire report --as agent.editor --lease-ms 60000 --json
    """
    lock = answer_to(lambda: AcquireLock(name=name, wait_ms=wait_ms, lease_ms=lease_ms), acting, wait_ms / 1000)
    if as_json:
        show_json(lock)
    else:
        say(f"{name} is yours until {lock.expires:%H:%M:%S} UTC, fencing number {lock.fencing}; token {lock.token}")


@app.command()
def release(
    name: Name,
    token: Annotated[str, typer.Option("--token", help="As it was given with the lock.")],
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Let go of a lock.

    [bold]Examples[/bold]

    mindbus locks release report --token 0f7d0a4be0a84d9b8d5a6c9c3c1f2e11
    """
    answer_to(lambda: ReleaseLock(name=name, token=token), acting)
    if as_json:
        show_json({"name": name, "released": True})
    else:
        say(f"{name} is free")


@app.command()
def info(name: Name, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Show who holds a lock, who waits for it.

    [bold]Examples[/bold]

    mindbus locks info report --json
    """
    found = answer_to(lambda: GetLockInfo(name=name), acting)
    if as_json:
        show_json(found)
    elif found.holder is None:
        say(f"{name} is free")
    else:
        say(f"{name} is held by {found.holder} until {found.expires:%H:%M:%S} UTC; {found.waiting} wait")
