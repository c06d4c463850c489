"""Dialogs: confirmation of what cannot be undone, prompts for a user, a date, a task."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

from gateway.ui.components import attributes, box, button, field, popup, text
from gateway.ui.i18n import Localizer
from gateway.ui.page_session import PageSession
from gateway.ui.sections import EXPECTED_ERRORS, error_text


async def confirm(i18n: Localizer, title: str, explanation: str, action: str, number: int) -> bool:
    """True if confirmed; for several items their number must be typed."""
    typed = {"number": ""}
    with popup(title, role="alertdialog") as dialog:
        text(title, "", "h2")
        text(explanation, "", "p")
        if number > 1:
            text(i18n("confirm.type", n=number), "mb-meta", "p")
            line = field(i18n("confirm.number"), "", lambda value: typed.update(number=value), inputmode="numeric")
            attributes(line, autofocus=True)
        with box("mb-actions"):
            with button(i18n("cancel"), lambda: dialog.submit(False), "mb-quiet"):
                text("Esc", "mb-kbd")

            def go() -> None:
                if number == 1 or typed["number"].strip() == str(number):
                    dialog.submit(True)

            button(action, go, "mb-danger")
    return bool(await dialog)


def prompt_user(
    session: PageSession,
    key: str,
    user_id: str,
    on_submit: Callable[[str], object],
    *,
    action: str = "timeline.show",
    may_be_new: bool = False,
) -> None:
    """Ask for a user by id or name, in any script; `on_submit` takes their id. Messages: `key`, `key_hint`.

    With `may_be_new` a name of nobody yet becomes a user, and there must be one; without, nothing typed means all.
    """
    i18n, names = session.i18n, session.backend.names
    typed = {"user": names.of(user_id) if user_id else ""}

    async def go() -> None:
        name = typed["user"].strip()
        try:
            chosen = (
                await names.introduce(name, session.backend.bus)
                if may_be_new and name
                else names.resolve(name)
                if name
                else ""
            )
        except EXPECTED_ERRORS as error:
            problem.set_text(error_text(i18n, error))
            return
        if chosen is None or (may_be_new and not chosen):
            problem.set_text(i18n("chat.nobody", name=name) if name else i18n("chat.no_name"))
            return
        dialog.close()
        on_submit(chosen)

    with popup(i18n(key)) as dialog:
        text(i18n(key), "", "h2")
        text(i18n(f"{key}_hint"), "", "p")
        line = field(i18n("chat.user"), typed["user"], lambda value: typed.update(user=value), placeholder="Алия")
        attributes(line, autofocus=True, maxlength=100).on("keydown.enter", go)
        problem = text("", "mb-err mb-meta")
        attributes(problem, role="alert")
        with box("mb-actions"):
            button(i18n("cancel"), dialog.close, "mb-quiet")
            button(i18n(action), go, "mb-primary")


def ask_for_range(
    i18n: Localizer, since: datetime, until: datetime, on_submit: Callable[[datetime, datetime], object]
) -> None:
    """Ask between which two moments, in the zone of the viewer."""
    form = {
        key: at.astimezone(i18n.zone).replace(tzinfo=None, second=0, microsecond=0).isoformat()
        for key, at in (("from", since), ("to", until))
    }

    def go() -> None:
        try:
            start, end = (datetime.fromisoformat(form[key]).replace(tzinfo=i18n.zone) for key in ("from", "to"))
        except ValueError:
            problem.set_text(i18n("range.no_date"))
            return
        problem.set_text("" if start < end else i18n("range.backwards"))
        if start < end:
            on_submit(start, end)

    with popup(i18n("range.custom")):
        text(i18n("range.custom"), "", "h2")
        for key in ("from", "to"):
            text(i18n(f"range.{key}"), "mb-label")
            line = field(i18n(f"range.{key}"), form[key], partial(form.__setitem__, key), type="datetime-local")
            line.on("keydown.enter", go)
        problem = text("", "mb-err mb-meta")
        attributes(problem, role="alert")
        with box("mb-actions"):
            button(i18n("timeline.show"), go, "mb-primary")


def ask_for_date(i18n: Localizer, task: str, submit: Callable[[str], Awaitable[str | None]]) -> None:
    """Ask when a task is to be done, in words or as a date; `submit` returns what is wrong with the answer."""
    form = {"when": ""}

    async def go(when: str | None = None) -> None:
        problem.set_text(i18n("tasks.no_date") if not (when or form["when"]).strip() else "")
        if not problem.text:
            problem.set_text(await submit((when or form["when"]).strip()) or "")
        if not problem.text:
            dialog.close()

    with popup(i18n("tasks.move_title")) as dialog:
        text(i18n("tasks.move_title"), "", "h2")
        text(task, "mb-clamp", "p")
        with box("mb-line-x mb-wrap"):
            for key in ("tomorrow", "in_three_days", "next_week"):
                words = i18n(f"tasks.words_{key}")
                button(i18n(f"tasks.to_{key}"), partial(go, words), "mb-small")
        when = field(i18n("tasks.when"), "", lambda value: form.update(when=value), placeholder=i18n("tasks.when_hint"))
        attributes(when, autofocus=True, maxlength=100).on("keydown.enter", lambda: go())
        problem = text("", "mb-err mb-meta")
        attributes(problem, role="alert")
        with box("mb-actions"):
            button(i18n("cancel"), dialog.close, "mb-quiet")
            button(i18n("tasks.move"), lambda: go(), "mb-primary")


def ask_for_task(
    i18n: Localizer, user_id: str | None, submit: Callable[[str, str, str, str], Awaitable[str | None]]
) -> None:
    """Ask for the words, the owner and the date of a new task, and for its user where none is given.

    `submit` takes user, words, owner and date, and returns what is wrong with them.
    """
    form = {"user": user_id or "", "words": "", "owner": "", "when": ""}

    async def go() -> None:
        user, words, owner, when = (form[name].strip() for name in ("user", "words", "owner", "when"))
        problem.set_text((await submit(user, words, owner, when) or "") if words else i18n("tasks.no_words"))
        if not problem.text:
            dialog.close()

    with popup(i18n("tasks.new")) as dialog:
        text(i18n("tasks.new"), "", "h2")
        for name, label in (
            ("user", "chat.user"),
            ("words", "tasks.words"),
            ("when", "tasks.when"),
            ("owner", "tasks.owner"),
        ):
            if name == "user" and user_id:
                continue
            text(i18n(label), "mb-label")
            line = field(i18n(label), "", partial(_set, form, name), placeholder=i18n(f"tasks.{name}_hint"))
            attributes(line, maxlength=500 if name == "words" else 100).on("keydown.enter", go)
            if name == ("words" if user_id else "user"):
                attributes(line, autofocus=True)
        problem = text("", "mb-err mb-meta")
        attributes(problem, role="alert")
        with box("mb-actions"):
            button(i18n("cancel"), dialog.close, "mb-quiet")
            button(i18n("tasks.add"), go, "mb-primary", "plus")


def _set(form: dict[str, str], name: str, value: str) -> None:
    form[name] = value
