"""The selected event: facts, causation tree, envelope."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from nicegui.element import Element

from bus_schema.timeline import TimelineEvent
from gateway.ui.components import (
    Drawer,
    SegmentedControl,
    anchor,
    attributes,
    box,
    clickable,
    copy_button,
    copy_link_button,
    icon_button,
    identifier,
    scroller,
    show_if,
    tag,
    text,
)
from gateway.ui.i18n import Localizer, utc
from gateway.ui.rich_text import json_view
from gateway.ui.svg import icon
from gateway.ui.timeline.marks import FAILURE, EventMark, name_of


@dataclass
class CausationNode:
    """An event, or a command known only by its id, with what it caused."""

    name: str
    event: TimelineEvent | None
    at: datetime
    caused: list["CausationNode"] = field(default_factory=list)

    def walk(self, depth: int = 0) -> Iterable[tuple[int, "CausationNode"]]:
        """Depth and node, depth first."""
        yield depth, self
        for child in self.caused:
            yield from child.walk(depth + 1)

    def leads_to(self, name: str) -> bool:
        """True if the event is this node or one below it."""
        return any(node.name == name for _, node in self.walk())


def causation_roots(event: TimelineEvent, around: Iterable[TimelineEvent]) -> list[CausationNode]:
    """Roots of all causation trees with this event's correlation id, the earliest first.

    Commands are not on the timeline: their events are grouped under the command's id.
    """
    correlation = event.envelope.correlationid
    related = {one.event_id: one for one in around if one.envelope.correlationid == correlation} | {
        event.event_id: event
    }
    nodes: dict[str, CausationNode] = {}
    for one in sorted(related.values(), key=lambda one: (one.time, one.sequence or 0)):
        nodes[one.event_id] = CausationNode(one.event_id, one, one.time)
    roots: list[CausationNode] = []
    for node in list(nodes.values()):
        cause = node.event.envelope.causationid if node.event else None
        if cause is None:
            roots.append(node)
        elif cause in nodes and not node.leads_to(cause):
            nodes[cause].caused.append(node)
        else:
            command = CausationNode(cause, None, node.at, [node])
            nodes[cause] = command
            roots.append(command)
    return sorted(roots, key=lambda root: root.at)


def chain_of(roots: Iterable[CausationNode], event_id: str) -> tuple[list[TimelineEvent], list[tuple[str, str]]]:
    """Events of the tree that has this event, and its (cause, effect) pairs."""
    for root in roots:
        if root.leads_to(event_id):
            nodes = [node for _, node in root.walk() if node.event is not None]
            links = [(node.name, child.name) for node in nodes for child in node.caused if child.event]
            return [node.event for node in nodes if node.event is not None], links
    return [], []


_MAX_NODES = 60


class EventDrawer(Drawer):
    def __init__(self, i18n: Localizer, place: Element, choose: Callable[[str | None], Any]) -> None:
        super().__init__(place)
        self.i18n, self._choose = i18n, choose
        self._order: list[str] = []
        self.selected: str | None = None

    def close(self) -> None:
        self.selected = None
        super().close()

    def show(self, mark: EventMark, roots: list[CausationNode]) -> None:
        event = mark.event
        self.selected = event.event_id
        nodes = [pair for root in roots for pair in root.walk()]
        self._order = [node.name for _, node in nodes if node.event is not None]
        with self.open(f"{event.topic}.{name_of(event.envelope)}"):
            self._head(event)
            with scroller("mb-grow"):
                self._facts(mark)
                self._chain(event, nodes)
                self._envelope(event)

    def step(self, by: int) -> Any:
        if self.selected in self._order:
            place = self._order.index(self.selected) + by
            if 0 <= place < len(self._order):
                return self._choose(self._order[place])
        return None

    def _head(self, event: TimelineEvent) -> None:
        i18n = self.i18n
        with box("mb-head mb-drawer-head"):
            box("mb-dot", "i").style(f"color: var(--{event.topic}); width: 9px; height: 9px")
            text(name_of(event.envelope), "mb-mono mb-strong mb-ell mb-grow", "h2")
            icon_button("left", i18n("timeline.previous"), lambda: self.step(-1))
            icon_button("right", i18n("timeline.next"), lambda: self.step(1))
            copy_link_button(i18n)
            icon_button("close", i18n("close"), lambda: self._choose(None))

    def _facts(self, mark: EventMark) -> None:
        i18n, event, envelope = self.i18n, mark.event, mark.event.envelope
        with box("mb-drawer-part"):
            with box("mb-line-x mb-wrap"):
                tag(event.topic, event.topic, dot=True)
                tag(envelope.mbkind.value)
                if mark.shape == FAILURE:
                    tag(i18n("timeline.failed"), "err")
                box("mb-grow")
                attributes(text(i18n.time(event.time, with_ms=True), "mb-mono mb-t2"), title=utc(event.time))
            with box("mb-facts"):
                text(i18n("timeline.from"))
                text(envelope.source.removeprefix("/mb/").replace("/", " · "), "mb-ell")
                if event.user_id:
                    text(i18n("timeline.user"))
                    anchor(f"/chat?with={quote(event.user_id)}", event.user_id)
                if event.trace_id:
                    text(i18n("timeline.trace"))
                    identifier(i18n, event.trace_id, trace_url(event.trace_id))
                text(i18n("timeline.asked_by"))
                text(envelope.requester, "mb-ell")
                if mark.took_s > 0:
                    text(i18n("timeline.took"))
                    text(i18n.seconds(mark.took_s), "mb-num")

    def _chain(self, event: TimelineEvent, nodes: list[tuple[int, CausationNode]]) -> None:
        i18n = self.i18n
        with box("mb-drawer-part"):
            with box("mb-line-x"):
                caused = sum(node.event is not None for _, node in nodes) - 1
                text(i18n.count("timeline.chain", max(caused, 0)), "mb-meta mb-medium mb-grow")
                if event.trace_id:
                    anchor(f"/timeline?trace={quote(event.trace_id)}", i18n("timeline.follow"))
            with attributes(box("mb-tree"), role="tree"):
                for depth, node in nodes[:_MAX_NODES]:
                    self._node(depth, node, nodes[0][1])
                if len(nodes) > _MAX_NODES:
                    text(i18n.count("timeline.more", len(nodes) - _MAX_NODES), "mb-meta")

    def _node(self, depth: int, node: CausationNode, first: CausationNode) -> None:
        i18n = self.i18n
        with clickable("mb-node", role="treeitem", aria_level=depth + 1).style(f"--depth: {depth}") as element:
            if node.event is None:
                icon("runs", "mb-i14 mb-t3")
                service = node.caused[0].event.envelope.service if node.caused[0].event else ""
                text(i18n("timeline.command_to", service=service), "mb-ell mb-grow mb-t2").props["title"] = node.name
                element.props["disabled"] = True
            else:
                envelope = node.event.envelope
                box("mb-dot", "i").style(f"color: var(--{node.event.topic})")
                text(f"{node.event.topic}.{name_of(envelope)}", "mb-mono mb-ell mb-grow")
                chosen = node.event.event_id
                element.on("click", lambda: self._choose(chosen))
            elapsed_s = (node.at - first.at).total_seconds()
            shown = i18n.time(node.at, with_ms=True) if node is first else f"+{i18n.seconds(elapsed_s)}"
            text(shown, "mb-cap mb-t3 mb-num")
        if node.name == self.selected:
            attributes(element, aria_selected="true")

    def _envelope(self, event: TimelineEvent) -> None:
        i18n = self.i18n
        content = event.envelope.model_dump(mode="json", exclude_none=True)
        raw = json.dumps(content, ensure_ascii=False)

        def show(way: str) -> None:
            show_if(pretty, way == "pretty")
            show_if(plain, way == "raw")

        with box("mb-drawer-part mb-no-line"), box("mb-line-x"):
            text(i18n("timeline.envelope"), "mb-medium mb-t2")
            text(i18n.bytes(len(raw.encode())), "mb-meta")
            box("mb-grow")
            SegmentedControl([("pretty", i18n("timeline.pretty")), ("raw", i18n("timeline.raw"))], "pretty", show)
            copy_button(i18n, json.dumps(content, ensure_ascii=False, indent=2))
        pretty = attributes(json_view(content), tabindex="0")
        plain = text(raw, "mb-json mb-hidden", "pre")


def trace_url(trace_id: str) -> str:
    """URL of a run, or of the timeline of a trace."""
    return f"/runs/{quote(trace_id)}" if trace_id.startswith("run_") else f"/timeline?trace={quote(trace_id)}"
