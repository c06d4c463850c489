"""Basic components of all screens; content is always set as text, never as markup."""

import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.dialog import Dialog
from nicegui.elements.mixins.text_element import TextElement

from gateway.ui.i18n import Localizer, utc
from gateway.ui.svg import icon, sparkline

_LONG_ID = 24
# Handler in the browser that passes on the value of an input.
VALUE = "(event) => emit(event.target.value)"


def box(classes: str = "", tag: str = "div") -> Element:
    return ui.element(tag).classes(classes)


def scroller(classes: str = "", tag: str = "div") -> Element:
    """A place that scrolls, for the keyboard too."""
    return attributes(box(f"mb-scroll {classes}", tag), tabindex="0")


def text(content: str, classes: str = "", tag: str = "span") -> TextElement:
    """An element with text; markup in it is not interpreted."""
    return TextElement(tag=tag, text=content).classes(classes)


def attributes(element: Element, **values: object) -> Element:
    """Set HTML attributes; `_` in a name stands for `-`, a bool becomes `true` or `false`, as ARIA has it."""
    for name, value in values.items():
        shown = str(value).lower() if isinstance(value, bool) else value
        element.props[name.strip("_").replace("_", "-")] = shown
    return element


def update(element: Element, **values: object) -> None:
    """Change HTML attributes of an element that is shown already."""
    attributes(element, **values).update()


@contextmanager
def refill(place: Element) -> Iterator[Element]:
    """A place without its content, to be filled again."""
    place.clear()
    with place:
        yield place


def toggle(element: Element, name: str, *, is_on: object) -> None:
    """Set or remove a CSS class; nothing is sent to the browser if it is so already."""
    if bool(is_on) != (name in element.classes):
        element.classes(toggle=name)


def show_if(element: Element, is_shown: object) -> None:
    toggle(element, "mb-hidden", is_on=not is_shown)


def fold(control: Element, body: Element) -> bool:
    """Show or hide a body by its control; True if it is shown now."""
    is_open = "mb-hidden" in body.classes
    show_if(body, is_open)
    update(control, aria_expanded=is_open)
    return is_open


def clickable(classes: str, on_click: Callable[..., Any] | None = None, **values: object) -> Element:
    """A plain button with these HTML attributes, to be filled."""
    element = attributes(box(classes, "button"), type="button", **values)
    return element if on_click is None else element.on("click", on_click)


def button(label: str, on_click: Callable[..., Any], classes: str = "", icon_name: str = "") -> Element:
    with clickable(f"mb-btn {classes}", on_click) as element:
        if icon_name:
            icon(icon_name, "mb-i14")
        text(label)
    return element


def icon_button(icon_name: str, label: str, on_click: Callable[..., Any] | None = None, classes: str = "") -> Element:
    """A button with an icon; the label is its tooltip and accessible name."""
    with clickable(f"mb-ib {classes}", on_click, aria_label=label, title=label) as element:
        icon(icon_name)
    return element


def icon_link(icon_name: str, label: str, target: str, **values: object) -> Element:
    """A link with an icon; the label is its tooltip and accessible name."""
    with attributes(anchor(target, classes="mb-ib"), aria_label=label, title=label, **values) as element:
        icon(icon_name)
    return element


def anchor(target: str, content: str = "", classes: str = "mb-link") -> Element:
    element = attributes(box(classes, "a"), href=target)
    if content:
        with element:
            text(content)
    return element


def copy_button(i18n: Localizer, content: str) -> Element:
    """Copies the content to the clipboard."""
    element = icon_button("copy", i18n("copy"))
    return element.on("click", js_handler=f"(event) => {{ event.stopPropagation(); mbCopy({json.dumps(content)}); }}")


def copy_link_button(i18n: Localizer) -> Element:
    """Copies the address of the page to the clipboard."""
    return icon_button("link", i18n("timeline.copy_link")).on("click", js_handler="() => mbCopy(location.href)")


def identifier(i18n: Localizer, name: str, target: str = "", shown: str = "") -> Element:
    """A shortened id with a link and a copy button."""
    with box("mb-id") as element:
        content = shown or short_id(name)
        if target:
            anchor(target, content, "mb-link mb-ell").props["title"] = name
        else:
            text(content, "mb-ell").props["title"] = name
        copy_button(i18n, name)
    return element


def short_id(name: str) -> str:
    """The first 12 and last 4 characters of a long id."""
    return name if len(name) <= _LONG_ID else f"{name[:12]}…{name[-4:]}"


def tag(content: str, colour: str = "", classes: str = "", *, dot: bool = False) -> Element:
    """A label, coloured if a colour is given."""
    element = box(f"mb-tag {'mb-tint' if colour else ''} {classes}", "span")
    if colour:
        element.style(f"--c: var(--{colour})")
    with element:
        if dot:
            box("mb-dot", "i")
        text(content)
    return element


def person(user_id: str, name: str, classes: str = "") -> Element:
    """Initials on a colour derived from the user id."""
    parts = re.split(r"[\s_.-]+", name.strip("_.- "))
    initials = parts[0][:1] + (parts[1][:1] if len(parts) > 1 else parts[0][1:2])
    hue = zlib.crc32(user_id.encode()) % 24 * 15  # degrees
    with attributes(box(f"mb-person {classes}").style(f"--h: {hue}"), aria_hidden="true") as element:
        text(initials.upper() or "?")
    return element


