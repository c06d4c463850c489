"""Errors of commands, and the settings of the environment, with errors for whoever typed the command."""

import difflib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import cleandoc
from typing import overload

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from bus_schema.codes import Code
from bus_schema.envelope import explain
from mindbus.cli.console import errors, show_json
from mindbus.cli.language import translate
from mindbus.cli.options import wants_json
from mindbus.errors import MindBusError
from mindbus.redaction import without_secrets
from mindbus.settings import Settings, SettingsT

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has ended, as shells count it."""

_PREFIX = "MINDBUS_"
# A letter or two are wrong; variables of Compose files and of tests, which are named alike, stay below.
_NEARLY = 0.8
# The model of one role: roles are named by files of the user's, too.
_OF_ROLE = re.compile(rf"{_PREFIX}LLM_\w+_(?:BASE_URL|MODEL|API_KEY)")


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
    message = translate(without_secrets(_words_of(error))) or type(error).__name__
    if wants_json(context):
        show_json({"error": message, "code": getattr(error, "code", Code.INTERNAL)})
    escaped = message.replace("[", "\\[")
    errors().print(f"[bold red]{translate('error:')}[/bold red] {escaped}", soft_wrap=True)
    return int(getattr(error, "exit_code", 1))


def _words_of(error: Exception) -> str:
    """The error as a sentence; of one of the operating system, its own words without its number."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return cleandoc(str(error))


def misspelt_settings() -> Iterator[tuple[str, str]]:
    """Variables of the environment that are no setting, each with the setting that is nearly called so."""
    names = {name for name in os.environ if name.startswith(_PREFIX) and not _OF_ROLE.fullmatch(name)}
    unknown = {name for name in names if not _is_field(name)}
    if unknown:
        # Imported here: where all variables are the library's own, nobody else is asked for theirs.
        from mindbus.registry import known_settings

        known = [field.upper() for field in known_settings()]
        for name in sorted(unknown.difference(_PREFIX + field for field in known)):
            for near in difflib.get_close_matches(name.removeprefix(_PREFIX), known, 1, _NEARLY):
                yield name, _PREFIX + near


def _is_field(name: str) -> bool:
    return name.removeprefix(_PREFIX).lower() in Settings.model_fields


def _problem(kind: type[Settings], error: ErrorDetails) -> str:
    """The variable with what is wrong; where it is written wrongly, with what it is, since nobody reads patterns."""
    name, message = ".".join(map(str, error["loc"])), error["msg"].removeprefix("Value error, ")
    field = kind.model_fields.get(name)
    if error["type"] == "string_pattern_mismatch" and field is not None and field.description:
        message = f"not written as expected. {field.description.removesuffix('.')}"
    return f"{_PREFIX}{name.upper()}: {message}"


@overload
def read_settings() -> Settings: ...
@overload
def read_settings(kind: type[SettingsT]) -> SettingsT: ...
def read_settings(kind: type[Settings] = Settings) -> Settings:
    """Raises UsageError where a setting cannot be read."""
    try:
        return kind()
    except ValidationError as invalid:
        problems = "; ".join(_problem(kind, error) for error in invalid.errors())
        raise UsageError(f"the environment is not usable: {problems}") from invalid
    except SettingsError as invalid:
        raise UsageError(f"the environment is not usable: {invalid}") from invalid
