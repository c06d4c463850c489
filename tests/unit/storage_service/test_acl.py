"""Who sees what: the whole matrix, through every door."""

from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from bus_schema.replies import Code
from bus_schema.storage import GetLineage, GetVersions, SearchArtifacts, SetTraceMembers
from mindbus.bus.failures import Refused
from tests.storage_kit import CRITIC, ORCHESTRATOR, RESEARCHER, TRACE, Depot

OWNER = "agent.researcher.1"
TWIN = "agent.researcher.2"
STRANGER = "agent.critic.1"
NAMESAKE = "user.researcher"
SERVICE = "svc.orchestrator"

# visibility, is the stranger listed, the asker, its trace -> may it read?
MATRIX = [
    (visibility, listed, asker, trace, visibility == "public" or asker in (OWNER, TWIN))
    for visibility in ("private", "public")
    for listed in ("no list", "listed", "not listed")
    for asker in (OWNER, TWIN, STRANGER, NAMESAKE, SERVICE)
    for trace in (None, TRACE, "run_2")
] + [
    ("trace", listed, asker, trace, may)
    for asker, by_trace in {
        OWNER: {"no list": "any", "listed": "any", "not listed": "any"},
        TWIN: {"no list": "any", "listed": "any", "not listed": "any"},
        STRANGER: {"no list": "within", "listed": "any", "not listed": "none"},
        NAMESAKE: {"no list": "within", "listed": "none", "not listed": "none"},
        SERVICE: {"no list": "within", "listed": "none", "not listed": "none"},
    }.items()
    for listed, how in by_trace.items()
    for trace in (None, TRACE, "run_2")
    for may in [how == "any" or (how == "within" and trace == TRACE)]
]

Sees = Callable[[Depot, str, str, str | None], Awaitable[bool]]


async def is_found(answer: Awaitable[object]) -> bool:
    try:
        return bool(await answer)
    except Refused as refused:
        if refused.code is not Code.NOT_FOUND:
            raise
        return False


async def gets(depot: Depot, artifact_id: str, asker: str, trace: str | None) -> bool:
    return await is_found(depot.get(artifact_id, asker, trace))


async def finds(depot: Depot, artifact_id: str, asker: str, trace: str | None) -> bool:
    page = await depot.handle(SearchArtifacts(), asker, trace)
    return artifact_id in {each.id for each in page.items}


async def sees_versions(depot: Depot, artifact_id: str, asker: str, trace: str | None) -> bool:
    return await is_found(depot.handle(GetVersions(artifact_id=artifact_id), asker, trace))


async def sees_lineage(depot: Depot, artifact_id: str, asker: str, trace: str | None) -> bool:
    return await is_found(depot.handle(GetLineage(artifact_id=artifact_id), asker, trace))


async def uses_as_input(depot: Depot, artifact_id: str, asker: str, trace: str | None) -> bool:
    manifest = depot.manifest(by=asker, context={"input_artifacts": [artifact_id]}, trace_id="run_of_its_own")
    return await is_found(depot.register(manifest, trace=trace))


@pytest.mark.parametrize("sees", [gets, finds, sees_versions, sees_lineage, uses_as_input])
async def test_every_door_is_guarded_by_the_same_rule(depot: Depot, sees: Sees) -> None:
    wrong = []
    artifacts = {}
    for visibility in ("private", "trace", "public"):
        for listed in ("no list", "listed", "not listed"):
            own = f"run_{visibility}_{listed.replace(' ', '_')}"
            artifacts[visibility, listed] = await depot.put(visibility=visibility, trace_id=own)
            if listed != "no list":
                member = "agent.critic" if listed == "listed" else "agent.editor"
                await depot.set_members("agent.researcher", member, trace=own)

    for visibility, listed, asker, trace, may in MATRIX:
        own = f"run_{visibility}_{listed.replace(' ', '_')}"
        asked_within = own if trace == TRACE else trace
        if await sees(depot, artifacts[visibility, listed], asker, asked_within) is not may:
            wrong.append((visibility, listed, asker, trace, may))

    assert len(MATRIX) == 3 * 3 * 5 * 3
    assert wrong == []


async def test_what_is_denied_looks_exactly_like_what_is_absent(depot: Depot) -> None:
    hidden = await depot.put(visibility="private")

    answers = []
    for artifact_id in (hidden, "art_absent"):
        with pytest.raises(Refused) as refused:
            await depot.get(artifact_id, CRITIC)
        answers.append((refused.value.code, str(refused.value), set(refused.value.details)))

    assert answers[0] == answers[1]


async def test_a_refusal_is_written_down_with_who_asked_for_what(depot: Depot) -> None:
    hidden = await depot.put(visibility="private")

    with capture_logs() as logs:
        for artifact_id in (hidden, "art_absent"):
            with pytest.raises(Refused):
                await depot.get(artifact_id, CRITIC, trace="run_2")

    assert [(line["event"], line["artifact_id"], line["is_denied"]) for line in logs] == [
        ("storage refused", hidden, True),
        ("storage refused", "art_absent", False),
    ]
    assert {(line["requester"], line["trace_id"], line["refusal"]) for line in logs} == {
        (CRITIC, "run_2", "NoSuchArtifact")
    }


async def test_an_artifact_made_within_a_listed_trace_is_seen_from_outside_it_by_members_alone(depot: Depot) -> None:
    brief = await depot.put(by="user.anna.petrova")
    await depot.set_members("agent.researcher", "user.anna.petrova")

    assert await gets(depot, brief, RESEARCHER, None)
    assert not await gets(depot, brief, CRITIC, TRACE)


@pytest.mark.parametrize("asker", [RESEARCHER, "user.local", "agent.orchestrator", "agent.svc.storage"])
async def test_only_a_service_writes_a_member_list(depot: Depot, asker: str) -> None:
    artifact_id = await depot.put()

    with pytest.raises(Refused) as refused:
        await depot.handle(SetTraceMembers(trace_id=TRACE, members=("agent.critic",)), asker)

    assert refused.value.code is Code.UNAUTHORIZED
    assert not await gets(depot, artifact_id, CRITIC, None)


async def test_a_member_list_grows_and_nobody_leaves_it(depot: Depot) -> None:
    artifact_id = await depot.put()

    await depot.set_members("agent.critic")
    await depot.set_members("agent.editor.7", "agent.editor.8", "agent.critic")

    assert await gets(depot, artifact_id, CRITIC, None)
    assert await gets(depot, artifact_id, "agent.editor.9", None)
    assert await depot.rows("trace_members") == 2


async def test_a_member_list_takes_effect_with_its_message_or_not_at_all(depot: Depot) -> None:
    command = SetTraceMembers(trace_id=TRACE, members=("agent.critic",))

    await depot.handle(command, ORCHESTRATOR, message_id="msg_1")
    await depot.handle(command, ORCHESTRATOR, message_id="msg_1")

    assert await depot.rows("inbox") == 1
