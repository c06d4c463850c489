"""Delegations to sub-agents in a chat: their events put together, and their views among the messages."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from nicegui.element import Element
from pydantic import ValidationError

from bus_schema.dialogue import conversation_trace
from bus_schema.envelope import Envelope
from bus_schema.subagent import (
    SubagentAssistantWithTools,
    SubagentCompletion,
    SubagentDelegation,
    SubagentEvent,
    SubagentTool,
    SubagentToolResult,
)
from bus_schema.timeline import GetTimeline
from gateway.api.dialogues import SUBAGENT_TOPIC
from gateway.ui.chat.message_views import artifact_link
from gateway.ui.components import attributes, box, clickable, fold, refill, text
from gateway.ui.i18n import Localizer
from gateway.ui.page_session import PageSession
from gateway.ui.rich_text import markdown
from gateway.ui.svg import icon

_READ: Final[dict[str, type[SubagentEvent]]] = {
    kind.wire.type: kind
    for kind in (SubagentDelegation, SubagentAssistantWithTools, SubagentToolResult, SubagentCompletion, SubagentTool)
}


@dataclass
class DelegationLog:
    """Events of one delegation, in any order, possibly repeated."""

    delegation_id: str
    subagent: str
    began: datetime
    events: dict[tuple[int, str], SubagentEvent] = field(default_factory=dict)

    @property
    def task(self) -> str:
        return next((event.task for event in self.in_order if isinstance(event, SubagentDelegation)), "")

    @property
    def in_order(self) -> list[SubagentEvent]:
        return [self.events[place] for place in sorted(self.events)]

    @property
    def completion(self) -> SubagentCompletion | None:
        """The sub-agent's own completion, else the one recorded after a timeout."""
        return next((event for event in self.in_order if isinstance(event, SubagentCompletion)), None)

    @property
    def status(self) -> str:
        """Status of the tool that is running."""
        last = self.in_order[-1] if self.in_order else None
        return last.status if isinstance(last, SubagentTool) else ""

    @property
    def results(self) -> list[SubagentToolResult]:
        return [event for event in self.in_order if isinstance(event, SubagentToolResult)]

    def arguments_of(self, call_id: str) -> str:
        calls = (
            call for item in self.in_order if isinstance(item, SubagentAssistantWithTools) for call in item.tool_calls
        )
        return next((call.function.arguments for call in calls if call.id == call_id), "")


class Delegations:
    """The known delegations of one chat."""

    def __init__(self, chat_id: str) -> None:
        self._chat_id = chat_id
        self._stories: dict[str, DelegationLog] = {}

    @property
    def stories(self) -> list[DelegationLog]:
        return sorted(self._stories.values(), key=lambda story: story.began)

    def learn(self, envelopes: Iterable[Envelope]) -> list[DelegationLog]:
        """Delegations with new events; unreadable events are ignored."""
        changed: dict[str, DelegationLog] = {}
        for envelope in envelopes:
            if envelope.type not in _READ:
                continue
            with suppress(ValidationError):
                event = _READ[envelope.type].model_validate(envelope.data or {})
                if event.chat_id == self._chat_id and (story := self._take(event)):
                    changed[story.delegation_id] = story
        return list(changed.values())

    def _take(self, event: SubagentEvent) -> DelegationLog | None:
        name = event.delegation_id
        story = self._stories.setdefault(name, DelegationLog(name, event.subagent, event.time))
        place = (event.position, type(event).__name__)
        if place in story.events:
            return None
        story.began = min(story.began, event.time)
        story.events[place] = event
        return story


_SHOWN_CHARS = 600


