"""What sub-agents were given to do, read from what was told of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from bus_schema.envelope import Envelope
from bus_schema.subagent import (
    SubagentAssistantWithTools,
    SubagentCompletion,
    SubagentDelegation,
    SubagentEvent,
    SubagentTool,
    SubagentToolResult,
)

_READ: Final[dict[str, type[SubagentEvent]]] = {
    kind.wire.type: kind
    for kind in (
        SubagentDelegation,
        SubagentAssistantWithTools,
        SubagentToolResult,
        SubagentCompletion,
        SubagentTool,
    )
}
TOPIC: Final = "subagent"


@dataclass
class Story:
    """One delegation; its events may come in any order, some of them twice."""

    delegation_id: str
    subagent: str
    began: datetime
    events: dict[tuple[int, str], SubagentEvent] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """What was to be done."""
        return next((each.task for each in self.told if isinstance(each, SubagentDelegation)), "")

    @property
    def told(self) -> list[SubagentEvent]:
        """What was told of it, in its order."""
        return [event for _, event in sorted(self.events.items(), key=lambda each: each[0])]

    @property
    def completion(self) -> SubagentCompletion | None:
        """How it ended: as the sub-agent says, else as whoever waited in vain does."""
        return next((each for each in self.told if isinstance(each, SubagentCompletion)), None)

    @property
    def status(self) -> str:
        """What a tool is doing just now."""
        last = self.told[-1] if self.told else None
        return last.status if isinstance(last, SubagentTool) else ""

    @property
    def results(self) -> list[SubagentToolResult]:
        """What tools have answered."""
        return [each for each in self.told if isinstance(each, SubagentToolResult)]

    def arguments_of(self, call_id: str) -> str:
        """What a tool was asked."""
        calls = (call for each in self.told if isinstance(each, SubagentAssistantWithTools) for call in each.tool_calls)
        return next((call.function.arguments for call in calls if call.id == call_id), "")


class Delegations:
    """All those of one chat that are known here."""

    def __init__(self, chat_id: str) -> None:
        self._chat_id = chat_id
        self._stories: dict[str, Story] = {}

    @property
    def stories(self) -> list[Story]:
        """In the order in which they began."""
        return sorted(self._stories.values(), key=lambda story: story.began)

    def learn(self, envelopes: Iterable[Envelope]) -> list[Story]:
        """The stories that something new was told of; an event that cannot be read tells nothing."""
        changed: dict[str, Story] = {}
        for envelope in envelopes:
            kind = _READ.get(envelope.type)
            if kind is None:
                continue
            try:
                event = kind.model_validate(envelope.data or {})
            except ValidationError:
                continue
            if event.chat_id == self._chat_id and (story := self._take(event)):
                changed[story.delegation_id] = story
        return list(changed.values())

    def _take(self, event: SubagentEvent) -> Story | None:
        story = self._stories.setdefault(event.delegation_id, Story(event.delegation_id, event.subagent, event.time))
        place = (event.position, type(event).__name__)
        if place in story.events:
            return None
        story.began = min(story.began, event.time)
        story.events[place] = event
        return story
