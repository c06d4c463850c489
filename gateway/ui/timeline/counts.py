"""Numbers of events by slot of time, service and topic."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bus_schema.timeline import TimelineEvent, TimelineSeries
from gateway.ui.timeline.marks import FOLDED, topic_number

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


class TimelineCounts:
    """Numbers of events by slot, service and topic; slots are of equal width and numbered from 1970 on."""

    def __init__(self, since: datetime, until: datetime, slots: int) -> None:
        # In whole milliseconds: a slot begins at the same time here, in storage and in the browser.
        self.width = _MS * max(math.ceil((until - since) / _MS / slots), 1)
        self._first, self._last = self._slot(since), self._slot(until)
        self._numbers: Counter[tuple[int, str, str]] = Counter()
        self.failures = 0

    @property
    def slots(self) -> int:
        """Number of slots, the partial ones at both ends among them."""
        return self._last - self._first + 1

    @property
    def since(self) -> datetime:
        """Beginning of the first slot."""
        return self._start(self._first)

    @property
    def until(self) -> datetime:
        """End of the last slot."""
        return self._start(self._last + 1)

    def read(self, series: Sequence[TimelineSeries]) -> None:
        """Add numbers of storage, by bucket, of the time from `since` until `until`."""
        for one in series:
            self.failures += sum(one.failures)
            for place, number in enumerate(one.events):
                if number:
                    self._numbers[self._first + place, one.service, one.topic] += number

    def add(self, event: TimelineEvent) -> None:
        self._numbers[self._slot(event.time), event.envelope.service, event.topic] += 1

    def forget(self, before: datetime) -> None:
        """Drop the slots that end before."""
        first = self._slot(before)
        self._numbers = Counter({key: number for key, number in self._numbers.items() if key[0] >= first})

    def by_service(self) -> Counter[str]:
        services: Counter[str] = Counter()
        for (_, service, _), number in self._numbers.items():
            services[service] += number
        return services

    def by_topic(self) -> Counter[str]:
        topics: Counter[str] = Counter()
        for (_, _, topic), number in self._numbers.items():
            topics[topic] += number
        return topics

    def by_slot(self, hidden: Collection[str]) -> list[tuple[datetime, int]]:
        """Beginning and number of shown events of every slot from the first with events to the last."""
        numbers: Counter[int] = Counter()
        for (slot, _, topic), number in self._numbers.items():
            if topic not in hidden:
                numbers[slot] += number
        slots = range(min(numbers), max(numbers) + 1) if numbers else range(0)
        return [(self._start(slot), numbers[slot]) for slot in slots]

    def between(self, since: datetime, until: datetime, hidden: Collection[str]) -> int:
        """Number of shown events in the slots that overlap this time."""
        first, last = self._slot(since), self._slot(until)
        return sum(
            number
            for (slot, _, topic), number in self._numbers.items()
            if first <= slot <= last and topic not in hidden
        )

    def drawn(self, lanes: Mapping[str, int]) -> dict[str, Any]:
        """The counts as the chart's script takes them: rows of slot after the first, lane, topic, number."""
        rows = [
            (slot - self._first, lanes.get(service, FOLDED), topic_number(topic), number)
            for (slot, service, topic), number in self._numbers.items()
        ]
        return {"start": (self.since - EPOCH) / _MS, "width": self.width / _MS, "slots": self.slots, "rows": rows}

    def _slot(self, time: datetime) -> int:
        return (time - EPOCH) // self.width

    def _start(self, slot: int) -> datetime:
        return EPOCH + slot * self.width
