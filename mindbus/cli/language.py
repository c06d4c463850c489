"""The language of the command line: English as it stands in the code, Russian by the catalogue `catalogues/ru.toml`.

Texts are translated where they are printed, so that a message is written once, in English. In the catalogue `{}` of the
English text stands for what is filled in; the translation takes it by number: `{1}` as it is, `{1!}` translated too,
`{1|файл|файла|файлов}` with the noun in the form that the number asks for.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Set
from functools import cache
from importlib import resources
from typing import Any, Literal, cast

Language = Literal["en", "ru"]
LANGUAGES: tuple[Language, ...] = ("en", "ru")

_chosen: Language | None = None
_HOLE = re.compile(r"\{(\d)(!?)((?:\|[^{}|]*){3})?\}")
# Lines of a help text that are typed, not read.
_TYPED = ("mindbus ", "rabbitmqctl ")
_HEADING = re.compile(r"\[bold\](.+)\[/bold\]")


def choose_language(language: Language | None) -> None:
    """Set the language for the rest of this process; None: as the environment says."""
    global _chosen  # one per process, as `--lang` says
    _chosen = language


def language() -> Language:
    """As `--lang` says, else as LC_ALL, LC_MESSAGES or LANG do, in the order of POSIX."""
    if _chosen is not None:
        return _chosen
    locale = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
    return "ru" if locale.lower().startswith("ru") else "en"


def translate(text: str) -> str:
    """The text in the language of this process, as it is where the catalogue has no such message."""
    return text if language() == "en" else _Catalogue.read(language()).translate(text)


def translate_help(text: str | None) -> str | None:
    """A help text paragraph by paragraph; lines to be typed stay."""
    if not text or language() == "en":
        return text
    return "\n\n".join(_translate_paragraph(paragraph) for paragraph in text.split("\n\n"))


def help_messages(text: str | None) -> Iterator[str]:
    """The parts of a help text that are translated."""
    for paragraph in (text or "").split("\n\n"):
        if heading := _HEADING.fullmatch(paragraph.strip()):
            yield heading[1]
        elif paragraph.strip() and not paragraph.strip().startswith(_TYPED):
            yield " ".join(paragraph.split())


def _translate_paragraph(paragraph: str) -> str:
    if heading := _HEADING.fullmatch(paragraph.strip()):
        return f"[bold]{translate(heading[1])}[/bold]"
    if paragraph.strip().startswith(_TYPED):
        return paragraph
    return translate(" ".join(paragraph.split()))


def translate_command(command: Any) -> None:
    """Put a command, its options and its subcommands into the language of this process, in place."""
    if language() == "en":
        return
    _translate_headings()
    command.help, command.short_help = translate_help(command.help), translate_help(command.short_help)
    for option in command.params:
        option.help = translate_help(getattr(option, "help", None))
    for subcommand in getattr(command, "commands", {}).values():
        translate_command(subcommand)


def _translate_headings() -> None:
    """The headings that Typer itself writes; it has them as constants of a module."""
    from typer import rich_utils

    for name in ("ARGUMENTS_PANEL_TITLE", "OPTIONS_PANEL_TITLE", "COMMANDS_PANEL_TITLE", "ERRORS_PANEL_TITLE"):
        setattr(rich_utils, name, translate(getattr(rich_utils, name)))


class _Catalogue:
    """Messages without holes by their text, those with holes by a pattern, the most specific first."""

    def __init__(self, messages: dict[str, str]) -> None:
        self._exact = {text: translation for text, translation in messages.items() if "{}" not in text}
        with_holes = sorted((text for text in messages if "{}" in text), key=lambda text: -len(text.replace("{}", "")))
        self._patterns = [(pattern_of(text, _counted(messages[text])), messages[text]) for text in with_holes]

    @staticmethod
    @cache
    def read(name: str) -> "_Catalogue":
        return _Catalogue(messages_of(name))

    def translate(self, text: str) -> str:
        if text in self._exact:
            return self._exact[text]
        for pattern, translation in self._patterns:
            if found := pattern.fullmatch(text):
                return _HOLE.sub(lambda hole, found=found: self._filled(hole, found.groups()), translation)  # type: ignore[misc]  # bound now
        return text

    def _filled(self, hole: re.Match[str], values: tuple[str, ...]) -> str:
        value = values[int(hole[1]) - 1]
        if hole[3]:
            return f"{value} {russian_form(int(value), cast('str', hole[3])[1:].split('|'))}"
        return self.translate(value) if hole[2] else value


def messages_of(name: str) -> dict[str, str]:
    """The catalogue of a language: translations by their English text."""
    text = (resources.files("mindbus.cli") / "catalogues" / f"{name}.toml").read_text(encoding="utf-8")
    return {
        english: translation for section in tomllib.loads(text).values() for english, translation in section.items()
    }


def pattern_of(text: str, counted: Set[int] = frozenset()) -> re.Pattern[str]:
    """Pattern of a message whose `{}` are filled in, those with a noun's form by a number."""
    first, *others = map(re.escape, text.split("{}"))
    holes = (r"(\d+)" if place in counted else "(.*?)" for place in range(1, len(others) + 1))
    return re.compile(first + "".join(map("".join, zip(holes, others, strict=True))), re.DOTALL)


def _counted(translation: str) -> frozenset[int]:
    return frozenset(int(hole[1]) for hole in _HOLE.finditer(translation) if hole[3])


def russian_form(number: int, forms: list[str]) -> str:
    """The form of a Russian noun beside a number: 1 файл, 2 файла, 5 файлов."""
    if number % 100 in range(11, 15):
        return forms[2]
    return forms[0] if number % 10 == 1 else forms[1] if number % 10 in (2, 3, 4) else forms[2]
