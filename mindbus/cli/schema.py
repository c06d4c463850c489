"""The commands `schema`: JSON Schemas, AsyncAPI and the reference as files."""

from pathlib import Path
from typing import Annotated

import typer

from bus_schema.access import access_to
from bus_schema.catalogue import commands, events
from bus_schema.export import exported
from mindbus.cli.console import show_result
from mindbus.cli.errors import CommandError
from mindbus.cli.options import Json
from mindbus.registry import known_settings
from mindbus.version import __version__

_HEADER = "<!-- made by `mindbus schema export` -->\n"
app = typer.Typer(no_args_is_help=True, help="Contracts for other languages.")

_FOLDER = Path("docs/reference")


@app.command()
def export(
    folder: Annotated[Path, typer.Option("--output", "-o", help="The folder.")] = _FOLDER,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if the files are out of date.")] = False,
    as_json: Json = False,
) -> None:
    """Write JSON Schemas, an AsyncAPI 3.0 document, and the reference pages that are made from code.

    [bold]Examples[/bold]

    mindbus schema export

    mindbus schema export --check
    """
    if check:
        outdated = differences(folder)
        if outdated:
            raise CommandError("; ".join(outdated) + ": run `mindbus schema export`")
        show_result({"up_to_date": True}, f"{folder} is up to date", as_json=as_json)
        return
    written = write_files(folder)
    show_result({"written": [str(file) for file in written]}, f"{len(written)} files in {folder}", as_json=as_json)


def write_files(folder: Path) -> list[Path]:
    """Write the files, remove the schemas of messages that are gone."""
    expected = _files(folder)
    for path, content in expected.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for path in _strangers(folder, expected):
        path.unlink()
    return sorted(expected)


def differences(folder: Path) -> list[str]:
    """Differences of a folder from the generated files, a line each."""
    expected = _files(folder)
    lines = [f"missing: {path}" for path in expected if not path.exists()]
    lines += [f"differs: {path}" for path, content in expected.items() if path.exists() and path.read_text() != content]
    return sorted(lines + [f"unknown: {path}" for path in _strangers(folder, expected)])


def _files(folder: Path) -> dict[Path, str]:
    files = exported(__version__) | {"settings.md": _settings(), "messages.md": _messages()}
    return {folder / name: content for name, content in files.items()}


def _strangers(folder: Path, expected: dict[Path, str]) -> set[Path]:
    return set((folder / "schemas").glob("*.json")) - set(expected)


def _settings() -> str:
    rows = [
        f"| `MINDBUS_{name.upper()}` | {_default(field.default)} | {field.description} |"
        for name, field in known_settings().items()
    ]
    return "\n".join(["# Settings", "", _HEADER, "| variable | default | meaning |", "|---|---|---|", *rows, ""])


def _messages() -> str:
    orders = [
        f"| `{c.wire.type}` | {c.wire.service or 'a role'} | {access_to(c).told}"
        f" | {c.wire.result.__name__} | {_doc(c)} |"
        for c in commands()
    ]
    facts = [f"| `{event.wire.type}` | `{event.wire.routing_key}` | {_doc(event)} |" for event in events()]
    return "\n".join(
        [
            *("# Messages", "", _HEADER, "## Commands", ""),
            *("| type | service | who may send it | result | meaning |", "|---|---|---|---|---|", *orders, ""),
            *("## Events", "", "| type | routing key | true when |", "|---|---|---|", *facts, ""),
        ]
    )


def _doc(message: type) -> str:
    return (message.__doc__ or "").partition("\n")[0]


def _default(default: object) -> str:
    return "" if default is None else f"`{default}`"
