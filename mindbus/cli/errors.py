"""Errors of the command line itself, and how any expected error is shown to the person who typed the command."""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import cleandoc

import typer
from pydantic import ValidationError

from bus_schema.envelope import explain
from bus_schema.replies import Code
from mindbus.cli.console import errors, show_json
from mindbus.cli.options import wants_json
from mindbus.errors import MindBusError


class CommandError(MindBusError):
    """The command was understood but could not be carried out; exit code 1."""

    def __init__(self, message: str, code: Code = Code.INTERNAL) -> None:
        super().__init__(message, code=code)


class UsageError(MindBusError, code=Code.INVALID):
    """The command line itself is wrong; exit code 2."""

    exit_code = 2


@contextmanager
def valid_options() -> Iterator[None]:
    """Raise UsageError where the block makes a model of options that it does not take."""
    try:
        yield
    except ValidationError as error:
        raise UsageError(explain(error)) from error


EXPECTED: tuple[type[Exception], ...] = (MindBusError, OSError)


def report(error: Exception, context: typer.Context) -> int:
    """Print an error to standard error and, where JSON was asked for, as JSON too; returns the exit code."""
    message = cleandoc(str(error)) or type(error).__name__
    if wants_json(context):
        show_json({"error": message, "code": getattr(error, "code", Code.INTERNAL)})
    escaped = message.replace("[", "\\[")
    errors().print(f"[bold red]error:[/bold red] {escaped}", soft_wrap=True)
    return int(getattr(error, "exit_code", 1))
