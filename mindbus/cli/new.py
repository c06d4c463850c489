"""The command `new`: a worker, agent, card or sub-agent to start from, with a test that passes."""

import re
from enum import StrEnum
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from mindbus.cli.console import say, show_result
from mindbus.cli.errors import UsageError
from mindbus.cli.options import Json

app = typer.Typer()

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SUFFIX = ".txt"


class Template(StrEnum):
    """Folder of a template."""

    WORKER = "worker"
    AGENT = "agent"
    CARD = "card"
    SUBAGENT = "subagent"


_NEXT = {
    Template.WORKER: ("mindbus dev {name}.py", "mindbus send {name}:Greet person=Anna --wait"),
    Template.AGENT: ("mindbus dev {name}.py", "mindbus events --topic processed"),
    Template.CARD: ("mindbus process run cards/{name}.yaml --input FILE",),
    Template.SUBAGENT: (
        "export MINDBUS_CONFIG_DIR={folder}",
        "mindbus down && mindbus up -d",
        'mindbus chat --user anna --message "Tell the sub-agent {name} that the release is on Friday, then ask it"',
    ),
}


@app.command()
def new(
    kind: Annotated[Template, typer.Argument(metavar="worker|agent|card|subagent", help="What to create.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and _.")],
    folder: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to put it; default: the current folder.")
    ] = Path(),
    as_json: Json = False,
) -> None:
    """Write a starting point that works, with a test that passes; then say how to run it.

    [bold]Examples[/bold]

    mindbus new worker counter        a consumer with a command of its own

    mindbus new agent question_counter   reads what people say

    mindbus new card digest           a process of four steps

    mindbus new subagent notes        the assistant delegates to it
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a valid name: use lower-case letters, digits and _, as in {_nearest(name)}")
    files = _files_of(kind, name)
    if existing := [path for path in files if (folder / path).exists()]:
        raise UsageError(f"{', '.join(existing)} is there already: choose another name, or another folder with -o")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    commands = [line.format(name=name, folder=folder.absolute()) for line in _NEXT[kind]]
    commands.insert(0, f"pytest {folder / f'test_{name}.py'}")
    show_result(
        {"files": [str(folder / path) for path in files], "next": commands},
        lambda _written: _show([folder / path for path in files], commands),
        as_json=as_json,
    )


def _show(files: list[Path], commands: list[str]) -> None:
    for file in files:
        say(f"written: {file}")
    say("Next:")
    for command in commands:
        say(f"  {command}")


def _files_of(kind: Template, name: str) -> dict[str, str]:
    """Paths and texts of a template's files, with the name in them."""
    root = resources.files("mindbus.cli") / "templates" / kind.value
    words = {"NAME": name, "CLASS": "".join(part.capitalize() for part in name.split("_") if part)}
    pattern = re.compile("|".join(words))
    filled = {path: file.read_text(encoding="utf-8") for path, file in _walk(root, "")}
    return {
        pattern.sub(lambda found: words[found[0]], path.removesuffix(_SUFFIX)): pattern.sub(
            lambda found: words[found[0]], text
        )
        for path, text in filled.items()
    }


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for each in sorted(folder.iterdir(), key=lambda item: item.name):
        path = f"{prefix}{each.name}"
        if each.is_dir():
            found += _walk(each, f"{path}/")
        elif each.name.endswith(_SUFFIX):
            found.append((path, each))
    return found


def _nearest(name: str) -> str:
    plain = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_0123456789")
    return plain[:40] or "counter"