class DelegationView:
    """A delegation, collapsed to one line or expanded."""

    def __init__(self, i18n: Localizer, story: DelegationLog) -> None:
        self.i18n, self._story = i18n, story
        label = i18n("chat.delegation", name=story.subagent)
        self.element = box("mb-delegation", "section")
        with attributes(self.element, aria_label=label, data_delegation=story.delegation_id):
            self._head = clickable("mb-delegation-head", self._toggle, aria_expanded=False)
            self._body = box("mb-delegation-body mb-hidden")
        self.show(story)

    def show(self, story: DelegationLog) -> None:
        self._story = story
        with refill(self._head):
            self._line(story)
        if "mb-hidden" not in self._body.classes:
            self._show_body()

    def _line(self, story: DelegationLog) -> None:
        i18n, end, tools = self.i18n, story.completion, len(story.results)
        icon("link", "mb-i14")
        text(story.subagent, "mb-medium")
        text(story.task, "mb-ell mb-delegation-task")
        box("mb-grow")
        if end is None:
            state, looks = story.status or i18n("chat.delegation_at_work"), "mb-acc mb-ell"
        elif end.is_error:
            state, looks = i18n("chat.delegation_failed"), "mb-err"
        else:
            state = i18n.count("chat.delegation_tools", tools) if tools else i18n("chat.delegation_done")
            looks = "mb-meta"
        text(state, f"{looks} mb-delegation-state")
        icon("down", "mb-i14 mb-delegation-fold")

    def _toggle(self) -> None:
        if fold(self._head, self._body):
            self._show_body()

    def _show_body(self) -> None:
        i18n, story = self.i18n, self._story
        with refill(self._body):
            with box():
                text(i18n("chat.delegation_task"), "mb-label")
                text(story.task, "mb-delegation-text", "p")
            for result in story.results:
                self._tool(result)
            if (end := story.completion) is not None:
                text(i18n("chat.delegation_answer"), "mb-label")
                if end.is_error:
                    text(end.response, "mb-err mb-delegation-text", "p")
                else:
                    markdown(end.response)

    def _tool(self, result: SubagentToolResult) -> None:
        with box("mb-line-x"):
            icon("alert" if result.is_error else "check", "mb-i14")
            text(result.name, "mb-medium")
            text(self._story.arguments_of(result.tool_call_id), "mb-meta mb-ell mb-mono")
        shown = result.content
        text(shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}…", "mb-delegation-text", "p")
        if result.ref is not None:
            artifact_link(self.i18n, result.ref, conversation_trace(self._story.in_order[0].chat_id))


_PAGE = 500
_MAX_PAGES = 10


class DelegationList:
    """Draws delegations between the messages by time and updates them."""

    def __init__(self, session: PageSession, user_id: str, entries: Element) -> None:
        self._session, self._user_id, self._entries = session, user_id, entries
        self._delegations = Delegations(user_id)
        self._drawn: dict[str, DelegationView] = {}
        self._waiting: list[DelegationLog] = []
        self._answers: list[tuple[datetime, Element]] = []

    def receive(self, envelopes: Iterable[Envelope]) -> None:
        for story in self._delegations.learn(envelopes):
            if story.delegation_id in self._drawn:
                self._drawn[story.delegation_id].show(story)
            else:
                self._draw(story)

    async def read(self, since: datetime) -> None:
        trace = conversation_trace(self._user_id)
        query = GetTimeline(since=since, trace_id=trace, topics=(SUBAGENT_TOPIC,), limit=_PAGE)
        events, _ = await self._session.read_timeline(query, _MAX_PAGES)
        self._delegations.learn(event.envelope for event in events)

    def begin_anew(self) -> None:
        self._drawn.clear()
        self._answers.clear()
        self._waiting = self._delegations.stories

    def pass_answer(self, moment: datetime) -> None:
        """Note the entry drawn last as an answer of that time: what led to it, but is heard later, goes before it."""
        self._answers.append((moment, self._entries.default_slot.children[-1]))

    def draw_until(self, moment: datetime | None = None) -> None:
        """Draw those that began before the moment; without one, all that are left."""
        while self._waiting and (moment is None or self._waiting[0].began < moment):
            self._draw(self._waiting.pop(0))

    def _draw(self, story: DelegationLog) -> None:
        with self._entries:
            view = self._drawn[story.delegation_id] = DelegationView(self._session.i18n, story)
        entries = self._entries.default_slot.children
        if answer := next((element for moment, element in self._answers if moment > story.began), None):
            view.element.move(target_index=entries.index(answer))
