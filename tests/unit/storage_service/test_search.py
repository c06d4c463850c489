"""Search finds all that is wanted, nothing hidden, along an index, whichever way it goes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, update

from benchmarks.catalogue import BEGIN, manifests
from benchmarks.search import CORPORA, filled, questions
from bus_schema.identities import Principal
from bus_schema.storage import SearchArtifacts
from mindbus.sql.database import Database
from storage_service.catalog import Catalog
from storage_service.rows import RANGE_COMMITS, next_position
from storage_service.search import SearchTuning
from storage_service.tables import CreationRangeRow, ManifestRow, SequenceRow, TraceMemberRow
from tests.postgres import DatabaseOf, Postgres
from tests.query_work import statements, work_of

pytestmark = pytest.mark.slow

AGENTS = ("agent.ann", "agent.bob", "agent.eve")
TRACES = ("run_1", "run_2", "run_3")
STEPS = (None, "research", "write")
TYPES = ("draft", "idea")
VISIBILITIES = ("private", "trace", "public")
HOUR = timedelta(hours=1)

MakeDatabase = Callable[[str], Database]


@pytest.fixture
async def database(database_of: DatabaseOf) -> AsyncIterator[Database]:
    database = Database(database_of("storage"), "storage")
    yield database
    await database.dispose()


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """A manifest's coordinates."""
    return {
        "trace_id": draw(st.sampled_from(TRACES)),
        "step_id": draw(st.sampled_from(STEPS)),
        "owner": draw(st.sampled_from(AGENTS)),
        "artifact_type": draw(st.sampled_from(TYPES)),
        "visibility": draw(st.sampled_from(VISIBILITIES)),
        "created_at": BEGIN + HOUR * draw(st.integers(0, 6)),
        "expired_at": draw(st.sampled_from((None, None, None, BEGIN))),
        "commits_before_it": draw(st.sampled_from((0, 0, RANGE_COMMITS + 1))),
    }


def filters() -> st.SearchStrategy[dict[str, Any]]:
    moments = st.none() | st.integers(0, 6).map(lambda hour: BEGIN + HOUR * hour)
    return st.fixed_dictionaries(
        {
            "trace_id": st.sampled_from((None, *TRACES)),
            "agent": st.sampled_from((None, *AGENTS)),
            "step_id": st.sampled_from(STEPS),
            "artifact_type": st.sampled_from((None, *TYPES)),
            "created_after": moments,
            "created_before": moments,
        }
    )


PACES = st.builds(
    SearchTuning,
    stride=st.integers(1, 4),
    longest_stride=st.integers(4, 8),
    few_traces=st.integers(0, 3),
    few_rows=st.integers(0, 6),
)


def is_wanted(row: dict[str, Any], wanted: dict[str, Any]) -> bool:
    after, before = wanted["created_after"], wanted["created_before"]
    return (
        all(wanted[name] in (None, row[name]) for name in ("trace_id", "step_id", "artifact_type"))
        and wanted["agent"] in (None, row["owner"])
        and (after is None or row["created_at"] >= after)
        and (before is None or row["created_at"] < before)
    )


def is_readable(row: dict[str, Any], lists: set[tuple[str, str]], principal: Principal) -> bool:
    """The rule, said once more in other words."""
    if row["expired_at"] is not None:
        return False
    if row["visibility"] == "public" or row["owner"] == principal.owner:
        return True
    is_listed = (row["trace_id"], principal.owner) in lists
    has_list = row["trace_id"] in {trace for trace, _member in lists}
    is_here = row["trace_id"] == principal.trace_id and not has_list
    return row["visibility"] == "trace" and (is_listed or is_here)


