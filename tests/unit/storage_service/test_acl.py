"""Who sees what, by lists that only services write; the whole matrix is in test_acl_matrix."""

import pytest
from structlog.testing import capture_logs

from bus_schema.replies import Code
from bus_schema.storage import SetTraceMembers
from mindbus.errors import Rejected
from tests.storage_kit import CRITIC, ORCHESTRATOR, RESEARCHER, TRACE, Depot


async def gets(depot: Depot, artifact_id: str, principal: str, trace: str | None) -> bool:
    try:
        return bool(await depot.get(artifact_id, principal, trace))
    except Rejected as refused:
        if refused.code is not Code.NOT_FOUND:
            raise
        return False


async def test_a_refusal_is_written_down_with_who_asked_for_what(depot: Depot) -> None:
    hidden = await depot.put(visibility="private")

    with capture_logs() as logs:
        for artifact_id in (hidden, "art_absent"):
            with pytest.raises(Rejected):
                await depot.get(artifact_id, CRITIC, trace="run_2")

    assert [(line["service"], line["about"]["artifact_id"], line["is_denied"]) for line in logs] == [
        ("storage", hidden, True),
        ("storage", "art_absent", False),
    ]
    assert {(line["requester"], line["trace_id"], line["error"]) for line in logs} == {
        (CRITIC, "run_2", "NoSuchArtifact")
    }


async def test_an_artifact_made_within_a_listed_trace_is_seen_from_outside_it_by_members_alone(depot: Depot) -> None:
    brief = await depot.put(by="user.anna.petrova")
    await depot.set_members("agent.researcher", "user.anna.petrova")

    assert await gets(depot, brief, RESEARCHER, None)
    assert not await gets(depot, brief, CRITIC, TRACE)


@pytest.mark.parametrize("principal", [RESEARCHER, "user.local", "agent.orchestrator", "agent.svc.storage"])
async def test_only_a_service_writes_a_member_list(depot: Depot, principal: str) -> None:
    artifact_id = await depot.put()

    with pytest.raises(Rejected) as refused:
        await depot.handle(SetTraceMembers(trace_id=TRACE, members=("agent.critic",)), principal)

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
