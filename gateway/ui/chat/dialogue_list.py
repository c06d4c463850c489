"""The list of dialogues with last message, unread count and state."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import quote

from nicegui.element import Element

from bus_schema.dialogue import MAX_PREVIEW_CHARS, DialogueMessage, MessageKind
from gateway.ui.components import anchor, attributes, box, icon_button, person, search, show_if, text, toggle
from gateway.ui.i18n import Localizer
from gateway.ui.rows import Rows


@dataclass(frozen=True)
class DialogueItem:
    """One dialogue as the list shows it."""

    user_id: str
    last_at: datetime | None = None
    last: str = ""
    unread: int = 0
    is_active: bool = False
    is_answering: bool = False
    is_open: bool = False


class DialogueList:
    """A list of dialogues, the latest first, grouped by active and earlier."""

    def __init__(self, i18n: Localizer, place: Element, on_beside: Callable[[str], None]) -> None:
        self.i18n, self._on_beside = i18n, on_beside
        self._known: dict[str, DialogueItem] = {}
        self._filter = ""
        with place:
            with box("mb-people-head"):
                search(i18n("chat.find"), self._find)
                self.add = icon_button("plus", i18n("chat.new"))
            with attributes(box("mb-scroll mb-people-list", "nav"), aria_label=i18n("chat.dialogues")):
                self._groups = [_Group(i18n, key, self._row) for key in ("chat.active", "chat.earlier")]

    @property
    def active(self) -> int:
        return sum(known.is_active for known in self._known.values())

    def names(self) -> list[str]:
        return list(self._known)

    def meet(self, user_id: str, **facts: object) -> None:
        known = self._known.get(user_id, DialogueItem(user_id))
        self._known[user_id] = replace(known, **facts)  # type: ignore[arg-type]  # its own fields, by name

    def hear(self, message: DialogueMessage) -> None:
        if message.kind is MessageKind.HIDDEN:
            return
        known = self._known.get(message.user_id, DialogueItem(message.user_id))
        unread = 0 if known.is_open else known.unread + (message.role == "assistant")
        last = (message.content or "…")[:MAX_PREVIEW_CHARS]
        is_answering = message.role == "user"
        self.meet(
            known.user_id, last=last, last_at=message.time, unread=unread, is_active=True, is_answering=is_answering
        )

    def show(self) -> None:
        shown = [known for known in self._known.values() if self._filter in known.user_id.lower()]
        shown.sort(key=lambda known: known.last_at or datetime.min.replace(tzinfo=UTC), reverse=True)
        active, earlier = self._groups
        active.show([known for known in shown if known.is_active or known.is_open])
        earlier.show([known for known in shown if not (known.is_active or known.is_open)])

    def _find(self, name: str) -> None:
        self._filter = name.strip().lower()
        self.show()

    def _row(self, known: DialogueItem) -> "_Row":
        return _Row(self.i18n, known, self._on_beside)


class _Group:
    def __init__(self, i18n: Localizer, key: str, build: Callable[[DialogueItem], "_Row"]) -> None:
        with box("mb-people-title") as self._head:
            text(i18n(key), "mb-medium")
            self._count = text("", "mb-num")
        self._rows: Rows[DialogueItem] = Rows(box("mb-people-rows"), build)

    def show(self, people: list[DialogueItem]) -> None:
        show_if(self._head, people)
        self._count.set_text(str(len(people)))
        self._rows.show((known.user_id, known) for known in people)


class _Row:
    def __init__(self, i18n: Localizer, known: DialogueItem, on_beside: Callable[[str], None]) -> None:
        self._i18n = i18n
        self.element = box("mb-person-row")
        with self.element:
            self._link = attributes(
                anchor(f"/chat?with={quote(known.user_id)}", classes="mb-person-link"), data_row=known.user_id
            )
            with self._link:
                person(known.user_id, known.user_id, "mb-big")
                with box("mb-stack mb-grow"):
                    with box("mb-line-x"):
                        text(known.user_id, "mb-person-name mb-ell mb-grow")
                        self._at = text("", "mb-cap mb-t3 mb-num")
                    with box("mb-line-x"):
                        self._last = text("", "mb-ell mb-grow mb-person-last")
                        self._unread = text("", "mb-unread")
            icon_button("columns", i18n("chat.beside"), lambda: on_beside(known.user_id), "mb-beside")

    def show(self, known: DialogueItem) -> None:
        if known.is_open:
            attributes(self._link, aria_current="true").update()
        self._at.set_text(self._i18n.when(known.last_at, datetime.now(UTC)) if known.last_at else "")
        self._last.set_text(self._i18n("chat.writing_dots") if known.is_answering else known.last)
        toggle(self._last, "mb-acc", is_on=known.is_answering)
        self._unread.set_text(str(known.unread or ""))
        show_if(self._unread, known.unread)
