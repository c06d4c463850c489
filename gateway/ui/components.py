"""Basic components of all screens; content is always set as text, never as markup."""

import html
import json
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.dialog import Dialog
from nicegui.elements.mixins.text_element import TextElement

from gateway.ui.i18n import Localizer, utc
from gateway.ui.svg import icon

_LONG_ID = 24
_VALUE = "(event) => emit(event.target.value)"


def box(classes: str = "", tag: str = "div") -> Element:
    return ui.element(tag).classes(classes)


def text(said: str, classes: str = "", tag: str = "span") -> TextElement:
    """An element with text; markup in it is not interpreted."""
    return TextElement(tag=tag, text=said).classes(classes)


def attributes(element: Element, **values: object) -> Element:
    """Set HTML attributes to any values; `_` in a name stands for `-`."""
    for name, value in values.items():
        element.props[name.strip("_").replace("_", "-")] = value
    return element


def show_if(element: Element, is_shown: object) -> None:
    """Show or hide an element."""
    if bool(is_shown) == ("mb-hidden" in element.classes):
        element.classes(remove="mb-hidden" if is_shown else "", add="" if is_shown else "mb-hidden")


def button(label: str, on_click: Callable[..., Any], classes: str = "", icon_name: str = "") -> Element:
    made = attributes(box(f"mb-btn {classes}", "button"), type="button").on("click", on_click)
    with made:
        if icon_name:
            icon(icon_name, "mb-i14")
        text(label)
    return made


def icon_button(icon_name: str, label: str, on_click: Callable[..., Any] | None = None, classes: str = "") -> Element:
    """A button with an icon; the label is its tooltip and accessible name."""
    made = attributes(box(f"mb-ib {classes}", "button"), type="button", aria_label=label, title=label)
    if on_click is not None:
        made.on("click", on_click)
    with made:
        icon(icon_name)
    return made


def anchor(target: str, said: str = "", classes: str = "mb-link") -> Element:
    made = attributes(box(classes, "a"), href=target)
    if said:
        with made:
            text(said)
    return made


def copy_button(i18n: Localizer, content: str) -> Element:
    """Copies the content to the clipboard."""
    made = icon_button("copy", i18n("copy"))
    return made.on("click", js_handler=f"(event) => {{ event.stopPropagation(); mbCopy({json.dumps(content)}); }}")


def identifier(i18n: Localizer, name: str, target: str = "", shown: str = "") -> Element:
    """A shortened id with a link and a copy button."""
    with box("mb-id") as made:
        said = shown or short_id(name)
        if target:
            anchor(target, said, "mb-link mb-ell").props["title"] = name
        else:
            text(said, "mb-ell").props["title"] = name
        copy_button(i18n, name)
    return made


def short_id(name: str) -> str:
    """The first 12 and last 4 characters of a long id."""
    return name if len(name) <= _LONG_ID else f"{name[:12]}…{name[-4:]}"


def tag(said: str, colour: str = "", classes: str = "", *, dot: bool = False) -> Element:
    """A label, coloured if a colour is given."""
    made = box(f"mb-tag {'mb-tint' if colour else ''} {classes}", "span")
    if colour:
        made.style(f"--c: var(--{colour})")
    with made:
        if dot:
            box("mb-dot", "i")
        text(said)
    return made


def person(user_id: str, name: str, classes: str = "") -> Element:
    """Initials on a colour derived from the user id."""
    parts = [part for part in name.replace("_", " ").replace(".", " ").replace("-", " ").split() if part]
    initials = (parts[0][:1] + (parts[1][:1] if len(parts) > 1 else parts[0][1:2])).upper() if parts else "?"
    made = box(f"mb-person {classes}").style(f"--h: {hue(user_id)}")
    attributes(made, aria_hidden="true")
    with made:
        text(initials)
    return made


def hue(user_id: str) -> int:
    """A hue from the CRC32 of a name, in degrees."""
    return zlib.crc32(user_id.encode()) % 24 * 15


def moment(i18n: Localizer, at: datetime, shown: str, classes: str = "mb-cap mb-t3 mb-num") -> TextElement:
    """A local time with UTC as its tooltip."""
    made = text(shown, classes, "time")
    attributes(made, title=utc(at), datetime=at.isoformat())
    return made


