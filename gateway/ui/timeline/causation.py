"""What led to what: the story that an event belongs to, as a tree."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from bus_schema.timeline import TimelineEvent


@dataclass
class Cause:
    """An event, or a command of which only the id is known, with what it caused."""

    name: str
    event: TimelineEvent | None
    at: datetime
    caused: list["Cause"] = field(default_factory=list)

    def walk(self, depth: int = 0) -> Iterable[tuple[int, "Cause"]]:
        """It, then all that came of it, with how deep each lies."""
        yield depth, self
        for each in self.caused:
            yield from each.walk(depth + 1)

    def leads_to(self, name: str) -> bool:
        """Whether it is that one, or that one came of it."""
        return any(node.name == name for _, node in self.walk())


def story_of(event: TimelineEvent, around: Iterable[TimelineEvent]) -> list[Cause]:
    """The beginnings of everything that shares its correlation, the earliest first.

    Commands are not on the timeline: what one of them caused hangs together under its id.
    """
    correlation = event.envelope.correlationid
    told = {one.event_id: one for one in around if one.envelope.correlationid == correlation} | {event.event_id: event}
    nodes: dict[str, Cause] = {}
    for one in sorted(told.values(), key=lambda one: (one.time, one.sequence or 0)):
        nodes[one.event_id] = Cause(one.event_id, one, one.time)
    roots: list[Cause] = []
    for node in list(nodes.values()):
        cause = node.event.envelope.causationid if node.event else None
        if cause is None:
            roots.append(node)
        elif cause in nodes and not _leads_to(node, nodes[cause]):
            nodes[cause].caused.append(node)
        else:
            command = Cause(cause, None, node.at, [node])
            nodes[cause] = command
            roots.append(command)
    return sorted(roots, key=lambda root: root.at)


def chain_of(roots: Iterable[Cause], event_id: str) -> tuple[list[TimelineEvent], list[tuple[str, str]]]:
    """The events of the part of the story in which this one stands, with who caused whom among them."""
    for root in roots:
        if root.leads_to(event_id):
            walked = [node for _, node in root.walk()]
            events = [node.event for node in walked if node.event is not None]
            links = [
                (node.name, each.name)
                for node in walked
                if node.event is not None
                for each in node.caused
                if each.event
            ]
            return events, links
    return [], []


def _leads_to(node: Cause, other: Cause) -> bool:
    return any(found is other for _, found in node.walk())
