"""The page layout: navigation rail, top bar, health, loading placeholder."""

import json
from collections.abc import Sequence
from typing import Final

from nicegui import ui
from nicegui.element import Element

from gateway.activity import BusHealth
from gateway.ui.components import anchor, attributes, box, clickable, icon_button, refill, show_if, text
from gateway.ui.i18n import Localizer
from gateway.ui.svg import LOGO, icon

SCREENS: Final = ("timeline", "chat", "tasks", "runs", "fleet", "memory", "sim")
# The others are under "More" there.
_ON_PHONE: Final = ("timeline", "chat", "tasks", "fleet", "memory")
_THEMES: Final = (("dark", "moon"), ("light", "sun"), ("system", "system"))
_LANGUAGES: Final = (("en", "English"), ("ru", "Русский"))


class Layout:
    """Draws the layout of a page; the screen fills `subtitle`, `controls` and `main`."""

    def __init__(self, i18n: Localizer, name: str, *, can_leave: bool = False) -> None:
        self.i18n, self.name, self._can_leave = i18n, name, can_leave
        # Text marks are set before anything is drawn, so that a screen reader never starts in the wrong language.
        ui.add_head_html(f'<script>document.documentElement.lang = "{i18n.language}";</script>')
        with box("mb-app") as self.app:
            anchor("#mb-main", i18n("skip"), "mb-skip")
            self._rail()
            self._top()
        attributes(box("mb-toasts"), role="status", aria_live="polite")
        ui.run_javascript(f"mbKnow({json.dumps({name: i18n(key) for name, key in _BROWSER_MESSAGES.items()})})")

    def show_health(self, health: BusHealth) -> None:
        i18n = self.i18n
        self._dot.classes(replace=f"mb-dot mb-{health.state} {_SHAPES[health.state]}")
        label = i18n(health.sentence, **health.about)
        if self._sentence.text != label:
            self._sentence.set_text(label)
            self._sentence.classes(replace="" if health.state == "ok" else f"mb-{health.state}")
        self._rate.set_text(i18n("per_second", n=i18n.number(health.per_second)))
        attributes(self._health, title=label)
        self._badge.set_text(str(health.needing) if health.needing else "")
        show_if(self._badge, health.needing)

    def crumbs(self, parts: Sequence[tuple[str, str]]) -> None:
        """Set the title as breadcrumbs of (text, link); the last has no link."""
        with refill(self._title):
            for label, target in parts:
                if target:
                    anchor(target, label, "mb-t3")
                    text("/", "mb-crumb mb-t3")
                else:
                    text(label, "mb-ell")

    def _rail(self) -> None:
        i18n = self.i18n
        with attributes(box("mb-rail", "nav"), aria_label=i18n("nav.label")):
            with anchor("/timeline", classes="mb-logo"):
                ui.html(LOGO, sanitize=False, tag="span").style("display: contents")
                text("MindBus", "mb-sr")
            with box("mb-nav"):
                for name in SCREENS:
                    self._place(name)
                with clickable("mb-more", aria_label=i18n("nav.more")):
                    icon("more")
                    text(i18n("nav.more"))
                    with ui.menu().classes("mb-menu"):
                        for name in (name for name in SCREENS if name not in _ON_PHONE):
                            self._option(i18n(f"nav.{name}"), f"location.href = '/{name}'", name)
                        self._themes()
                        self._languages("globe")
            with box("mb-foot"):
                with icon_button("globe", i18n("language")), ui.menu().classes("mb-menu"):
                    self._languages()
                with icon_button("moon", i18n("theme")), ui.menu().classes("mb-menu"):
                    self._themes()
                if self._can_leave:
                    icon_button("logout", i18n("log_out")).on("click", js_handler=_LEAVE)
                icon_button("keyboard", i18n("keys.title")).on("click", js_handler=_press("?"))

    def _place(self, name: str) -> None:
        element = anchor(f"/{name}", classes="" if name in _ON_PHONE else "mb-not-phone")
        if name == self.name:
            attributes(element, aria_current="page")
        with element:
            icon(name)
            text(self.i18n(f"nav.{name}"))
            if name == "fleet":
                self._badge = text("", "mb-badge mb-hidden")

    def _languages(self, icon_name: str = "") -> None:
        for key, name in _LANGUAGES:
            is_on = key == self.i18n.language
            self._option(name, f"mbRemember('mb_lang', '{key}'); location.reload()", icon_name, is_on=is_on)

    def _themes(self) -> None:
        for key, icon_name in _THEMES:
            self._option(self.i18n(f"theme.{key}"), f"mbSetTheme('{key}')", icon_name)

    def _option(self, label: str, script: str, icon_name: str = "", *, is_on: bool = False) -> None:
        option = clickable("", role="menuitemradio", aria_checked=is_on)
        with option.on("click", js_handler=f"() => {{ {script} }}"):
            if icon_name:
                icon(icon_name)
            text(label)

    def _top(self) -> None:
        i18n = self.i18n
        with box("mb-top", "header"):
            with box("mb-title mb-line-x", "h1") as self._title:
                text(i18n(f"nav.{self.name}"))
            self.subtitle = text("", "mb-meta mb-ell mb-subtitle", "div")
            box("mb-grow")
            self.controls = box("mb-line-x mb-controls")
            with clickable("mb-find", aria_label=i18n("find")) as find:
                icon("search", "mb-i14")
                text(i18n("find"), "mb-find-text")
                self.find_keys = text("", "mb-kbd")
            find.on("click", js_handler="() => mbOpenPalette()")
            with anchor("/fleet", classes="mb-health") as self._health:
                self._dot = box("mb-dot mb-t3", "i")
                self._sentence = text(i18n("health.unknown"))
                self._rate = text("", "mb-num")
        self.main = attributes(box("mb-main", "main"), id="mb-main", tabindex="-1")


def _press(key: str) -> str:
    return f"() => emitEvent('mb_key', {{key: '{key}'}})"


_LEAVE = "() => fetch('/logout', {method: 'POST'}).then(() => { location.href = '/login'; })"
# What the browser says by itself, without the gateway or before it has answered.
_BROWSER_MESSAGES = {
    "copied": "copied",
    "notCopied": "not_copied",
    "lostGateway": "lost.gateway",
    "lostAgain": "lost.again",
    "lostRetry": "lost.retry",
    "lostTrying": "lost.trying",
    "lostShort": "lost.short",
}
# BusHealth is never told by colour alone.
_SHAPES = {"ok": "", "warn": "mb-ring", "err": "mb-square", "t3": ""}


def skeleton() -> Element:
    """The loading placeholder of a list."""
    with attributes(box("mb-skel"), aria_hidden="true") as element:
        for width in (38, 30, 44, 26, 34):
            with box():
                box("", "i")
                box("", "i").style(f"width: {width}%")
                box("", "i").style(f"width: {width + 16}%")
    return element
