"""What is to be gone is gone, bytes and all; nothing else is, and no key is ever used twice."""

from typing import Any

import pytest

from bus_schema.agent_data import PutAgentData
from bus_schema.conversations import SaveMessage
from bus_schema.data import ClearData, DeleteUser
from bus_schema.dialogue import conversation_trace
from bus_schema.ids import mint
from bus_schema.replies import Code
from bus_schema.storage_maintenance import CollectGarbage
from bus_schema.timeline import SaveEvents, TimelineEvent
from mindbus.errors import Rejected
from mindbus.testing import deliver
from storage_service.blobs import ContentGeneration, content_of
from tests.clocks import NOON
from tests.storage_kit import CRITIC, RESEARCHER, Depot, an_envelope

OPERATOR = "user.local"
DATA_TABLES = (
    "artifact_manifests",
    "artifact_inputs",
    "spent_uploads",
    "trace_members",
    "traces",
    "notices",
    "dialogues",
    "dialogue_messages",
    "dialogue_fragments",
    "timeline",
    "agent_data",
)


async def say(depot: Depot, user: str, text: str = "Привет") -> None:
    message = SaveMessage(message_id=mint("msg"), user_id=user, role="user", content=text, time=NOON)
    await depot.handle(message, "svc.dialogue", conversation_trace(user))


async def note(depot: Depot, key: str) -> None:
    await depot.handle(
        PutAgentData(agent="mood_watcher", namespace="notes", key=key, value={"tone": 1}), "agent.mood_watcher"
    )


async def happen(depot: Depot, user: str) -> None:
    envelope = an_envelope(ClearData(confirm=True), f"user.{user}", conversation_trace(user)).model_copy(
        update={"type": "mb.evt.dialogue.message_received.v1", "data": {"user_id": user}}
    )
    await depot.handle(SaveEvents(events=(TimelineEvent.of(envelope),)), "svc.tracker")


async def live(depot: Depot) -> dict[str, str]:
    """A bit of everything: two users, artifacts of one of them, of an agent, of the dialogue; one upload lies about."""
    for user in ("anna", "boris"):
        await say(depot, user)
        await happen(depot, user)
        await note(depot, user)
    await note(depot, "anna/moods")
    depot.stage(b"never registered")
    return {
        "hers": await depot.put(b"hers", by="user.anna", trace_id="t1"),
        "shared": await depot.put(b"shared", by="user.anna", trace_id="t1"),
        "agents": await depot.put(b"shared", trace_id="t1"),
        "transcript": await depot.put(b"[...]", by="svc.dialogue", trace_id="conv_anna"),
    }


async def settled(depot: Depot) -> None:
    """What comes after every commit."""
    await depot.worker.maintenance.clean()
    await depot.worker.maintenance.clean()


def copies(depot: Depot) -> list[str]:
    return depot._keys_under("manifests")


def all_files(depot: Depot) -> list[str]:
    return [
        key for folder in ("objects", "manifests", "staging", "orphans", "claims") for key in depot._keys_under(folder)
    ]


async def test_after_a_clear_there_is_nothing(depot: Depot) -> None:
    await live(depot)
    await settled(depot)
    depot.files.put("claims/2026/03/14/abc", b"{}")
    assert copies(depot)

    removed = await depot.handle(ClearData(confirm=True), OPERATOR)
    await settled(depot)

    assert {table: await depot.rows(table) for table in DATA_TABLES} == dict.fromkeys(DATA_TABLES, 0)
    assert await depot.rows("removals") == 0
    assert all_files(depot) == []
    assert {kind: count for kind, count in removed.counts.items() if kind != "files"} == {
        "messages": 2,
        "dialogues": 2,
        "events": 2,
        "agent_data": 3,
        "artifacts": 4,
    }


async def test_a_cleared_content_comes_back_under_another_key(depot: Depot) -> None:
    first = await depot.get(await depot.put(b"findings"))
    await depot.handle(ClearData(confirm=True), OPERATOR)

    # The bytes of the first generation are still on their way out.
    again = await depot.get(await depot.put(b"findings"))
    await settled(depot)

    before, after = content_of(first.uri), content_of(again.uri)
    assert before is not None
    assert after is not None
    assert (before.sha256, before.generation + 1) == (after.sha256, after.generation)
    assert depot.content_of(again) == b"findings"
    assert depot.object_files() == [again.uri]


