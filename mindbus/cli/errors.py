"""Errors of commands, and the settings of the environment, with errors for whoever typed the command."""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import cleandoc
from typing import overload

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError

from bus_schema.codes import Code
from bus_schema.envelope import explain
from mindbus.cli.console import errors, show_json
from mindbus.cli.options import wants_json
from mindbus.errors import MindBusError
from mindbus.redaction import without_secrets
from mindbus.settings import Settings, SettingsT


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
    message = without_secrets(cleandoc(str(error))) or type(error).__name__
    if wants_json(context):
        show_json({"error": message, "code": getattr(error, "code", Code.INTERNAL)})
    escaped = message.replace("[", "\\[")
    errors().print(f"[bold red]error:[/bold red] {escaped}", soft_wrap=True)
    return int(getattr(error, "exit_code", 1))


@overload
def read_settings() -> Settings: ...
@overload
def read_settings(kind: type[SettingsT]) -> SettingsT: ...
def read_settings(kind: type[Settings] = Settings) -> Settings:
    """Raises UsageError where a setting cannot be read."""
    try:
        return kind()
    except ValidationError as invalid:
        problems = "; ".join(f"MINDBUS_{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in invalid.errors())
        raise UsageError(f"the environment is not usable: {problems}") from invalid
    except SettingsError as invalid:
        raise UsageError(f"the environment is not usable: {invalid}") from invalid