async def put(database: Database, made: list[dict[str, Any]], lists: set[tuple[str, str]]) -> list[str]:
    """In place of whatever was there; the ids in order of commit."""
    ids = []
    async with database.transaction() as session:
        for table in (CreationRangeRow, TraceMemberRow, SequenceRow, ManifestRow):
            await session.execute(delete(table))
        for trace, member in sorted(lists):
            await session.execute(insert(TraceMemberRow).values(trace_id=trace, member=member))
        rest = next(manifests(1))
        for number, row in enumerate(made):
            ids.append(f"art_{number:04}")
            await session.execute(update(SequenceRow).values(value=SequenceRow.value + row["commits_before_it"]))
            position = await next_position(session, row["created_at"])
            known = {name: value for name, value in row.items() if name != "commits_before_it"}
            keys = {"id": ids[-1], "logical_id": ids[-1], "position": position}
            await session.execute(insert(ManifestRow).values(rest | known | keys))
    return ids


async def all_pages(catalog: Catalog, wanted: dict[str, Any], principal: Principal, limit: int) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = await catalog.search(SearchArtifacts(**wanted, limit=limit, cursor=cursor), principal)
        found += [each.id for each in page.items]
        assert len(page.items) == limit or page.next_cursor is None
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    made=st.lists(rows(), max_size=25),
    lists=st.sets(st.tuples(st.sampled_from(TRACES), st.sampled_from(AGENTS))),
    wanted=filters(),
    principal=st.builds(Principal, st.sampled_from(AGENTS).map("{}.1".format), st.sampled_from((None, *TRACES))),
    pace=PACES,
    limit=st.integers(1, 5),
)
async def test_the_pages_have_what_is_wanted_and_readable_and_nothing_else(
    database: Database,
    made: list[dict[str, Any]],
    lists: set[tuple[str, str]],
    wanted: dict[str, Any],
    principal: Principal,
    pace: SearchTuning,
    limit: int,
) -> None:
    ids = await put(database, made, lists)

    found = await all_pages(Catalog(database, pace), wanted, principal, limit)

    assert found == [
        artifact_id
        for artifact_id, row in zip(ids, made, strict=True)
        if is_wanted(row, wanted) and is_readable(row, lists, principal)
    ]


# SQLite's steps, PostgreSQL's manifests: for some stretches, whatever there is beside them. To read all of the few
# takes SQLite 550,000 steps.
MOST = {"sqlite": 150_000, "postgresql": 25_000}
FEW, MANY = 25_000, 100_000


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.backends)])
def make_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MakeDatabase:
    """An empty one; these are too large to be made for each test anew."""
    if request.param == "sqlite":
        folder = tmp_path_factory.mktemp("catalogues")
        return lambda name: Database(f"sqlite+aiosqlite:///{folder / name}.db", "storage")
    postgres: Postgres = request.getfixturevalue("postgres")
    return lambda _name: Database(postgres.create(), "storage")


async def require_little_work(database: Database, corpus: str, size: int, *depths: float) -> None:
    await filled(database, corpus, size)
    too_much, scanned = {}, {}
    for question in questions(size):
        if question.corpus != corpus:
            continue
        for depth in depths:
            wanted = SearchArtifacts(cursor=str(int(depth * size)), **question.wanted)
            async with statements(database) as asked:
                await Catalog(database).search(wanted, question.principal)
            work = await asyncio.to_thread(work_of, database, asked)
            if work.amount > MOST[database.url.get_backend_name()]:
                too_much[question.principal.identity, question.name, depth] = work.amount
            if "artifact_manifests" in work.scanned:
                scanned[question.principal.identity, question.name, depth] = asked
    await database.dispose()
    assert (too_much, scanned) == ({}, {})


@pytest.mark.parametrize("corpus", CORPORA)
async def test_a_page_costs_little_at_any_depth_by_any_filter_whatever_is_hidden(
    make_database: MakeDatabase, corpus: str
) -> None:
    await require_little_work(make_database(f"few_{corpus}"), corpus, FEW, 0, 0.6)


@pytest.mark.proof
@pytest.mark.parametrize("corpus", CORPORA)
async def test_a_page_of_many_manifests_costs_no_more_than_one_of_few(make_database: MakeDatabase, corpus: str) -> None:
    await require_little_work(make_database(f"many_{corpus}"), corpus, MANY, 0, 0.3, 0.6, 0.95)
