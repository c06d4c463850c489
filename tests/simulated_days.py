"""What must be true of a simulation that has come to its end, whatever died on the way."""

from collections import Counter
from dataclasses import dataclass

from agents.sim.generator import MessageGenerator
from agents.sim.scenarios import SimLibrary
from bus_schema.dialogue import DialogueFragment, DialogueMessage, MessageKind
from bus_schema.ids import derived
from bus_schema.sim import SimCounts, SimStopped, StartSim
from bus_schema.timeline import TimelineEvent
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime

AGENTS = ("context_manager", "mood_watcher", "task_manager")


@dataclass(frozen=True)
class Day:
    """What is left of a simulation: what was kept, what was heard."""

    counts: SimCounts
    said: dict[str, list[DialogueMessage]]
    events: list[TimelineEvent]

    def named(self, name: str) -> list[TimelineEvent]:
        return [event for event in self.events if event.name == name]

    def events_of(self, topic: str) -> list[TimelineEvent]:
        return [event for event in self.events if event.topic == topic]

    @property
    def fragments(self) -> list[DialogueFragment]:
        published = self.named("dialogue_fragment_published")
        return [DialogueFragment.model_validate(event.envelope.data) for event in published]


async def whole_day(runtime: Runtime, order: StartSim, within_s: float) -> Day:
    """Play it, wait until nobody has anything more to say about it."""
    started = await runtime.bus.request(order)
    stopped: list[SimStopped] = []

    async def is_over() -> bool:
        found = await runtime.timeline(topics=("sim",))
        stopped[:] = [SimStopped.model_validate(e.envelope.data) for e in found if e.name == "sim_stop"]
        return bool(stopped)

    await until(is_over, within_s, "the simulation ends")
    await until(lambda: _is_settled(runtime), within_s, "every fragment is seen to, every notification decided")
    assert stopped[0].counts.sim_id == started.sim_id
    team = SimLibrary().team(order.profiles)
    said = {person.user_id: await runtime.history(person.user_id) for person in team.people}
    return Day(stopped[0].counts, said, await runtime.timeline())


async def _is_settled(runtime: Runtime) -> bool:
    """Every agent is done with every fragment; every notification has been told, put off or left."""
    events = await runtime.timeline(topics=("raw", "fleet", "notification"))
    fragments = {event.envelope.data["fragment_id"] for event in events if event.topic == "raw" and event.envelope.data}
    done: Counter[str] = Counter()
    decided: set[str] = set()
    generated: set[str] = set()
    for event in events:
        data = event.envelope.data or {}
        if event.name == "agent_result" and data["outcome"] != "failed":
            done[data["about"]] += 1
        elif event.name == "notification_generated":
            generated.add(data["notification_id"])
        elif event.topic == "notification":
            decided |= {data["notification_id"], *data.get("merged", ())}
    return all(done[fragment] >= len(AGENTS) for fragment in fragments) and generated <= decided


def require_whole(day: Day, order: StartSim) -> None:
    """Everything that was to be said is kept once, in order, in one fragment; every agent has heard it once."""
    assert order.limit is not None
    assert (day.counts.sent, day.counts.answered, day.counts.failed) == (order.limit, order.limit, 0)
    _require_said_as_written(day, order)
    _require_answered(day)
    _require_fragmented_once(day)
    _require_processed_once(day)
    _require_ordered_timeline(day)


def _require_said_as_written(day: Day, order: StartSim) -> None:
    team = SimLibrary().team(order.profiles)
    script = MessageGenerator(team, SimLibrary().scenario(order.scenario or team.scenario), order.seed).messages()
    written: dict[str, list[tuple[str, str | None]]] = {user_id: [] for user_id in day.said}
    for _ in range(order.limit or 0):
        message = next(script)
        message_id = f"msg_{derived(day.counts.sim_id, message.number)}"
        written[message.user_id].append((message_id, message.text))
    kept = {
        user_id: [(m.message_id, m.content) for m in said if m.role == "user" and m.kind is not MessageKind.HIDDEN]
        for user_id, said in day.said.items()
    }
    assert kept == written


def _require_answered(day: Day) -> None:
    """Whatever a user, or an instruction, says is followed by its answer."""
    for said in day.said.values():
        for asked, answer in zip(said[::2], said[1::2], strict=True):
            assert (asked.role, answer.role) == ("user", "assistant")
            assert answer.message_id == f"msg_{derived(asked.message_id, 'answer')}"
            assert (asked.kind is MessageKind.HIDDEN) == (answer.kind is MessageKind.NOTIFICATION)


def _require_fragmented_once(day: Day) -> None:
    fragments = sorted(day.fragments, key=lambda fragment: fragment.started_at)
    for user_id, said in day.said.items():
        theirs = [fragment for fragment in fragments if fragment.user_id == user_id]
        in_fragments = [message_id for fragment in theirs for message_id in fragment.message_ids]
        kept = [message.message_id for message in said]
        # What the assistant has told since lies in the buffer still.
        assert in_fragments == kept[: len(in_fragments)]
        left = said[len(in_fragments) :]
        assert all(message.kind in (MessageKind.HIDDEN, MessageKind.NOTIFICATION) for message in left)


def _require_processed_once(day: Day) -> None:
    results = [event.envelope.data for event in day.named("agent_result") if event.envelope.data]
    done = Counter((data["agent"], data["about"]) for data in results if data["outcome"] != "failed")
    assert done == {(agent, fragment.fragment_id): 1 for agent in AGENTS for fragment in day.fragments}
    found = Counter((event.name, (event.envelope.data or {})["fragment_id"]) for event in day.events_of("processed"))
    assert set(found.values()) == {1}
    sent = Counter(
        event.envelope.data["notification_id"] for event in day.named("notification_sent") if event.envelope.data
    )
    assert set(sent.values()) <= {1}


def _require_ordered_timeline(day: Day) -> None:
    sequence = [event.sequence or 0 for event in day.events]
    assert sequence == sorted(set(sequence))
    received = Counter((event.envelope.data or {})["message_id"] for event in day.named("message_received"))
    said = [m for said in day.said.values() for m in said if m.role == "user" and m.kind is not MessageKind.HIDDEN]
    assert received == {message.message_id: 1 for message in said}
    stored = Counter((event.envelope.data or {})["message_id"] for event in day.named("dialogue.message_stored"))
    assert stored == {message.message_id: 1 for said in day.said.values() for message in said}
