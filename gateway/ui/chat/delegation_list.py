"""The delegations of one chat among what is said there."""

from collections.abc import Iterable
from datetime import datetime

from nicegui.element import Element

from bus_schema.dialogue import conversation_trace
from bus_schema.envelope import Envelope
from bus_schema.timeline import GetTimeline
from gateway.ui.chat.delegation_entry import DelegationEntry
from gateway.ui.chat.delegations import TOPIC, Delegations, Story
from gateway.ui.frame import Frame

_PAGE = 500
_MOST_PAGES = 10


class DelegationList:
    """Draws each where it belongs in time, changes it as more is told of it."""

    def __init__(self, frame: Frame, user_id: str, entries: Element) -> None:
        self._frame, self._user_id, self._entries = frame, user_id, entries
        self._known = Delegations(user_id)
        self._drawn: dict[str, DelegationEntry] = {}
        self._waiting: list[Story] = []

    def hear(self, envelopes: Iterable[Envelope]) -> None:
        """Something was told of what sub-agents do."""
        for story in self._known.learn(envelopes):
            entry = self._drawn.get(story.delegation_id)
            if entry is None:
                self._draw(story)
            else:
                entry.show(story)

    async def read(self, since: datetime) -> None:
        """What the timeline has from then on."""
        trace = conversation_trace(self._user_id)
        wanted = GetTimeline(since=since, trace_id=trace, topics=(TOPIC,), limit=_PAGE)
        for _ in range(_MOST_PAGES):
            page = await self._frame.backend.timeline(wanted)
            self._known.learn(event.envelope for event in page.items)
            if len(page.items) < _PAGE:
                return
            wanted = wanted.model_copy(update={"cursor": page.next_cursor})

    def begin_anew(self) -> None:
        """All is drawn again, message by message."""
        self._drawn.clear()
        self._waiting = self._known.stories

    def draw_until(self, moment: datetime | None = None) -> None:
        """Those that began before something was said; in the end, all that are left."""
        while self._waiting and (moment is None or self._waiting[0].began < moment):
            self._draw(self._waiting.pop(0))

    def _draw(self, story: Story) -> None:
        with self._entries:
            self._drawn[story.delegation_id] = DelegationEntry(self._frame.words, story)
