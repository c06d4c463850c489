"""Search, pages, versions."""

from datetime import timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bus_schema.replies import Code
from bus_schema.storage import GetVersions, SearchArtifacts
from mindbus.errors import Rejected
from tests.clocks import NOON
from tests.storage_kit import CRITIC, ON_BOTH_DATABASES, RESEARCHER, TRACE, Depot

_traces = count()


async def found(depot: Depot, by: str = RESEARCHER, trace: str | None = None, **wanted: object) -> list[str]:
    page = await depot.handle(SearchArtifacts.model_validate(wanted), by, trace)
    return [each.id for each in page.items]


async def test_artifacts_are_found_by_each_coordinate_and_by_all_together(depot: Depot) -> None:
    report = await depot.put(step_id="research", visibility="public")
    ideas = await depot.put(step_id="ideas", artifact_type="idea", visibility="public")
    other_run = await depot.put(trace_id="run_2", visibility="public")
    critique = await depot.put(by=CRITIC, artifact_type="critique", visibility="public")

    assert await found(depot) == [report, ideas, other_run, critique]
    assert await found(depot, trace_id=TRACE) == [report, ideas, critique]
    assert await found(depot, agent="agent.critic") == [critique]
    assert await found(depot, step_id="ideas") == [ideas]
    assert await found(depot, artifact_type="idea") == [ideas]
    assert await found(depot, trace_id=TRACE, agent="agent.researcher", artifact_type="research_report") == [report]
    assert await found(depot, trace_id="run_2", agent="agent.critic") == []


async def test_an_agent_is_found_by_any_of_its_instances(depot: Depot) -> None:
    first = await depot.put(by="agent.researcher.1")
    second = await depot.put(by="agent.researcher.2")

    for agent in ("agent.researcher", "agent.researcher.1", "agent.researcher.3"):
        assert await found(depot, agent=agent) == [first, second]


async def test_time_is_an_interval_open_at_its_end(depot: Depot) -> None:
    ids = [await depot.put(created_at=NOON + timedelta(hours=hour)) for hour in range(4)]
    one, three = NOON + timedelta(hours=1), NOON + timedelta(hours=3)

    assert await found(depot, created_after=one) == ids[1:]
    assert await found(depot, created_before=three) == ids[:3]
    assert await found(depot, created_after=one, created_before=three) == ids[1:3]
    assert await found(depot, created_after="2026-03-14T16:00:00+03:00", created_before=three) == ids[1:3]


async def test_pages_follow_one_another_to_the_end(depot: Depot) -> None:
    ids = [await depot.put(b"number %d" % number) for number in range(5)]

    first = await depot.handle(SearchArtifacts(limit=2))
    second = await depot.handle(SearchArtifacts(limit=2, cursor=first.next_cursor))
    last = await depot.handle(SearchArtifacts(limit=2, cursor=second.next_cursor))

    assert [[each.id for each in page.items] for page in (first, second, last)] == [ids[:2], ids[2:4], ids[4:]]
    assert last.next_cursor is None


async def test_a_page_that_ends_with_the_last_artifact_has_no_next(depot: Depot) -> None:
    for number in range(2):
        await depot.put(b"number %d" % number)

    assert (await depot.handle(SearchArtifacts(limit=2))).next_cursor is None


@pytest.mark.slow
@ON_BOTH_DATABASES
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.lists(st.sampled_from(["private", "trace", "public"]), max_size=4), min_size=1, max_size=5),
    limit=st.integers(1, 4),
)
async def test_no_page_repeats_or_misses_an_artifact_however_many_come_meanwhile(
    depot: Depot, batches: list[list[str]], limit: int
) -> None:
    trace = f"run_of_pages_{next(_traces)}"
    readable, seen = [], []
    cursor = None

    while True:
        for visibility in batches.pop(0) if batches else []:
            artifact_id = await depot.put(by=CRITIC, trace_id=trace, visibility=visibility)
            readable += [artifact_id] if visibility == "public" else []
        page = await depot.handle(SearchArtifacts(trace_id=trace, limit=limit, cursor=cursor))
        seen += [each.id for each in page.items]
        if page.next_cursor is None:
            break
        cursor = page.next_cursor

    assert seen == readable[: len(seen)]
    assert batches or seen == readable


@pytest.mark.parametrize("cursor", ["", "abc", "-1", "1.5", "1e3", "٣", "9" * 19, "1 OR 1=1"])
async def test_a_cursor_that_was_never_given_out_is_refused(depot: Depot, cursor: str) -> None:
    with pytest.raises(Rejected) as refused:
        await depot.handle(SearchArtifacts(cursor=cursor))

    assert refused.value.code is Code.INVALID


async def test_any_version_leads_to_all_of_them_oldest_first(depot: Depot) -> None:
    ids = [await depot.put(b"version 1")]
    for version in (2, 3, 4):
        ids.append(await depot.put(b"version %d" % version, supersedes=ids[-1], version=version))
    await depot.put(b"of another thing")

    for artifact_id in ids:
        versions = await depot.handle(GetVersions(artifact_id=artifact_id))
        assert [(each.id, each.version) for each in versions.items] == list(zip(ids, (1, 2, 3, 4), strict=True))


async def test_versions_that_the_asker_may_not_see_are_left_out(depot: Depot) -> None:
    first = await depot.put(b"version 1", visibility="public")
    second = await depot.put(b"version 2", supersedes=first, version=2, visibility="private")
    third = await depot.put(b"version 3", supersedes=second, version=3, visibility="public")

    versions = await depot.handle(GetVersions(artifact_id=third), CRITIC)

    assert [each.id for each in versions.items] == [first, third]
