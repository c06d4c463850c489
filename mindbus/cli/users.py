"""The command `user forget`: removes all that is known of a user."""

from typing import Annotated

import typer

from bus_schema.data import DeleteUser
from mindbus.cli.console import say, show_json
from mindbus.cli.data_owners import FORGET, RemovalOutcome, ask_owners, others_that_take, require_consent
from mindbus.cli.environment import read_settings
from mindbus.cli.options import LOCAL_USER, As, Json, UserArgument
from mindbus.cli.session import on_the_bus, run

app = typer.Typer(no_args_is_help=True, help="Forget users.")

_WITHIN_S = 120.0


@app.callback()
def _user() -> None:
    """Without it, a group of one command would be that command."""


@app.command()
def forget(
    user: UserArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Remove all that is known of a user, for good: the dialogue, what agents noted of it, the user's artifacts, runs.

    What others have said of the user stays theirs; so does what agents have made in runs.

    [bold]Examples[/bold]

    mindbus user forget anna

    mindbus user forget anna --yes --json
    """
    require_consent(f"Remove all that is known of {user}, for good?", is_given=yes)
    outcome = run(_forget(user, acting))
    if as_json and not outcome.failed:
        show_json({"user_id": user, "removed": outcome.removed})
    elif not as_json:
        outcome.show()
    outcome.require_all()
    if not as_json:
        say(f"{user} is forgotten; files go within seconds")


async def _forget(user_id: str, identity: str) -> RemovalOutcome:
    settings = read_settings()
    async with on_the_bus(identity, settings) as bus:
        others = others_that_take(DeleteUser, settings)
        return await ask_owners(bus, DeleteUser(user_id=user_id), FORGET, others, within_s=_WITHIN_S)
