"""What months of use leave behind, for screens to show: events, dialogues, tasks, runs, shared and long-term memory."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeVar

import numpy as np
from sqlalchemy import Connection, insert

from benchmarks.memory_units import batches
from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import Card, CardStep
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.envelope import Envelope, Kind
from bus_schema.identities import Principal
from bus_schema.processing import Mood, MoodAssessed, Task
from bus_schema.runs import Run, RunStatus, Step, StepStatus
from bus_schema.task_records import SaveTasks, TaskWrite
from bus_schema.timeline import TimelineEvent
from config.settings import FleetSettings
from memory.glm import tables as glm_tables
from memory.glm.service import database_of, open_memory
from memory.lsm.recorder import Utterance
from memory.lsm.service import LongTermMemory
from memory.lsm.tables import MIGRATIONS as LSM_MIGRATIONS
from memory.lsm.tables import TurnVectorRow
from mindbus.bus.connection import connect
from mindbus.bus.worker import utc_now
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from retrieval.embedding.e5 import MODEL
from storage_service import runs
from storage_service.dialogues import Dialogues
from storage_service.tables import MIGRATIONS
from storage_service.tasks import Tasks
from storage_service.timeline import Timeline

T = TypeVar("T")

USER = "user_0"
_USERS = 50
_AT_ONCE = 500
_STEPS = 6
_DIM = 384
_SHA256 = "0" * 64
# A run whose steps have artifacts, which `put_artifacts` puts into the store of the running fleet.
SHOWN_RUN, SHOWN_ARTIFACT = "run_0", "art_shown_5"
_REPORT = b"# Report\n\n" + b"".join(b"The hall is **booked** for %d May.\n\n" % day for day in range(1, 31))
# Of the last minutes: all of them are in the range that the timeline shows at first.
_SPAN = timedelta(minutes=10)
_TEXT = "Марат пришлёт новую смету до пятницы; the second contractor wants an answer by Monday, and the hall is booked."


@dataclass(frozen=True)
class Extent:
    """Numbers of rows of each kind."""

    events: int
    messages: int
    tasks: int
    runs: int
    units: int


FULL = Extent(events=100_000, messages=5_000, tasks=5_000, runs=2_000, units=5_000)
QUICK = Extent(events=2_000, messages=200, tasks=100, runs=50, units=500)


async def fill(settings: FleetSettings, extent: Extent) -> None:
    """Write into the databases of a fleet that is not running, through the services' own code."""
    await _fill_storage(settings, extent)
    await _fill_runs(settings, extent.runs)
    await _fill_units(settings, extent.units)
    await _fill_turns(settings, extent.messages)


async def put_artifacts(settings: FleetSettings) -> None:
    """Register the artifacts of the run to show with a fleet that is running."""
    async with connect("user.local", settings=settings) as bus, open_artifacts(bus, settings) as artifacts:
        for ref in _shown_refs():
            put = await artifacts.put(
                _REPORT,
                artifact_type="notes",
                trace=SHOWN_RUN,
                content_type=ref.content_type,
                artifact_id=ref.artifact_id,
            )
            if put.is_pending or put.ref != ref:
                raise RuntimeError(f"{ref.artifact_id} was not registered as the run has it: {put}")


async def _fill_storage(settings: FleetSettings, extent: Extent) -> None:
    database = Database(settings.database_of("storage"), "storage")
    await upgrade(database, MIGRATIONS)
    timeline, dialogues, tasks = Timeline(database), Dialogues(database), Tasks(database, utc_now)
    for events in _batched(_events(extent.events)):
        async with database.at_hand():
            await timeline.save(events)
    for user, messages in _dialogues(extent.messages):
        for batch in _batched(messages):
            async with database.at_hand():
                for message in batch:
                    await dialogues.save_message(message)
            # Fragments that agents have read, so that none of them begins to.
            async with database.at_hand():
                await dialogues.save_fragment(_fragment(user, batch))
    for writes in _batched(map(_task, range(extent.tasks)), 100):
        async with database.at_hand():
            await tasks.save(SaveTasks(writes=writes))
    await database.dispose()