def field(label: str, value: str, on_change: Callable[[str], Any], **more: object) -> Element:
    """A text input with an accessible label."""
    made = attributes(box("mb-input", "input"), aria_label=label, autocomplete="off", **more)
    # As an attribute, once: as a property it would come back over what was typed with every change of the page.
    made.props["^value"] = value
    return made.on("input", lambda event: on_change(str(event.args)), js_handler=_VALUE)


def rewrite(written: Element, value: str) -> None:
    """Replace the value of an input."""
    written.client.run_javascript(f"getHtmlElement({written.id}).value = {json.dumps(value)}")


def search(label: str, on_change: Callable[[str], Any], value: str = "") -> Element:
    """A search input; `/` focuses it."""
    with box("mb-search") as made:
        icon("search")
        field(label, value, on_change, placeholder=label, type="search", data_search="")
    return made


def choice(label: str, options: Sequence[tuple[str, str]], value: str, on_change: Callable[[str], Any]) -> Element:
    """A drop-down list of (key, label) options."""
    with attributes(box("mb-input", "select"), aria_label=label) as made:
        for key, said in options:
            option = attributes(text(said, "", "option"), value=key)
            if key == value:
                option.props["selected"] = True
    return made.on("change", lambda event: on_change(str(event.args)), js_handler=_VALUE)


@contextmanager
def popup(label: str, classes: str = "mb-dialog", role: str = "dialog") -> Iterator[Dialog]:
    """A dialog that Escape closes."""
    with ui.dialog(value=True) as dialog, box(f"mb-float {classes}"):
        attributes(dialog, aria_label=label, role=role)
        dialog.on("hide", dialog.delete)
        yield dialog


class SegmentedControl:
    """A choice of one among a few visible options."""

    def __init__(self, options: Sequence[tuple[str, str]], value: str, on_change: Callable[[str], Any]) -> None:
        self._on_change = on_change
        self._buttons: dict[str, Element] = {}
        with attributes(box("mb-seg"), role="group"):
            for key, said in options:
                made = attributes(text(said, "", "button"), type="button", aria_pressed=str(key == value).lower())
                self._buttons[key] = made.on("click", lambda _event, key=key: self.choose(key))

    def choose(self, chosen: str) -> None:
        for key, made in self._buttons.items():
            attributes(made, aria_pressed=str(key == chosen).lower()).update()
        self._on_change(chosen)


def coloured_json(value: object) -> str:
    """Indented JSON as escaped HTML with names, strings and numbers marked."""
    lines = []
    for line in json.dumps(value, ensure_ascii=False, indent=2).splitlines():
        name, colon, rest = line.partition('": ')
        if not colon or not name.lstrip().startswith('"'):
            name, rest = "", line
        shown = f"<b>{html.escape(name)}&quot;</b>: " if name else ""
        mark = "i" if rest.lstrip().startswith('"') else "u" if rest.strip(" ,")[:1] in "-0123456789tfn" else "span"
        lines.append(f"{shown}<{mark}>{html.escape(rest)}</{mark}>")
    return "\n".join(lines)


ItemT = TypeVar("ItemT")
ContraT = TypeVar("ContraT", contravariant=True)


class Row(Protocol[ContraT]):
    """A row of Rows."""

    element: Element

    def show(self, item: ContraT) -> None:
        """Update the row."""
        ...


class Rows(Generic[ItemT]):
    """Keyed rows that are built, updated, moved and removed in place, so that focus and scrolling stay."""

    def __init__(self, parent: Element, build: Callable[[ItemT], Row[ItemT]]) -> None:
        self.parent, self._build = parent, build
        self._rows: dict[Hashable, Row[ItemT]] = {}
        self._shown: dict[Hashable, ItemT] = {}

    def __getitem__(self, key: Hashable) -> Row[ItemT]:
        return self._rows[key]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def show(self, items: Iterable[tuple[Hashable, ItemT]]) -> None:
        """Make the rows be these items, in this order."""
        wanted = dict(items)
        for key in [key for key in self._rows if key not in wanted]:
            self._rows.pop(key).element.delete()
            self._shown.pop(key)
        for place, (key, item) in enumerate(wanted.items()):
            self._place(key, item, place)

    def _place(self, key: Hashable, item: ItemT, place: int) -> None:
        if key not in self._rows:
            with self.parent:
                self._rows[key] = self._build(item)
        if self._shown.get(key) != item:
            self._rows[key].show(item)
            self._shown[key] = item
        element = self._rows[key].element
        children = self.parent.default_slot.children
        if place >= len(children) or children[place] is not element:
            element.move(self.parent, target_index=place)
