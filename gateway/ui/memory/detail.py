"""One unit: content, score, origin, storage details."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from nicegui.element import Element

from bus_schema.identities import is_user_id
from bus_schema.kem import Kem, KemSource
from bus_schema.kem_match import facets
from bus_schema.messages import Link
from gateway.ui.components import (
    Drawer,
    anchor,
    attributes,
    box,
    button,
    clickable,
    copy_link_button,
    icon_button,
    identifier,
    moment,
    refill,
    score_bar,
    scroller,
    text,
)
from gateway.ui.memory.results import MARKDOWN, KemItem, ScoreShares, content_of, show_state
from gateway.ui.memory.usage import show_usage, usage_of
from gateway.ui.page_session import PageSession
from gateway.ui.rich_text import highlight, markdown, show_text, text_diff
from gateway.ui.svg import icon
from mindbus.sdk.kem_filters import format_value


@dataclass(frozen=True)
class OriginStep:
    """A source of a unit; `span` is a range of its characters."""

    kind: str
    id: str
    target: str = ""
    span: tuple[int, int] | None = None


def origin_of(kem: Kem) -> list[OriginStep]:
    """Sources from the first on, without the unit itself."""
    source = kem.source or KemSource()
    steps = [_linked_step(link, kem) for link in source.links]
    if source.artifact is not None:
        span = None if source.start is None or source.end is None else (source.start, source.end)
        artifact_id = source.artifact.artifact_id
        steps.append(OriginStep("artifact", artifact_id, _artifact(artifact_id, kem), span))
    return steps


def content_target(kem: Kem) -> str:
    """Link to the artifact that holds the content."""
    return "" if kem.ref is None else _artifact(kem.ref.artifact_id, kem)


def _linked_step(link: Link, kem: Kem) -> OriginStep:
    user, trace = _metadata_text(kem, "user_id"), _metadata_text(kem, "trace_id")
    target = ""
    if link.kind == "artifact":
        target = _artifact(link.id, kem)
    elif is_user_id(user):
        # Whatever is found in a talk is shown beside it.
        message = {"message": link.id} if link.kind == "message" else {}
        target = f"/chat?{urlencode({'with': user} | message)}"
    elif trace:
        target = f"/timeline?{urlencode({'trace': trace})}"
    return OriginStep(link.kind, link.id, target)


def _artifact(artifact_id: str, kem: Kem) -> str:
    trace = _metadata_text(kem, "trace_id")
    return f"/artifacts/{quote(artifact_id)}" + (f"?{urlencode({'trace': trace})}" if trace else "")


def _metadata_text(kem: Kem, key: str) -> str:
    value = kem.metadata.get(key)
    return value if isinstance(value, str) else ""


_PICTURES = {"message": "chat", "fragment": "chat", "artifact": "file", "task": "task", "notification": "bell"}


class KemDetail(Drawer):
    def __init__(
        self, session: PageSession, place: Element, close: Callable[[], Any], pick: Callable[[str, str], Any]
    ) -> None:
        super().__init__(place)
        self.session, self.i18n, self._close, self._pick = session, session.i18n, close, pick

    def show(self, hit: KemItem) -> None:
        with self.open(hit.kem.id):
            self._head(hit)
            with scroller("mb-grow"):
                self._content(hit)
                if hit.found.score is not None:
                    self._why(hit)
                self._origin(hit.kem)
                self._stored(hit.kem)
                self._usage(hit.kem)

    def show_empty(self) -> None:
        with self.open(self.i18n("memory.not_there")), box("mb-drawer-part"):
            text(self.i18n("memory.not_there"), "", "p")
            button(self.i18n("close"), self._close, "mb-small")

    def _head(self, hit: KemItem) -> None:
        with box("mb-head mb-drawer-head"):
            with box("mb-grow mb-line-x"):
                identifier(self.i18n, hit.kem.id)
                show_state(self.i18n, hit)
            copy_link_button(self.i18n)
            icon_button("close", self.i18n("close"), self._close)

    def _content(self, hit: KemItem) -> None:
        kem = hit.kem
        with box("mb-drawer-part"):
            with box("mb-kem-text"):
                content, found_by = content_of(kem, self.i18n), hit.found.explain.words if hit.found.explain else ()
                if hit.before is not None and hit.before != content:
                    show_text(text_diff(hit.before, content))
                elif kem.content_type == MARKDOWN and kem.content is not None:
                    markdown(content)
                else:
                    show_text(highlight(content, found_by))
            if kem.ref is not None:
                anchor(content_target(kem), self.i18n("memory.open_artifact"))
            with box("mb-line-x mb-wrap"):
                shown_below = {step.id for step in origin_of(kem)}
                for key, value in facets(kem.metadata):
                    if value not in shown_below:
                        self._metadata(key, format_value(value))

    def _metadata(self, key: str, value: str) -> None:
        with clickable("mb-tag mb-pickable", lambda: self._pick(key, value), title=self.i18n("memory.pick")):
            text(f"{key}=", "mb-t3")
            text(value, "mb-ell")

    def _why(self, hit: KemItem) -> None:
        i18n, explain = self.i18n, hit.found.explain
        with box("mb-drawer-part", "section"):
            with box("mb-line-x"):
                text(i18n("memory.why"), "mb-meta mb-medium mb-grow", "h3")
                text(i18n.number(hit.found.score or 0, 2), "mb-num mb-strong")
            if explain is not None and explain.raised_by is not None:
                text(i18n("memory.raised", id=explain.raised_by), "mb-meta", "p")
            elif explain is not None:
                shares = ScoreShares.of(hit.found.score or 0, explain)
                lexical, dense = i18n.number(explain.lexical or 0, 2), i18n.number(explain.dense or 0, 2)
                words = i18n("memory.matched", n=lexical, words=", ".join(explain.words))
                note = words if explain.words else "memory.no_words"
                self._evidence("memory.lexical", "processed", shares.words, note)
                near = "memory.not_compared" if explain.dense is None else i18n("memory.cosine", n=dense)
                self._evidence("memory.dense", "process", shares.meaning, near)
                if shares.base:
                    self._evidence("memory.base", "t3", shares.base, "memory.base_note")
                if explain.validity != 1:
                    text(i18n("memory.weighed", n=i18n.number(explain.validity, 2)), "mb-meta", "p")

    def _evidence(self, key: str, colour: str, share: float, note: str) -> None:
        i18n = self.i18n
        note = i18n(note) if note.startswith("memory.") else note
        with box("mb-evidence"):
            text(i18n(key), "mb-t2")
            score_bar((max(share, 0), colour))
            text(i18n.number(share, 2), "mb-num mb-strong")
            attributes(text(note, "mb-meta mb-ell"), title=note)

    def _usage(self, kem: Kem) -> None:
        """Versions and use, read when they are asked for: the timeline may be long."""

        async def load() -> None:
            usage = await usage_of(self.session.backend, kem)
            with refill(place):
                show_usage(self.session, kem, usage)

        with box("mb-drawer-part", "section") as place:
            button(self.i18n("memory.show_usage"), lambda: self.session.attempt(load()), "mb-small", "clock")

    def _origin(self, kem: Kem) -> None:
        i18n = self.i18n
        with box("mb-drawer-part", "section"):
            text(i18n("memory.origin"), "mb-meta mb-medium", "h3")
            steps = origin_of(kem)
            with box("mb-origin"):
                for step in steps:
                    self._step(step)
                with box("mb-origin-step"):
                    icon("memory", "mb-i14 mb-kem-colour")
                    text(i18n("memory.this_unit", version=kem.version, owner=kem.owner), "mb-grow")
            if not steps:
                text(i18n("memory.no_origin", owner=kem.owner), "mb-meta", "p")

    def _step(self, step: OriginStep) -> None:
        i18n = self.i18n
        with box("mb-origin-step"):
            icon(_PICTURES.get(step.kind, "open"), "mb-i14 mb-t3")
            with box("mb-stack mb-grow"):
                with box("mb-line-x"):
                    text(i18n(f"memory.link.{step.kind}"), "mb-t2")
                    identifier(i18n, step.id, step.target)
                if step.span is not None:
                    start, end = map(i18n.number, step.span)
                    text(i18n("memory.span", start=start, end=end), "mb-cap mb-t3 mb-num")

    def _stored(self, kem: Kem) -> None:
        i18n, now = self.i18n, datetime.now(UTC)
        vector = kem.embeddings
        rows = {
            "owner": kem.owner,
            "readers": ", ".join([i18n(f"memory.visibility.{kem.visibility}"), *kem.readers]),
            "writers": ", ".join(kem.writers),
            "content_type": kem.content_type,
            "vector": i18n("memory.no_vector") if vector is None else f"{vector.model}, {vector.dim}",
            "version": str(kem.version),
            "supersedes": ", ".join(kem.supersedes),
            "superseded_by": kem.superseded_by or "",
        }
        times = {
            "created": kem.created_at,
            "updated": kem.updated_at,
            "valid_from": kem.valid_from,
            "valid_to": kem.valid_to,
            "expires_at": kem.expires_at,
        }
        with box("mb-drawer-part", "section"):
            text(i18n("memory.stored_as"), "mb-meta mb-medium", "h3")
            with box("mb-facts"):
                for key, content in rows.items():
                    if content:
                        text(i18n(f"memory.{key}"))
                        attributes(text(content, "mb-ell"), title=content)
                for key, at in times.items():
                    if at is None:
                        continue
                    text(i18n(f"memory.{key}"))
                    moment(i18n, at, f"{i18n.day(at, now)}, {i18n.time(at)}", "mb-num")
