"""Calls of models: kept for whom they were made for, by those who may call models for them."""

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.data import DeleteUser
from bus_schema.ids import mint
from bus_schema.model_calls import CallUsage, ModelCall, RecordModelCall, SaidToModel
from bus_schema.replies import Code
from bus_schema.storage import SearchArtifacts
from mindbus.errors import Rejected
from tests.clocks import NOON
from tests.storage_kit import CRITIC, ON_FILES, Depot

RUN, SECRET = "run_tea", "Anna's prompt"
USED = CallUsage(model_name="small", prompt_tokens=100, completion_tokens=20, took_ms=900)
CALL = ModelCall(
    **dict(USED), called_at=NOON, caller="svc.somebody", prompt=(SaidToModel(role="user", content=SECRET),)
)


def record(user_id: str | None = "anna") -> RecordModelCall:
    return RecordModelCall(call_id=mint("art"), user_id=user_id, cost=USED, call=CALL, kept_days=7)


async def kept(depot: Depot, by: str, trace: str = RUN) -> list[Manifest]:
    page = await depot.handle(SearchArtifacts(trace_id=trace, artifact_type="model_call"), by, trace)
    return list(page.items)


@ON_FILES
async def test_a_call_is_seen_by_whom_it_was_made_for_and_goes_with_them(depot: Depot) -> None:
    await depot.set_members("agent.critic", "user.anna", trace=RUN)
    await depot.handle(record(), "svc.critic", RUN)
    (hers,), others = await kept(depot, "user.anna"), [await kept(depot, each) for each in (CRITIC, "user.boris")]
    everything = await depot.handle(SearchArtifacts(trace_id=RUN), "user.anna", RUN)
    await depot.handle(DeleteUser(user_id="anna"), "user.local")

    assert everything.items == (), "calls are no outputs: only who asks for them is shown them"
    assert (hers.owner, hers.visibility, hers.retention) == ("user.anna", "private", "7d")
    assert hers.context is not None
    assert (hers.context.prompt_tokens, hers.context.completion_tokens) == (100, 20)
    assert others == [[], []]
    assert await kept(depot, "user.anna") == []


@pytest.mark.parametrize(
    ("who", "trace", "may"),
    [
        ("svc.dialogue", "conv_anna", True),
        ("agent.subagent-analytic.1", "conv_anna", True),
        ("user.anna", None, True),
        ("agent.translator.1", RUN, True),
        ("agent.translator.1", "conv_anna", False),
        ("svc.intruder", RUN, False),
        ("agent.scout", None, False),
        ("user.mallory", "conv_anna", False),
    ],
)
@ON_FILES
async def test_nobody_else_spends_what_is_annas(depot: Depot, who: str, trace: str | None, may: bool) -> None:
    await depot.set_members("agent.translator", "user.anna", trace=RUN)

    if may:
        await depot.handle(record(), who, trace)
    else:
        with pytest.raises(Rejected) as refused:
            await depot.handle(record(), who, trace)
        assert refused.value.code is Code.UNAUTHORIZED
    assert len(await kept(depot, "user.anna", trace or "conv_anna")) == may


@pytest.mark.parametrize(("who", "user_id"), [("user.mallory", "mallory"), ("agent.scout", None)])
@pytest.mark.parametrize("trace", ["conv_anna", RUN])
@ON_FILES
async def test_nobody_leaves_a_call_in_the_trace_of_another(
    depot: Depot, who: str, user_id: str | None, trace: str
) -> None:
    await depot.set_members("agent.critic", "user.anna", trace=RUN)

    with pytest.raises(Rejected) as refused:
        await depot.handle(record(user_id), who, trace)

    assert refused.value.code is Code.UNAUTHORIZED
    assert await kept(depot, who, trace) == []