async def test_care_goes_on_after_a_clear(depot: Depot) -> None:
    await live(depot)
    await settled(depot)
    await depot.handle(ClearData(confirm=True), OPERATOR)
    await settled(depot)
    kept = await depot.put(b"new")
    await settled(depot)

    depot.clock.advance(days=3)
    report = await depot.handle(CollectGarbage(), OPERATOR)

    assert (report.unused.count, report.unknown.count, report.refusal) == (0, 0, None)
    assert depot.content_of(await depot.get(kept)) == b"new"


async def test_an_upload_under_way_while_everything_is_cleared_is_taken_anew(depot: Depot) -> None:
    manifest = depot.manifest(b"findings")
    registry = depot.storage.registry
    assert await registry.pin([manifest.sha256]) == {manifest.sha256: ContentGeneration(manifest.sha256, 1)}

    await depot.handle(ClearData(confirm=True), OPERATOR)

    assert await registry.pin([manifest.sha256]) == {manifest.sha256: ContentGeneration(manifest.sha256, 2)}


async def test_of_a_forgotten_user_nothing_is_left_but_the_ids_of_artifacts(depot: Depot) -> None:
    made = await live(depot)
    await settled(depot)
    boris = depot.manifest(b"of boris", by="user.boris", trace_id="t1")
    await depot.register(boris)

    removed = await depot.handle(DeleteUser(user_id="anna"), OPERATOR)
    await settled(depot)

    assert removed.counts == {
        "messages": 1,
        "dialogues": 1,
        "events": 1,
        "agent_data": 2,
        "artifacts": 3,
        "files": removed.counts["files"],
    }
    contents = {await depot.storage.blobs.read(key) for key in depot.places()}
    assert contents == {b"shared", b"of boris"}
    assert not {made["hers"], made["shared"], made["transcript"]} & {key[13:-5] for key in copies(depot)}
    for gone in ("hers", "shared", "transcript"):
        with pytest.raises(Rejected) as refused:
            await depot.get(made[gone], by="user.anna", trace="conv_anna")
        assert refused.value.code is Code.NOT_FOUND
    assert depot.content_of(await depot.get(made["agents"])) == b"shared"
    tables = ("dialogues", "dialogue_messages", "timeline", "agent_data")
    assert {table: await depot.rows(table) for table in tables} == dict.fromkeys(tables, 1)


async def test_the_id_of_a_forgotten_artifact_is_nobodys_again(depot: Depot) -> None:
    made = await live(depot)
    await depot.handle(DeleteUser(user_id="anna"), OPERATOR)

    with pytest.raises(Rejected) as refused:
        await depot.register(depot.manifest(b"hers", by="user.anna", id=made["hers"]))

    assert refused.value.code is Code.CONFLICT


async def test_what_lies_among_the_orphans_is_forgotten_with_its_user(depot: Depot) -> None:
    await depot.put(b"hers", by="user.anna", trace_id="t1", retention="1d")
    await settled(depot)
    depot.clock.advance(days=3)
    await depot.handle(CollectGarbage(), OPERATOR)
    orphans = depot._keys_under("orphans")
    assert len(orphans) == 1

    await depot.handle(DeleteUser(user_id="anna"), OPERATOR)
    await settled(depot)

    assert depot._keys_under("orphans") == []


async def test_a_message_of_a_forgotten_user_that_comes_again_is_not_kept(depot: Depot) -> None:
    message = SaveMessage(message_id=mint("msg"), user_id="anna", role="user", content="тайна", time=NOON)
    await depot.handle(message, "svc.dialogue", "conv_anna", message_id="save-1")

    await depot.handle(DeleteUser(user_id="anna"), OPERATOR)
    again = await deliver(depot.worker, message, by="svc.dialogue", trace="conv_anna", message_id="save-1")

    assert again.outgoing == ()
    assert await depot.rows("dialogue_messages") == 0


@pytest.mark.parametrize("command", [ClearData(confirm=True), DeleteUser(user_id="anna")])
@pytest.mark.parametrize("principal", [RESEARCHER, CRITIC])
async def test_an_agent_may_not_have_anything_removed(depot: Depot, command: Any, principal: str) -> None:
    await live(depot)

    with pytest.raises(Rejected) as refused:
        await depot.handle(command, principal)

    assert refused.value.code is Code.UNAUTHORIZED
    assert await depot.rows("dialogue_messages") == 2