def moment(i18n: Localizer, at: datetime, shown: str, classes: str = "mb-cap mb-t3 mb-num") -> TextElement:
    """A local time with UTC as its tooltip."""
    element = text(shown, classes, "time")
    attributes(element, title=utc(at), datetime=at.isoformat())
    return element


def head(title: str, classes: str = "mb-head") -> Element:
    with box(classes) as element:
        text(title, "", "h2")
    return element


def score_bar(*shares: tuple[float, str], classes: str = "", title: str = "") -> None:
    """A bar filled by (part from 0 to 1, colour)."""
    with attributes(box(f"mb-score {classes}"), aria_hidden="true", **({"title": title} if title else {})):
        for part, colour in shares:
            box("", "i").style(f"width: {100 * part:.1f}%; --c: var(--{colour})")


def field(label: str, value: str, on_change: Callable[[str], Any], **more: object) -> Element:
    """A text input with an accessible label."""
    element = attributes(box("mb-input", "input"), aria_label=label, autocomplete="off", **more)
    # As an attribute, once: as a property it would come back over what was typed with every change of the page.
    element.props["^value"] = value
    return element.on("input", lambda event: on_change(str(event.args)), js_handler=VALUE)


def rewrite(written: Element, value: str) -> None:
    written.client.run_javascript(f"getHtmlElement({written.id}).value = {json.dumps(value)}")


def search(label: str, on_change: Callable[[str], Any], value: str = "") -> Element:
    """A search input; `/` focuses it."""
    with box("mb-search") as element:
        icon("search")
        field(label, value, on_change, placeholder=label, type="search", data_search="")
    return element


def choice(label: str, options: Sequence[tuple[str, str]], value: str, on_change: Callable[[str], Any]) -> Element:
    """A drop-down list of (key, label) options."""
    with attributes(box("mb-input", "select"), aria_label=label) as element:
        for key, content in options:
            option = attributes(text(content, "", "option"), value=key)
            if key == value:
                option.props["selected"] = True
    return element.on("change", lambda event: on_change(str(event.args)), js_handler=VALUE)


@contextmanager
def popup(label: str, classes: str = "mb-dialog", role: str = "dialog") -> Iterator[Dialog]:
    """A dialog that Escape closes."""
    with ui.dialog(value=True) as dialog, box(f"mb-float {classes}"):
        attributes(dialog, aria_label=label, role=role)
        dialog.on("hide", dialog.delete)
        yield dialog


class Drawer:
    """A panel at the side; on a phone, from below."""

    def __init__(self, place: Element) -> None:
        self._place = place

    def close(self) -> None:
        self._place.clear()
        show_if(self._place, is_shown=False)

    @contextmanager
    def open(self, label: str) -> Iterator[None]:
        """The drawer without its content, to be filled again."""
        show_if(self._place, is_shown=True)
        with refill(self._place):
            yield
        update(self._place, aria_label=label)


class SegmentedControl:
    """A choice of one among a few visible options."""

    def __init__(self, options: Sequence[tuple[str, str]], value: str, on_change: Callable[[str], Any]) -> None:
        self._on_change = on_change
        self._buttons: dict[str, Element] = {}
        with attributes(box("mb-seg"), role="group"):
            for key, label in options:
                element = attributes(text(label, "", "button"), type="button", aria_pressed=key == value)
                self._buttons[key] = element.on("click", lambda _event, key=key: self.choose(key))

    def choose(self, chosen: str) -> Any:
        """Returns what `on_change` returns, for it to be awaited."""
        for key, element in self._buttons.items():
            update(element, aria_pressed=key == chosen)
        return self._on_change(chosen)


def figure(label: str, looks: str) -> TextElement:
    """A number above its label."""
    with box("mb-figure"):
        value = text("–", "mb-figure-value mb-num")
        text(label, looks)
    return value


class Kpi:
    """A key figure with a note, a progress bar and a sparkline, each shown once there is something to show."""

    def __init__(self, label: str, spark: str = "", colour: str = "acc") -> None:
        with box("mb-kpi"):
            with box("mb-stack mb-grow"):
                text(label, "mb-label")
                with box("mb-kpi-line"):
                    self._value, self._note = text("–"), text("", "mb-meta mb-num mb-ell")
                with box("mb-bar mb-hidden") as self._bar:
                    self._done = box("", "i")
            self._spark = ui.html("", sanitize=False).classes(f"mb-spark mb-hidden {spark}")
            self._spark.style(f"color: var(--{colour})")

    def show(
        self, value: str, note: str = "", curve: Sequence[float] = (), *, part: float | None = None, look: str = ""
    ) -> None:
        self._value.set_text(value)
        self._value.classes(replace=f"mb-kpi-value mb-num {look}")
        self._note.set_text(note)
        if part is not None:
            show_if(self._bar, is_shown=True)
            self._done.style(f"width: {100 * min(part, 1):.0f}%")
        if curve:
            show_if(self._spark, is_shown=True)
            self._spark.set_content(sparkline(curve, 72, 24))
