"""Ages of the oldest messages in queues, from counts alone: RabbitMQ tells no age of quorum queues."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from mindbus.management import QueueState

_MOST_SAMPLES = 512


@dataclass(frozen=True, slots=True)
class _Sample:
    at: datetime
    ready: int
    delivered: int


class QueueAges:
    """For how long at least the first message of each queue has waited.

    A queue is first in, first out: where fewer messages have left it since a moment than it held then, the one that is
    first now was there at that moment.
    """

    def __init__(self) -> None:
        self._samples: dict[str, list[_Sample]] = {}

    def observe(self, queues: Iterable[QueueState], now: datetime) -> dict[str, float]:
        """Take the counts of this moment; seconds by the name of the queue, 0 for one that is empty or has moved on."""
        self._samples = {queue.name: self._known(queue, now) for queue in queues}
        return {name: (now - samples[0].at).total_seconds() for name, samples in self._samples.items()}

    def _known(self, queue: QueueState, now: datetime) -> list[_Sample]:
        """The samples at which today's first message was there, and this one."""
        before = self._samples.get(queue.name, [])
        if before and queue.delivered < before[-1].delivered:
            # The node counts anew.
            before = []
        kept = [each for each in before if queue.delivered - each.delivered < each.ready] if queue.ready else []
        if len(kept) > _MOST_SAMPLES:
            kept = [kept[0], *kept[1::2]]
        return [*kept, _Sample(now, queue.ready, queue.delivered)]
