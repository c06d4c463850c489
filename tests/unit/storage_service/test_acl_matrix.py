"""Owner × trace × visibility × operation: one rule, every door, no door that tells the hidden from the absent."""

import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from structlog.testing import capture_logs

from bus_schema.identities import owner_of
from bus_schema.messages import Command
from bus_schema.storage import GetArtifact, GetLineage, GetVersions, RegisterArtifact, SearchArtifacts
from mindbus.bus.context import MessageContext
from mindbus.errors import Rejected
from mindbus.files.store import open_folder
from mindbus.sql.database import Database
from tests.signatures import with_signatures
from tests.storage_kit import Depot, an_envelope
from workers.storage.artifacts import ArtifactHandlers

pytestmark = pytest.mark.slow

OWNER = "agent.researcher.1"
TWIN = "agent.researcher.2"
LISTED = "agent.critic.1"
REQUESTERS = (OWNER, TWIN, LISTED, "agent.editor.1", "user.researcher", "user.local", "svc.orchestrator")
VISIBILITIES = ("private", "trace", "public")
LISTS = {"no list": (), "listed": (OWNER, LISTED), "others listed": (OWNER, "agent.ideator.1")}
WITHIN = (None, "its own", "run_other")


@dataclass(frozen=True)
class Shelf:
    """An artifact of one visibility, in a trace with one kind of member list, with a public one on either side."""

    visibility: str
    members: str

    @property
    def trace(self) -> str:
        return f"run_{self.visibility}_{self.members.replace(' ', '_')}"

    @property
    def artifact(self) -> str:
        return f"art_{self.trace}"

    @property
    def source(self) -> str:
        """Its input, its predecessor."""
        return f"art_source_{self.trace}"


SHELVES = [Shelf(*each) for each in product(VISIBILITIES, LISTS)]


@dataclass(frozen=True)
class Case:
    """Who asks, within which trace, for what; what it may do with it is the rule, written here once."""

    requester: str
    within: str | None
    shelf: Shelf

    @property
    def asked_within(self) -> str | None:
        return self.shelf.trace if self.within == "its own" else self.within

    @property
    def is_owner(self) -> bool:
        return owner_of(self.requester) == owner_of(OWNER)

    @property
    def takes_part(self) -> bool:
        """On the trace's list; where it has none, by asking within the trace."""
        listed = LISTS[self.shelf.members]
        return self.within == "its own" if not listed else owner_of(self.requester) in map(owner_of, listed)

    @property
    def may_read(self) -> bool:
        by_trace = self.shelf.visibility == "trace" and self.takes_part
        return self.is_owner or self.shelf.visibility == "public" or by_trace

    @property
    def may_supersede(self) -> bool:
        return self.is_owner or (self.shelf.visibility != "private" and self.takes_part)


CASES = [Case(*each) for each in product(REQUESTERS, WITHIN, SHELVES)]


@dataclass(frozen=True)
class Heard:
    """A reply as the asker gets it, along with what it cost."""

    reply: str
    statements: tuple[str, ...]

    @property
    def code(self) -> str | None:
        code = json.loads(self.reply).get("code")
        return None if code is None else str(code)

    def names(self, artifact_id: str) -> bool:
        """Whether the artifact itself is in the answer, rather than its id in another's manifest."""
        answer = json.loads(self.reply)
        return artifact_id in {each["id"] for each in answer.get("items", answer.get("nodes", ()))}


class Undone(Exception):
    """The transaction is rolled back, so that the next case finds the same world."""


