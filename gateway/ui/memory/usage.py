"""Versions of a unit, and the answers and artifacts that were made with it, as the timeline and manifests have them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from bus_schema.artifacts import Manifest
from bus_schema.dialogue import MessageSent
from bus_schema.kem import Kem
from bus_schema.storage import SearchArtifacts
from bus_schema.timeline import GetTimeline, TimelineEvent
from gateway.backend import Backend
from gateway.ui.components import anchor, box, identifier, moment, text
from gateway.ui.page_session import PageSession
from gateway.ui.runs.lineage import artifact_url
from gateway.ui.svg import icon

# Memory itself tells of a change: who asked for it is not known then.
_SERVICE = "svc."
_PAGE, _MAX_PAGES, _ARTIFACTS_PAGE = 500, 6, 200
_CHANGES, _ANSWER = ("stored", "updated", "published"), "message_sent"


@dataclass(frozen=True)
class KemUsage:
    """Changes, answers and artifacts, the newest first; not `is_all` where only the last events were looked through."""

    changes: tuple[TimelineEvent, ...]
    answers: tuple[TimelineEvent, ...]
    artifacts: tuple[Manifest, ...]
    is_all: bool


async def usage_of(backend: Backend, kem: Kem) -> KemUsage:
    """Raises ReplyError, BusUnavailable."""
    query = GetTimeline(since=kem.created_at, topics=("kem", "dialogue"), limit=_PAGE, newest_first=True)
    events: list[TimelineEvent] = []
    is_all = False
    for _ in range(_MAX_PAGES):
        page = await backend.recorded(query)
        events += page.items
        query = query.model_copy(update={"cursor": page.next_cursor})
        if is_all := page.next_cursor is None:
            break
    artifacts = [each async for each in _made_with(backend, kem)]
    return KemUsage(
        tuple(event for event in events if _kind(event) in _CHANGES and _data(event).get("kem_id") == kem.id),
        tuple(event for event in events if _kind(event) == _ANSWER and kem.id in _data(event).get("kem_ids", ())),
        tuple(reversed(artifacts)),
        is_all,
    )


def _kind(event: TimelineEvent) -> str:
    return event.envelope.type.split(".")[-2]


def _data(event: TimelineEvent) -> dict[str, Any]:
    return event.envelope.data or {}


async def _made_with(backend: Backend, kem: Kem) -> AsyncIterator[Manifest]:
    query = SearchArtifacts(created_after=kem.created_at, limit=_ARTIFACTS_PAGE)
    for _ in range(_MAX_PAGES):
        page = await backend.bus.request(query)
        for manifest in page.items:
            if manifest.context is not None and kem.id in manifest.context.input_kems:
                yield manifest
        if page.next_cursor is None:
            return
        query = query.model_copy(update={"cursor": page.next_cursor})


def show_usage(session: PageSession, kem: Kem, usage: KemUsage) -> None:
    """Versions, then what used the unit."""
    i18n, now = session.i18n, datetime.now(UTC)
    text(i18n("memory.versions"), "mb-meta mb-medium", "h3")
    for event in usage.changes:
        with box("mb-line-x mb-version"):
            text(f"v{_data(event).get('version', '')}", "mb-strong mb-num")
            text(i18n(f"memory.event.{_kind(event)}"), "mb-t2")
            by = event.envelope.requester
            text("" if by.startswith(_SERVICE) else by, "mb-meta mb-ell mb-grow")
            moment(i18n, event.envelope.time, i18n.when(event.envelope.time, now))
    if not usage.changes:
        text(i18n("memory.one_version", version=kem.version), "mb-meta", "p")
    _show_used_in(session, usage)


def _show_used_in(session: PageSession, usage: KemUsage) -> None:
    i18n, now = session.i18n, datetime.now(UTC)
    text(i18n("memory.used_in"), "mb-meta mb-medium mb-used-in", "h3")
    for event in usage.answers:
        sent = MessageSent.model_validate(_data(event))
        with box("mb-line-x mb-version"):
            icon("chat", "mb-i14 mb-t3")
            target = f"/chat?{urlencode({'with': sent.user_id, 'message': sent.message_id})}"
            anchor(target, i18n("memory.answer_to", user=session.backend.names.of(sent.user_id)))
            text(sent.preview, "mb-meta mb-ell mb-grow")
            moment(i18n, event.envelope.time, i18n.when(event.envelope.time, now))
    for manifest in usage.artifacts:
        with box("mb-line-x mb-version"):
            icon("file", "mb-i14 mb-t3")
            identifier(i18n, manifest.id, artifact_url(manifest.id, manifest.trace_id))
            text(f"{manifest.artifact_type} v{manifest.version}", "mb-meta mb-ell mb-grow")
            moment(i18n, manifest.created_at, i18n.when(manifest.created_at, now))
    if not (usage.answers or usage.artifacts):
        text(i18n("memory.not_used"), "mb-meta", "p")
    if not usage.is_all:
        text(i18n("memory.usage_cut"), "mb-meta", "p")
