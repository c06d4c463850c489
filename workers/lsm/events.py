"""Events of long-term memory, each published in the trace of its conversation."""

from collections.abc import Iterable

from bus_schema.dialogue import conversation_trace
from bus_schema.lsm_events import EpisodeReactivated, EpisodeTouched
from memory.lsm.recording import RecordingEvent
from memory.lsm.segmentation import SegmentationEvent
from mindbus.bus.handlers import Publish

LsmEvent = RecordingEvent | SegmentationEvent | EpisodeTouched | EpisodeReactivated


def in_conversation(events: Iterable[LsmEvent]) -> tuple[Publish, ...]:
    """The events with the trace of their conversations."""
    return tuple(Publish(event, conversation_trace(event.chat_id)) for event in events)
