"""Every `mindbus` command of README, tutorial, guides and CONTRIBUTING is one, with options that it has."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.main import get_group

from mindbus.cli.main import COMMANDS, _app
from tests.newcomer import ROOT, PageCommand, parts_of

PAGES = [ROOT / "README.md", ROOT / "README.ru.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted(page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts)
# What ends a command, or begins another one, in a line of a shell.
SEPARATORS = {"|", "||", "&&", ";", "&", ">", ">>", "<", ")", "(", "$("}


def commands_of(line: str) -> Iterator[list[str]]:
    """Arguments of each `mindbus` in a line."""
    if not re.search(r"\bmindbus\s", line):
        return
    words = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    words.whitespace_split = True
    words.commenters = ""
    command: list[str] | None = None
    for word in [*words, ";"]:
        if word in SEPARATORS:
            if command is not None:
                yield command
            command = None
        elif command is not None:
            command.append(word)
        elif word.rpartition("/")[2] == "mindbus":
            command = []


def documented() -> Iterator[tuple[str, list[str]]]:
    for page in PAGES:
        for part in parts_of(page):
            if isinstance(part, PageCommand):
                for command in commands_of(part.line):
                    yield f"{page.name}: {shlex.join(command)}", command


def parse(arguments: list[str]) -> None:
    """Parse a command as the executable does; whether files exist does not matter."""
    name, *rest = arguments
    group: Any = get_group(_app(name, COMMANDS[name]))
    command = group.commands.get(name, group)
    while hasattr(command, "commands"):
        name, *rest = rest
        command = command.commands[name]
    try:
        command.make_context(name, [word.replace("…", "0").replace("ID", "art_0") for word in rest])
    except typer.BadParameter as wrong:
        if "does not exist" not in wrong.message:
            raise


DOCUMENTED = dict(documented())


@pytest.mark.parametrize("shown", DOCUMENTED)
def test_it_is_a_command_with_the_options_that_it_has(shown: str) -> None:
    arguments = DOCUMENTED[shown]
    if arguments and arguments[0].startswith("-"):
        pytest.skip("an option of the executable itself")

    parse(arguments)


def test_there_are_commands_in_most_guides() -> None:
    pages = {shown.partition(":")[0] for shown in DOCUMENTED}

    assert len(pages) >= 15
    assert sum(shown.startswith("README.md: ") for shown in DOCUMENTED) >= 18