@dataclass
class World:
    """A storage; that of the hidden has all artifacts, that of the absent all but those which are asked for."""

    depot: Depot

    async def furnish(self, *, has_artifacts: bool) -> None:
        for shelf in SHELVES:
            mine: dict[str, Any] = {"by": OWNER, "trace_id": shelf.trace}
            await self.depot.put(b"source", id=shelf.source, visibility="public", **mine)
            if has_artifacts:
                place = {"version": 2, "supersedes": shelf.source, "context": {"input_artifacts": [shelf.source]}}
                await self.depot.put(b"findings", id=shelf.artifact, visibility=shelf.visibility, **mine, **place)
            if members := LISTS[shelf.members]:
                await self.depot.set_members(*members, trace=shelf.trace)

    async def hear(self, case: Case, command: Command[Any]) -> Heard:
        with self._statements() as statements:
            try:
                reply = await self._ask(case, command)
            except Rejected as no:
                reply = json.dumps({"code": no.code, "message": str(no), "details": no.details}, sort_keys=True)
        return Heard(reply, tuple(statements))

    async def _ask(self, case: Case, command: Command[Any]) -> str:
        if not isinstance(command, RegisterArtifact):
            answer = await self.depot.handle(command, case.requester, case.asked_within)
            return str(answer.model_dump_json())
        reply = ""
        try:
            async with self.depot.worker.inbox.unit_of_work("storage"):
                envelope = an_envelope(command, case.requester, case.asked_within)
                returned = await ArtifactHandlers(self.depot.storage).register(
                    command, MessageContext(envelope, "storage")
                )
                reply = (returned[0] if isinstance(returned, tuple) else returned).model_dump_json()
                raise Undone
        except Undone:
            return reply

    @contextmanager
    def _statements(self) -> Iterator[list[str]]:
        """What the database is asked meanwhile, as texts without values."""
        seen: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            seen.append(statement)

        database = self.depot.database
        engines = [database.engine.sync_engine, *([database.groups.engine] if database.groups else [])]
        for engine in engines:
            event.listen(engine, "before_cursor_execute", note)
        yield seen
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)


@pytest.fixture(autouse=True)
def _thousands_of_refusals() -> Iterator[None]:
    """Written down for nobody to read."""
    with capture_logs():
        yield


@dataclass(frozen=True)
class Worlds:
    """The same twice, but for the artifacts that are asked for."""

    hidden: World
    absent: World


