"""Hears everything, so that the timeline has it."""

from bus_schema.codes import Code
from bus_schema.envelope import Envelope
from bus_schema.fleet import STATES
from bus_schema.timeline import SaveEvents, TimelineEvent
from mindbus.bus.handlers import on_topic
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import PermanentFailure, ReplyError, TemporaryFailure
from mindbus.tasks import Batches

# Many wait at once, so that they can be saved together.
_AT_ONCE = 200
# What is larger travels as a file beside the message.
_BATCH_BYTES = 48 * 1024
# The timeline may be that late: what happens at once is saved at once.
_GATHERS_S = 0.1


class StorageStumbles(PermanentFailure):
    """Storage has failed over events that it was to save."""


class TrackerWorker(Worker):
    """Records events of every topic, known or not; it has a queue of its own, so it slows nobody."""

    name = "tracker"
    start_stage = 4
    concurrency = _AT_ONCE
    # However long storage is away: the last rung's delay again and again.
    attempts = 900

    def __init__(self, context: WorkerContext) -> None:
        self.bus = context.bus
        self.batches = Batches(self._save, max_items=_AT_ONCE, max_weight=_BATCH_BYTES, gathers_s=_GATHERS_S)

    async def start(self) -> None:
        self.batches.start()

    async def stop(self) -> None:
        """Stop saving; what is not saved is redelivered."""
        await self.batches.stop()

    @on_topic("#")
    async def record(self, envelope: Envelope) -> None:
        if envelope.type in STATES:
            return
        event = TimelineEvent.of(envelope)
        try:
            await self.batches.add(event, len(envelope.model_dump_json()))
        except StorageStumbles:
            # Over one of the batch: the others are saved without it.
            await self._save([event])

    async def _save(self, events: list[TimelineEvent]) -> None:
        try:
            await self.bus.request(SaveEvents(events=tuple(events)))
        except ReplyError as error:
            if error.code is Code.INTERNAL:
                raise StorageStumbles(str(error)) from error
            if not error.retryable:
                raise
            raise TemporaryFailure(f"storage: {error}") from error