def _batched(items: Iterable[T], size: int = _AT_ONCE) -> Iterator[tuple[T, ...]]:
    remaining = iter(items)
    while batch := tuple(islice(remaining, size)):
        yield batch


def _events(count: int) -> Iterator[TimelineEvent]:
    """Turns of talk, each with what agents and runs make of it; one step in fifty fails."""
    begin, apart = datetime.now(UTC) - _SPAN, _SPAN / count
    stories = (event for number in range(count) for event in _story(number))
    for number, (service, wire, data) in enumerate(islice(stories, count)):
        user = data.get("user_id") or data.get("chat_id") or f"user_{number % _USERS}"
        envelope = Envelope(
            id=f"evt_{number}",
            source=f"/mb/{service}/1",
            type=f"mb.evt.{wire}.v1",
            time=begin + number * apart,
            correlationid=f"cor_{number // 16}",
            causationid=f"evt_{number - 1}" if number % 16 else None,
            mbkind=Kind.EVENT,
            mbrequester=f"svc.{service}",
            mbtraceid=f"conv_{user}",
            data=data,
        )
        yield TimelineEvent.of(envelope)


def _story(number: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    user, asked, answered = f"user_{number % _USERS}", f"msg_{number}_q", f"msg_{number}_a"
    run = {"run_id": f"run_{number}", "step_id": "draft", "role": "researcher", "attempt": 1}
    mood = Mood(tone=-0.2, usual=0, assessed_at=utc_now(), message_ids=(asked,))
    assessed = MoodAssessed(agent="mood_watcher", user_id=user, fragment_id=f"frag_{number}", items=(mood,))
    agent = {"agent": "task_manager", "user_id": user}
    yield "dialogue", "dialogue.message_received", {"user_id": user, "message_id": asked, "preview": _TEXT}
    yield "task_manager", "fleet.agent_activity_started", agent
    yield "task_manager", "fleet.agent_result", agent | {"took_ms": 12, "outcome": "found"}
    yield "dialogue", "dialogue.message_sent", {"user_id": user, "in_reply_to": asked, "message_id": answered}
    yield "mood_watcher", "processed.mood_assessed", assessed.model_dump(mode="json")
    yield "lsm", "episode.episode_updated", {"chat_id": user, "episode_id": f"ep_{number}", "note": _TEXT}
    yield "glm", "kem.stored", {"kem_id": f"kem_{number}", "note": _TEXT}
    yield "context", "notification.generated", {"user_id": user, "message": _TEXT}
    yield "orchestrator", "process.step_started", run
    if number % 50 == 0:
        yield "orchestrator", "process.step_failed", run | {"reason": "The model did not answer.", "retryable": True}
    yield "storage", "artifact.registered", {"artifact": {"artifact_id": f"art_{number}", "size_bytes": 4096}}
    yield "orchestrator", "process.step_completed", run


def _dialogues(count: int) -> Iterator[tuple[str, list[DialogueMessage]]]:
    """Of the last day, so that nothing has to be packed; a tenth of the messages is of the first user."""
    shares = [count // 10, *[count * 9 // 10 // (_USERS - 1)] * (_USERS - 1)]
    for number, share in enumerate(shares):
        begin, user = datetime.now(UTC) - timedelta(hours=2 + number % 20), f"user_{number}"
        yield user, [_message(user, place, begin + place * timedelta(seconds=8)) for place in range(share)]


def _message(user: str, place: int, at: datetime) -> DialogueMessage:
    role: Literal["user", "assistant"] = "assistant" if place % 2 else "user"
    content = f"{place}: {_TEXT}"
    return DialogueMessage(message_id=f"msg_{user}_{place}", user_id=user, role=role, content=content, time=at)


def _fragment(user: str, messages: tuple[DialogueMessage, ...]) -> DialogueFragment:
    first, last = messages[0], messages[-1]
    return DialogueFragment(
        fragment_id=f"frag_{first.message_id}",
        user_id=user,
        message_ids=tuple(message.message_id for message in messages),
        messages=messages,
        started_at=first.time,
        ended_at=last.time,
        reason="timeout",
    )


def _task(number: int) -> TaskWrite:
    now = datetime.now(UTC)
    user = f"user_{number % _USERS}"
    due = now + timedelta(hours=number % 500 - 50)
    text, times = f"{number}: {_TEXT}", {"due": due, "found_at": now, "changed_at": now}
    return TaskWrite(task=Task(task_id=f"task_{number}", text=text, owner_id=user, asked_by=user, **times), at=now)


async def _fill_runs(settings: FleetSettings, count: int) -> None:
    database = Database(settings.database_of("orchestrator"), "orchestrator")
    await upgrade(database, runs.MIGRATIONS)
    names = [f"step_{number}" for number in range(_STEPS)]
    steps = tuple(CardStep(id=name, role="researcher", instructions="Research it.", produces="notes") for name in names)
    card = Card(name="article", steps=steps, result=names[-1])

    def add(connection: Connection) -> None:
        for number in range(count):
            runs.add_run(connection, _run(number, names), card, _SHA256)

    await database.write(add)
    await database.dispose()


def _run(number: int, names: list[str]) -> Run:
    began = datetime.now(UTC) - timedelta(minutes=number + 5)
    ended = began + timedelta(minutes=4)
    brief = ArtifactRef(
        artifact_id=f"art_{number}", version=1, sha256=_SHA256, content_type="text/markdown", size_bytes=1
    )
    of_step = {"status": StepStatus.COMPLETED, "attempt": 1, "started_at": began, "finished_at": ended}
    run_id = f"run_{number}"
    made: Sequence[ArtifactRef | None] = _shown_refs() if run_id == SHOWN_RUN else [None] * len(names)
    return Run(
        run_id=run_id,
        card_name="article",
        status=RunStatus.COMPLETED,
        started_by="user.local",
        started_at=began,
        finished_at=ended,
        inputs=(brief,),
        steps=tuple(
            Step(step_id=name, role="researcher", artifact=ref, **of_step)
            for name, ref in zip(names, made, strict=True)
        ),
        result=made[-1],
    )


def _shown_refs() -> list[ArtifactRef]:
    of_all = {"version": 1, "sha256": hashlib.sha256(_REPORT).hexdigest(), "size_bytes": len(_REPORT)}
    ids = (f"art_shown_{step}" for step in range(_STEPS))
    return [ArtifactRef(artifact_id=each, content_type="text/markdown", **of_all) for each in ids]


async def _fill_units(settings: FleetSettings, count: int) -> None:
    database = database_of(settings)
    await upgrade(database, glm_tables.MIGRATIONS)
    memory = await open_memory(database, settings, utc_now)
    for owner, drafts in batches(count):
        async with memory.database.at_hand():
            await memory.store.store_all(drafts, Principal(owner))
        await memory.relay.relay()
    await memory.close()
    await database.dispose()


async def _fill_turns(settings: FleetSettings, count: int) -> None:
    database = Database(settings.database_of("lsm"), "lsm")
    await upgrade(database, LSM_MIGRATIONS)
    memory = LongTermMemory(database, settings, utc_now)
    chance = np.random.default_rng(1)
    for chat, messages in _dialogues(count):
        async with database.at_hand() as transaction:
            # Told as of storage, which is asked for what is missing.
            ids = (await memory.recorder.record(chat, list(map(Utterance.from_storage, messages)))).raw_log_ids
            vectors = chance.standard_normal((len(messages), _DIM), dtype=np.float32)
            rows = [
                {"raw_log_id": key, "model": MODEL, "data": vector.tobytes()}
                for key, vector in zip(ids, vectors, strict=True)
            ]
            await transaction.run(partial(_add_vectors, rows=rows))
    await database.dispose()


def _add_vectors(connection: Connection, rows: list[dict[str, object]]) -> None:
    connection.execute(insert(TurnVectorRow), rows)
