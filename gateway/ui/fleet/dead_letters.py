"""Dead letters: list, inspect, replay, drop."""

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nicegui.element import Element

from gateway.api.fleet import DeadLetterSelection, SettledDeadLetters, drop, list_dead_letters, replay
from gateway.backend import Backend
from gateway.ui.components import (
    attributes,
    box,
    button,
    clickable,
    head,
    show_if,
    text,
    update,
)
from gateway.ui.dialogs import confirm
from gateway.ui.fleet.letter_dialog import LetterDialog
from gateway.ui.i18n import Localizer
from gateway.ui.page_session import PageSession
from gateway.ui.rows import RedrawnRow, Rows
from gateway.ui.svg import icon
from mindbus.bus.deadletters import DeadLetter

_MAX_SHOWN = 100
_DROP = "mb-quiet mb-err"
_MAX_SERVICES = 2  # as many as the head of the panel has room for
Key = tuple[str, str]
Settle = Callable[[str, DeadLetterSelection, Backend], Coroutine[Any, Any, SettledDeadLetters]]


@dataclass(frozen=True)
class DeathCause:
    """Dead letters of one type that failed in the same way."""

    code: str
    type: str
    keys: tuple[Key, ...]


def _by_cause(letters: Mapping[Key, DeadLetter]) -> list[tuple[Hashable, DeadLetter | DeathCause]]:
    """Rows of the letters below one for each cause, the cause of most of them first."""
    causes: dict[tuple[str, str], dict[Key, DeadLetter]] = {}
    for key, letter in letters.items():
        causes.setdefault((letter.code, letter.type), {})[key] = letter
    rows: list[tuple[Hashable, DeadLetter | DeathCause]] = []
    for cause, of_cause in sorted(causes.items(), key=lambda item: -len(item[1])):
        rows.append((("cause", *cause), DeathCause(*cause, tuple(of_cause))))
        rows += of_cause.items()
    return rows


