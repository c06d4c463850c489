"""The commands `card` and `roles`: check the files of cards and roles, list them, draw a card."""

from pathlib import Path
from typing import Annotated

import typer

from agents.configuration.prompts import crafts_of_roles, role_from_file, role_names, shipped_role
from agents.processes.cards import card_from_file, card_names, shipped_card
from agents.processes.graph import as_mermaid
from bus_schema.cards import Card
from mindbus.cli.console import say, say_data, show_result, show_table
from mindbus.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="Check Process Cards and draw them.")

roles = typer.Typer(no_args_is_help=True, help="List the roles of cards and check their files.")

CardArgument = Annotated[str, typer.Argument(metavar="CARD", help="The name of a card, or the path of a YAML file.")]


@app.command("ls")
def list_(as_json: Json = False) -> None:
    """List the cards by name, your own among them.

    [bold]Example[/bold]

    mindbus card ls
    """
    roles = crafts_of_roles()
    cards = [shipped_card(name, roles) for name in card_names()]
    rows = [(card.name, len(card.steps), card.description) for card in cards]
    as_data = [{"name": name, "steps": steps, "description": told} for name, steps, told in rows]
    show_result(as_data, lambda _data: show_table(("card", "steps", "description"), rows), as_json=as_json)


@app.command()
def check(card: CardArgument, as_json: Json = False) -> None:
    """Check a card; show every problem with file, line and remedy. Exit 1 if there is any.

    [bold]Example[/bold]

    mindbus card check my-card.yaml
    """
    found = _read(card)
    told = {"name": found.name, "steps": len(found.steps), "parameters": sorted(found.parameters)}
    show_result(told, lambda _told: say(f"{found.name} can be run; steps: {len(found.steps)}"), as_json=as_json)


@app.command()
def show(card: CardArgument, as_json: Json = False) -> None:
    """Draw a card as a Mermaid graph, sub-cards written out.

    [bold]Examples[/bold]

    mindbus card show article

    mindbus card show my-card.yaml > my-card.mmd
    """
    found = _read(card)
    show_result({"mermaid": as_mermaid(found)}, lambda told: say_data(told["mermaid"]), as_json=as_json)


def _read(card: str) -> Card:
    """Raises UnknownCard, InvalidCard."""
    is_file = card.endswith((".yaml", ".yml")) or "/" in card
    return card_from_file(Path(card), crafts_of_roles()) if is_file else shipped_card(card, crafts_of_roles())


@roles.command("ls")
def list_roles(as_json: Json = False) -> None:
    """List the roles with what each makes: shipped ones, your own, those of installed workers.

    [bold]Example[/bold]

    mindbus roles ls
    """
    files = role_names()
    told = [
        {"role": name, "produces": list(made), "from": "file" if name in files else "worker"}
        for name, made in sorted(crafts_of_roles().items())
    ]
    columns = ("role", "produces", "from")
    rows = [(each["role"], ", ".join(each["produces"]), each["from"]) for each in told]
    show_result(told, lambda _told: show_table(columns, rows), as_json=as_json)


@roles.command("check")
def check_role(
    role: Annotated[str, typer.Argument(metavar="ROLE", help="The name of a role, or the path of a YAML file.")],
    as_json: Json = False,
) -> None:
    """Check a role; show every problem with file, line and remedy. Exit 1 if there is any.

    [bold]Example[/bold]

    mindbus roles check poet.yaml
    """
    is_file = role.endswith((".yaml", ".yml")) or "/" in role
    found = role_from_file(Path(role)) if is_file else shipped_role(role)
    told = {"role": found.name, "produces": list(found.produces), "prompt_version": found.prompt_version}
    show_result(told, lambda _told: say(f"{found.name} can be used: {', '.join(found.produces)}"), as_json=as_json)