@pytest.fixture
async def worlds(tmp_path: Path, migrated: Path) -> AsyncIterator[Worlds]:
    made = []
    for name in ("hidden", "absent"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(migrated / "storage.db", folder)
        database = Database(f"sqlite+aiosqlite:///{folder / 'storage.db'}", "storage")
        files = open_folder((folder / "artifacts").as_uri())
        made.append(World(Depot(folder, database, files, arrange=with_signatures)))
        await made[-1].furnish(has_artifacts=name == "hidden")
    yield Worlds(*made)
    for world in made:
        await world.depot.database.dispose()


Ask = Callable[[World, Case], Awaitable[Heard]]


async def get(world: World, case: Case) -> Heard:
    return await world.hear(case, GetArtifact(artifact_id=case.shelf.artifact))


async def get_signed(world: World, case: Case) -> Heard:
    return await world.hear(case, GetArtifact(artifact_id=case.shelf.artifact, presigned=True))


async def versions(world: World, case: Case) -> Heard:
    return await world.hear(case, GetVersions(artifact_id=case.shelf.artifact))


async def lineage_up(world: World, case: Case) -> Heard:
    return await world.hear(case, GetLineage(artifact_id=case.shelf.artifact, direction="up"))


async def lineage_down(world: World, case: Case) -> Heard:
    return await world.hear(case, GetLineage(artifact_id=case.shelf.artifact, direction="down"))


async def use_as_input(world: World, case: Case) -> Heard:
    return await register(world, case, context={"input_artifacts": [case.shelf.artifact]})


async def supersede(world: World, case: Case) -> Heard:
    return await register(world, case, supersedes=case.shelf.artifact, version=3)


async def register(world: World, case: Case, **changes: Any) -> Heard:
    fields = {"by": case.requester, "id": "art_derived", "trace_id": "run_derived"}
    manifest = world.depot.manifest(b"derived", **(fields | changes))
    return await world.hear(case, RegisterArtifact(manifest=manifest))


def read(case: Case) -> str | None:
    return None if case.may_read else "not_found"


def correct(case: Case) -> str | None:
    return read(case) or (None if case.may_supersede else "unauthorized")


@pytest.mark.parametrize(
    ("ask", "rule"),
    [
        (get, read),
        (get_signed, read),
        (versions, read),
        (lineage_up, read),
        (lineage_down, read),
        (use_as_input, read),
        (supersede, correct),
    ],
    ids=lambda each: each.__name__,
)
async def test_who_asks_for_it_by_id_hears_what_the_rule_says_or_that_there_is_none(
    worlds: Worlds, ask: Ask, rule: Callable[[Case], str | None]
) -> None:
    wrong, telling = [], []

    for case in CASES:
        heard = await ask(worlds.hidden, case)
        if heard.code != rule(case):
            wrong.append((case, heard))
        if heard.code == "not_found" and heard != await ask(worlds.absent, case):
            telling.append(case)

    assert len(CASES) == 7 * 3 * 3 * 3
    assert (wrong, telling) == ([], [])


async def search(world: World, case: Case) -> Heard:
    return await world.hear(case, SearchArtifacts(trace_id=case.shelf.trace))


async def versions_of_its_predecessor(world: World, case: Case) -> Heard:
    return await world.hear(case, GetVersions(artifact_id=case.shelf.source))


async def lineage_down_to_it(world: World, case: Case) -> Heard:
    return await world.hear(case, GetLineage(artifact_id=case.shelf.source, direction="down", depth=1))


@pytest.mark.parametrize("ask", [search, versions_of_its_predecessor, lineage_down_to_it])
async def test_who_would_come_across_it_sees_it_by_the_same_rule_or_sees_no_trace_of_it(
    worlds: Worlds, ask: Ask
) -> None:
    wrong, telling = [], []

    for case in CASES:
        heard = await ask(worlds.hidden, case)
        if heard.names(case.shelf.artifact) is not case.may_read:
            wrong.append((case, heard))
        if not case.may_read and heard != await ask(worlds.absent, case):
            telling.append(case)

    assert (wrong, telling) == ([], [])


async def test_who_may_not_read_an_input_of_what_it_reads_does_not_see_it_there(worlds: Worlds) -> None:
    wrong = []
    for shelf in SHELVES:
        inputs = {"context": {"input_artifacts": [shelf.artifact]}}
        made_from_it = f"art_made_from_{shelf.trace}"
        await worlds.hidden.depot.put(b"public", id=made_from_it, by=OWNER, visibility="public", **inputs)

    for case in CASES:
        query = GetLineage(artifact_id=f"art_made_from_{case.shelf.trace}", direction="up")
        heard = await worlds.hidden.hear(case, query)
        edges = {each["source"] for each in json.loads(heard.reply)["edges"]}
        if not (heard.names(case.shelf.artifact) is (case.shelf.artifact in edges) is case.may_read):
            wrong.append((case, heard))

    assert wrong == []


async def with_nothing_staged(world: World, case: Case) -> Heard:
    key = world.depot.upload_key(owner_of(case.requester))
    return await register(world, case, id=case.shelf.artifact, uri=world.depot.files.uri(key))


async def with_other_bytes_staged(world: World, case: Case) -> Heard:
    return await register(world, case, id=case.shelf.artifact, checksum=f"sha256:{'0' * 64}")


async def as_a_version_too_many(world: World, case: Case) -> Heard:
    return await register(world, case, id=case.shelf.artifact, supersedes="art_absent", version=2)


OF_OTHERS = [case for case in CASES if not case.is_owner]


@pytest.mark.parametrize("ask", [with_nothing_staged, with_other_bytes_staged, as_a_version_too_many])
async def test_an_id_of_anothers_cannot_be_probed_by_a_registration_that_would_fail(worlds: Worlds, ask: Ask) -> None:
    telling = [case for case in OF_OTHERS if await ask(worlds.hidden, case) != await ask(worlds.absent, case)]

    assert telling == []


async def test_an_id_of_anothers_is_taken_and_that_is_all_that_can_be_learned_of_it(worlds: Worlds) -> None:
    heard = []
    for content in (b"findings", b"derived"):
        for case in (case for case in OF_OTHERS if case.within == "its own"):
            manifest = worlds.hidden.depot.manifest(content, by=case.requester, id=case.shelf.artifact)
            reply = (await worlds.hidden.hear(case, RegisterArtifact(manifest=manifest))).reply
            heard.append(reply.replace(case.shelf.artifact, "…"))

    assert set(heard) == {heard[0]}
    assert json.loads(heard[0])["code"] == "conflict"
    assert json.loads(heard[0])["details"] == {"artifact_id": "…"}