class DeadLetterList:
    """Rows of dead letters; actions apply to a row, the selection or a service."""

    def __init__(self, session: PageSession, place: Element, on_change: Callable[..., Awaitable[None]]) -> None:
        self.session, self._on_change = session, on_change
        self._letters: dict[Key, DeadLetter] = {}
        self.selected: set[Key] = set()
        self._depths: dict[str, int] = {}
        i18n = session.i18n
        with attributes(place, id="dead"):
            with head(i18n("fleet.dead_letters")):
                self._count = text("", "mb-err mb-num mb-medium")
                self._chosen = text("", "mb-meta")
                box("mb-grow")
                with box("mb-line-x mb-hidden") as self._selection_actions:
                    button(i18n("fleet.replay_selected"), lambda: self.replay(set(self.selected)), "", "replay")
                    button(i18n("fleet.drop_selected"), lambda: self.drop(set(self.selected)), _DROP, "trash")
                self._service_actions: Rows[str] = Rows(box("mb-line-x"), self._service_action)
            with box("mb-nothing mb-hidden") as self._nothing:
                icon("check")
                text(i18n("fleet.no_dead"), "mb-meta")
            with box("mb-scroll mb-grow"):
                with box("mb-table mb-letters", "table"):
                    self._rows: Rows[DeadLetter | DeathCause] = Rows(box("", "tbody"), self._row)
                self._note = text(i18n("fleet.replay_note"), "mb-meta mb-note mb-hidden", "p")
        self._show_actions()

    @property
    def keys(self) -> set[Key]:
        return set(self._letters)

    async def refresh(self, *, is_acted_on: bool = False) -> None:
        """Refresh if a queue has changed: browsing a queue takes messages and returns them."""
        backend = self.session.backend
        depths = await backend.dead_letter_counts()
        if depths == self._depths and not is_acted_on:
            return
        full = [service for service, depth in depths.items() if depth]
        letters = [letter for service in full for letter in await list_dead_letters(backend, service, _MAX_SHOWN)]
        # The broker counts a little late: what was acted on is looked at once more.
        self._depths = {} if is_acted_on else depths
        letters.sort(key=lambda letter: letter.died_at, reverse=True)
        self._letters = {(letter.service, letter.message_id): letter for letter in letters}
        self.selected &= set(self._letters)
        self._rows.show(_by_cause(self._letters))
        is_cut = any(depth > _MAX_SHOWN for depth in depths.values())
        number = sum(depths.values()) if is_cut else len(letters)
        self._count.set_text(self.session.i18n.number(number) if number else "")
        show_if(self._nothing, not letters)
        show_if(self._note, letters)
        self._show_actions()
        self._show_asked()

    async def replay(self, keys: set[Key]) -> None:
        await self._each(keys, replay, "fleet.replayed")

    async def drop(self, keys: set[Key]) -> None:
        i18n, number = self.session.i18n, len(keys)
        title = i18n.count("fleet.drop_title", number)
        if await confirm(i18n, title, i18n("fleet.drop_text"), i18n.count("fleet.drop_do", number), number):
            await self._each(keys, drop, "fleet.dropped")

    def show(self, letter: DeadLetter) -> None:
        key = letter.service, letter.message_id
        LetterDialog(self.session, letter, lambda: self.replay({key}), lambda: self._on_change(is_acted_on=True))

    def _show_asked(self) -> None:
        """The letter that the address names, once."""
        asked = self.session.query.get("letter")
        letter = next((letter for letter in self._letters.values() if letter.message_id == asked), None)
        if letter is not None:
            self.session.remember(letter=None)
            self.show(letter)

    async def _each(self, keys: set[Key], settle: Settle, done: str) -> None:
        for service in sorted({service for service, _ in keys}):
            ids = [message_id for of, message_id in keys if of == service]
            await self.session.attempt(self._settle(settle, service, DeadLetterSelection(ids=ids), done))
        self.selected -= keys
        await self._on_change(is_acted_on=True)

    async def _settle(self, settle: Settle, service: str, chosen: DeadLetterSelection, done: str) -> None:
        settled = await settle(service, chosen, self.session.backend)
        self.session.say(self.session.i18n.count(done, len(settled.message_ids)))

    def _show_actions(self) -> None:
        i18n, has_selection = self.session.i18n, bool(self.selected)
        self._chosen.set_text(i18n.count("fleet.selected", len(self.selected)) if has_selection else "")
        show_if(self._selection_actions, has_selection)
        is_one_by_one = has_selection or len(self._letters) <= 1
        services = [] if is_one_by_one else sorted({service for service, _ in self._letters})
        self._service_actions.show((service, service) for service in services[:_MAX_SERVICES])

    def _service_action(self, service: str) -> RedrawnRow[str]:
        async def replay_all() -> None:
            every = self._settle(replay, service, DeadLetterSelection(all=True), "fleet.replayed")
            await self.session.attempt(every)
            await self._on_change(is_acted_on=True)

        def label(_button: Element, _service: str) -> None:
            text(self.session.i18n("fleet.replay_all", service=service))

        return RedrawnRow(clickable("mb-btn mb-not-phone", replay_all), label)

    def _row(self, item: DeadLetter | DeathCause) -> RedrawnRow[Any]:
        if isinstance(item, DeathCause):
            return RedrawnRow(box("mb-cause", "tr"), self._draw_cause)
        row = attributes(box("mb-letter", "tr"), tabindex="0", data_row=item.message_id)
        return RedrawnRow(row, self._draw)

    def _draw_cause(self, _row: Element, cause: DeathCause) -> None:
        i18n, number = self.session.i18n, len(cause.keys)
        with attributes(box("", "td"), colspan=5), box("mb-line-x"):
            text(i18n.number(number), "mb-err mb-num mb-medium")
            text(cause.code, "mb-err mb-medium")
            text(i18n.named("dead", cause.code), "mb-meta mb-clamp")
        with box("mb-fit", "td"), box("mb-line-x mb-letter-actions"):
            if number > 1:
                keys = set(cause.keys)
                label = i18n.count("fleet.replay_these", number)
                button(label, lambda: self.replay(keys), "mb-small", "replay")
                button(i18n.count("fleet.drop_do", number), lambda: self.drop(keys), f"mb-small {_DROP}", "trash")

    def _draw(self, row: Element, letter: DeadLetter) -> None:
        i18n, key = self.session.i18n, (letter.service, letter.message_id)

        def select(event: Any) -> None:
            update(row, aria_selected=bool(event.args))
            self.selected = self.selected | {key} if event.args else self.selected - {key}
            self._show_actions()

        with box("mb-fit", "td"):
            label = i18n("fleet.select", name=letter.type)
            check = attributes(box("mb-check", "input"), type="checkbox", aria_label=label)
            check.on("change", select, js_handler=_CHECKED)
        text(_time(i18n, letter.died_at), "mb-fit mb-num", "td")
        with box("mb-two", "td"), box("mb-stack"):
            text(short(letter.type), "mb-mono mb-ell")
            text(i18n("fleet.from_to", who=letter.requester or "?", where=letter.origin), "mb-cap mb-t3 mb-ell")
        with box("mb-two", "td"), box("mb-stack"):
            text(letter.code, "mb-err mb-medium mb-ell")
            attributes(text(letter.reason, "mb-cap mb-t3 mb-ell"), title=letter.reason)
        text(i18n.count("fleet.tries", letter.attempt), "mb-fit mb-t2 mb-tries", "td")
        with box("mb-fit", "td"), box("mb-line-x mb-letter-actions"):
            button(i18n("fleet.show"), lambda: self.show(letter), "mb-small", "eye")
            button(i18n("fleet.replay"), lambda: self.replay({key}), "mb-small", "replay")
            button(i18n("fleet.drop"), lambda: self.drop({key}), f"mb-small {_DROP}", "trash")


_CHECKED = "(event) => emit(event.target.checked)"


def short(wire_type: str) -> str:
    """A wire type without `mb.` and the version."""
    return wire_type.removeprefix("mb.").rpartition(".v")[0] or wire_type


def _time(i18n: Localizer, died_at: str) -> str:
    try:
        return i18n.time(datetime.fromisoformat(died_at))
    except ValueError:
        return died_at
