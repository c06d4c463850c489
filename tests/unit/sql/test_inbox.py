"""A message has its effect once, and says what it has to say, on either database."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Column, Connection, MetaData, Table, Text, func, insert, select, text, update

from bus_schema.envelope import Envelope, Kind
from mindbus.bus.transport import Outgoing
from mindbus.errors import BusUnavailable, QueueUnavailable, TemporaryFailure, Unroutable
from mindbus.sql.database import Database
from mindbus.sql.inbox import KEPT, SqlInbox
from mindbus.sql.migrations import upgrade
from mindbus.testing.wait import until
from storage_service.rows import draw_numbers
from storage_service.tables import MIGRATIONS, SequenceRow, inbox_tables
from tests.postgres import DatabaseOf
from tests.query_work import statements, work_of

OpenInbox = Callable[[], SqlInbox]


class Post:
    """The half of a transport that a inbox uses; it keeps what is published, unless it is told to fail."""

    def __init__(self) -> None:
        self.published: list[str] = []
        self.fails: Callable[[Outgoing], Exception | None] = lambda _message: None

    async def publish(self, message: Outgoing) -> None:
        await asyncio.sleep(0)
        if failure := self.fails(message):
            raise failure
        self.published.append(message.envelope.id)


class FullQueue:
    """A queue that has room for so many messages more; `tried` are ids of those that were published to it."""

    def __init__(self, room: int, refusal: BusUnavailable | None = None) -> None:
        self.room, self.tried = room, list[str]()
        self._refusal = refusal or QueueUnavailable("full")

    @staticmethod
    def said(number: int) -> Outgoing:
        return replace(said(number), exchange="mb.cmd.slow")

    def fails(self, message: Outgoing) -> Exception | None:
        if message.exchange != "mb.cmd.slow":
            return None
        self.tried.append(message.envelope.id)
        self.room -= 1
        return self._refusal if self.room < 0 else None


@pytest.fixture
async def open_inbox(database_of: DatabaseOf) -> AsyncIterator[OpenInbox]:
    """An instance of a service, as many as one likes."""
    opened: list[SqlInbox] = []

    def opening() -> SqlInbox:
        opened.append(SqlInbox(Database(database_of("storage"), "storage")))
        return opened[-1]

    yield opening
    for each in opened:
        await each.stop()
        await each.database.dispose()


def said(number: int, kind: Kind = Kind.EVENT) -> Outgoing:
    envelope = Envelope(
        id=f"msg_{number:04}",
        source="/mb/storage/1",
        type="mb.evt.artifact.registered.v1",
        time=datetime.now(UTC),
        correlationid="msg_0",
        mbkind=kind,
        mbrequester="svc.storage",
        data={"имя": number},
    )
    return Outgoing("mb.evt.storage", "evt.artifact.registered", envelope, envelope.model_dump_json().encode())


async def handle(instance: SqlInbox, message_id: str | None, *outgoing: Outgoing) -> None:
    """Count the message, say something about it."""
    async with instance.unit_of_work("storage") as unit:
        await instance.database.run(lambda connection: draw_numbers(connection, "handled"))
        await (unit.publish(outgoing) if message_id is None else unit.record({message_id: outgoing}))


async def outcome_of(instance: SqlInbox, message_id: str, consumer: str = "storage") -> Sequence[Outgoing] | None:
    return (await instance.outcomes_of(consumer, [message_id])).get(message_id)


async def handled(instance: SqlInbox) -> int:
    async with instance.database.reading() as session:
        return await session.scalar(select(SequenceRow.value).where(SequenceRow.name == "handled")) or 0


async def waiting(instance: SqlInbox) -> int:
    """Number of messages that are recorded and not known to be published."""
    inbox = inbox_tables.inbox
    async with instance.database.reading() as session:
        outcomes = await session.scalars(select(inbox.c.outcome).where(~inbox.c.published))
        left = await session.scalar(select(func.count()).select_from(inbox_tables.outbox)) or 0
        return left + sum(map(len, outcomes))


async def set_aside(instance: SqlInbox) -> list[tuple[str, str]]:
    """Origin and reason of what could not be read."""
    quarantine = inbox_tables.quarantine
    async with instance.database.reading() as session:
        rows = await session.execute(select(quarantine.c.source, quarantine.c.reason).order_by(quarantine.c.seq))
        return [(source, reason) for source, reason in rows]


async def test_what_a_message_caused_is_known_to_every_instance(open_inbox: OpenInbox) -> None:
    await handle(open_inbox(), "msg_a", said(1), said(2))

    outcome = await outcome_of(open_inbox(), "msg_a")

    assert outcome is not None
    assert [message.envelope.id for message in outcome] == ["msg_0001", "msg_0002"]
    assert [message.envelope.data for message in outcome] == [{"имя": 1}, {"имя": 2}]
    assert await outcome_of(open_inbox(), "msg_a", "orchestrator") is None
    assert await outcome_of(open_inbox(), "msg_b") is None


async def test_of_only_rows_what_leads_to_nothing_leaves_no_row(database_of: DatabaseOf) -> None:
    instance = SqlInbox(Database(database_of("storage"), "storage"), only_rows=True)
    async with instance.unit_of_work("storage") as unit:
        await unit.record({"msg_idle": []})
    async with instance.unit_of_work("storage") as unit:
        await unit.record({"msg_said": [said(1)]})
    await handle(instance, "msg_written")

    found = await instance.outcomes_of("storage", ["msg_idle", "msg_said", "msg_written"])

    assert {message_id: len(outcome) for message_id, outcome in found.items()} == {"msg_said": 1, "msg_written": 0}
    await instance.database.dispose()


async def test_a_message_that_failed_leaves_nothing(open_inbox: OpenInbox) -> None:
    instance = open_inbox()

    async def fail() -> None:
        async with instance.unit_of_work("storage") as unit:
            await instance.database.run(lambda connection: draw_numbers(connection, "handled"))
            await unit.record({"msg_a": [said(1)]})
            raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await fail()

    assert await outcome_of(instance, "msg_a") is None
    assert await handled(instance) == await waiting(instance) == 0


async def test_a_message_that_many_instances_handle_at_once_has_its_effect_once(open_inbox: OpenInbox) -> None:
    attempts = await asyncio.gather(*(handle(open_inbox(), "msg_a", said(1)) for _ in range(4)), return_exceptions=True)

    assert Counter(isinstance(failure, TemporaryFailure) for failure in attempts) == {False: 1, True: 3}
    assert None in attempts
    assert await handled(open_inbox()) == await waiting(open_inbox()) == 1


async def test_what_a_clock_sets_off_is_counted_every_time(open_inbox: OpenInbox) -> None:
    instance = open_inbox()
    for _ in range(2):
        await handle(instance, None, said(1))

    assert await handled(instance) == await waiting(instance) == 2


@pytest.mark.slow
async def test_everything_is_published_by_however_many_instances(open_inbox: OpenInbox) -> None:
    post, instances = Post(), [open_inbox() for _ in range(3)]
    for number in range(150):
        await handle(instances[number % 3], None, said(number))

    for instance in instances:
        await instance.start(post)  # type: ignore[arg-type]  # it only publishes
    for number in range(150, 200):
        await handle(instances[number % 3], None, said(number))

    async def is_empty() -> bool:
        return await waiting(instances[0]) == 0

    await until(is_empty)
    assert set(post.published) == {f"msg_{number:04}" for number in range(200)}
    if not instances[0].database.is_sqlite:
        assert len(post.published) == 200


async def test_one_instance_publishes_in_order(open_inbox: OpenInbox) -> None:
    post, instance = Post(), open_inbox()
    for number in range(120):
        await handle(instance, None, said(number))

    await instance.start(post)  # type: ignore[arg-type]  # it only publishes

    await until(lambda: len(post.published) == 120)
    assert post.published == [f"msg_{number:04}" for number in range(120)]


async def test_what_the_bus_does_not_take_waits_until_it_does(open_inbox: OpenInbox) -> None:
    post, instance = Post(), open_inbox()
    post.fails = lambda _message: BusUnavailable("no broker")
    await handle(instance, "msg_a", said(1))
    await instance.start(post)  # type: ignore[arg-type]  # it only publishes
    await handle(instance, None, said(2))

    post.fails = lambda _message: None

    await until(lambda: sorted(post.published) == ["msg_0001", "msg_0002"])


async def test_what_nobody_takes_holds_up_nothing_behind_it(open_inbox: OpenInbox) -> None:
    post, instance = Post(), open_inbox()
    post.fails = lambda message: Unroutable("no queue") if message.envelope.id < "msg_0003" else None
    for number, kind in enumerate((Kind.REPLY, Kind.COMMAND, Kind.REPLY, Kind.EVENT)):
        await handle(instance, None, said(number, kind))

    await instance.start(post)  # type: ignore[arg-type]  # it only publishes

    await until(lambda: post.published == ["msg_0003"])

    async def only_the_command_waits() -> bool:
        return await waiting(instance) == 1

    await until(only_the_command_waits)


async def test_what_is_old_is_forgotten_at_a_start(open_inbox: OpenInbox) -> None:
    instance = open_inbox()
    for message_id in ("msg_old", "msg_new"):
        await handle(instance, message_id)
    async with instance.database.transaction() as session:
        old = update(inbox_tables.inbox).where(inbox_tables.inbox.c.message_id == "msg_old")
        await session.execute(old.values(handled_at=datetime.now(UTC) - KEPT - timedelta(days=1)))

    await instance.start(Post())  # type: ignore[arg-type]  # it only publishes

    await until(lambda: _is_forgotten(instance, "msg_old"))
    assert await outcome_of(instance, "msg_new") is not None


async def test_what_grows_old_meanwhile_is_forgotten_daily(open_inbox: OpenInbox) -> None:
    instance = open_inbox()
    instance.prune_every_s = 0.05
    await instance.start(Post())  # type: ignore[arg-type]  # it only publishes
    await handle(instance, "msg_old")
    async with instance.database.transaction() as session:
        await session.execute(update(inbox_tables.inbox).values(handled_at=datetime.now(UTC) - KEPT))

    await until(lambda: _is_forgotten(instance, "msg_old"))


async def _is_forgotten(instance: SqlInbox, message_id: str) -> bool:
    return await outcome_of(instance, message_id) is None


@pytest.mark.parametrize(
    ("names", "emptied"), [(("anna", "conv_anna"), {"msg_a", "msg_b"}), ((), {"msg_a", "msg_b", "msg_c"})]
)
async def test_a_forgotten_outcome_leaves_its_message_handled(
    open_inbox: OpenInbox, names: tuple[str, ...], emptied: set[str]
) -> None:
    ours = open_inbox()
    hers = replace(said(1), envelope=said(1).envelope.model_copy(update={"data": {"user_id": "anna"}}))
    traced = replace(said(2), envelope=said(2).envelope.model_copy(update={"mbtraceid": "conv_anna"}))
    other = replace(said(3), envelope=said(3).envelope.model_copy(update={"data": {"user_id": "anna_b"}}))
    for message_id, outgoing in (("msg_a", hers), ("msg_b", traced), ("msg_c", other)):
        body = outgoing.envelope.model_dump_json().encode()
        await handle(ours, message_id, replace(outgoing, body=body))

    async with ours.unit_of_work("storage") as unit:
        await ours.forget(*names)
        await unit.record({"msg_forget": ()})

    outcomes = {each: await outcome_of(ours, each) for each in ("msg_a", "msg_b", "msg_c")}
    assert {each for each, outcome in outcomes.items() if outcome == []} == emptied


async def test_what_is_set_aside_is_forgotten_by_whole_names(open_inbox: OpenInbox) -> None:
    instance, aside = open_inbox(), inbox_tables.quarantine
    told = ['{"user_id": "anna"}', r"{\"text\":\"Well,\nanna.\"}", '{"requester": "user.anna"}', "conv_anna|anna"]
    others = ["joanna", "anna_2", "anna.b", "anna@home", "user.anna-maria", "Hanna and anna2"]
    rows = [
        {"source": "outbox", "content": content, "reason": "not an outcome", "at": datetime.now(UTC)}
        for content in (*told, *others)
    ]
    async with instance.database.transaction() as session:
        await session.execute(insert(aside), rows)

    async with instance.unit_of_work("storage"):
        await instance.forget("anna", "user.anna", "conv_anna")
    async with instance.database.transaction() as session:
        assert list(await session.scalars(select(aside.c.content).order_by(aside.c.seq))) == others
    async with instance.unit_of_work("storage"):
        await instance.forget()
    async with instance.database.transaction() as session:
        assert list(await session.scalars(select(aside.c.content))) == []


async def test_a_group_of_messages_takes_effect_in_one_transaction(open_inbox: OpenInbox) -> None:
    instance = open_inbox()
    await handle(instance, "msg_a", said(1))

    with pytest.raises(TemporaryFailure):
        async with instance.unit_of_work("storage") as unit:
            await unit.record({"msg_b": [said(2)], "msg_a": [said(3)]})
    async with instance.unit_of_work("storage") as unit:
        await unit.record({"msg_c": [said(4)], "msg_d": [said(5), said(6)]})

    known = await instance.outcomes_of("storage", ["msg_a", "msg_b", "msg_c", "msg_d"])
    assert {message_id: len(outgoing) for message_id, outgoing in known.items()} == {"msg_a": 1, "msg_c": 1, "msg_d": 2}
    assert await waiting(instance) == 4


async def test_what_a_dead_process_committed_is_published_though_its_message_never_comes_again(
    open_inbox: OpenInbox,
) -> None:
    post, dead, alive = Post(), open_inbox(), open_inbox()
    await handle(dead, "msg_a", said(1), said(2))
    await handle(dead, "msg_b", said(3))
    dead.mark_published("storage", "msg_b")
    await dead.outbox.write_marks()

    await alive.start(post)  # type: ignore[arg-type]  # it only publishes
    await handle(alive, "msg_c", said(4))

    await until(lambda: post.published == ["msg_0001", "msg_0002"])

    async def only_the_new_one_is_unmarked() -> bool:
        return await waiting(alive) == 1

    # The process that has committed it publishes it; the relay does not come between.
    await until(only_the_new_one_is_unmarked)
    assert post.published == ["msg_0001", "msg_0002"]


async def test_what_another_instance_has_left_is_published_after_a_while(open_inbox: OpenInbox) -> None:
    post, dead, alive = Post(), open_inbox(), open_inbox()
    alive.outbox.look_again_s, alive.outbox.poll_s = 0.05, 0.01
    await alive.start(post)  # type: ignore[arg-type]  # it only publishes

    await handle(dead, "msg_a", said(1))

    await until(lambda: post.published == ["msg_0001"])

    async def is_marked() -> bool:
        return await waiting(alive) == 0

    await until(is_marked)


async def test_what_is_postponed_is_all_that_is_published_later(open_inbox: OpenInbox) -> None:
    post, instance = Post(), open_inbox()
    post.fails = lambda _message: Unroutable("no queue")
    await instance.start(post)  # type: ignore[arg-type]  # it only publishes
    await handle(instance, "msg_a", said(1), said(2, Kind.COMMAND))

    await instance.postpone("storage", "msg_a", [said(2, Kind.COMMAND)])
    assert await waiting(instance) == 1
    post.fails = lambda _message: None

    await until(lambda: post.published == ["msg_0002"])
    outcome = await outcome_of(instance, "msg_a")
    assert outcome is not None
    assert len(outcome) == 2


async def test_what_nobody_takes_of_a_dead_process_is_left_to_the_outbox(open_inbox: OpenInbox) -> None:
    post, instance = Post(), open_inbox()
    post.fails = lambda message: Unroutable("no queue") if message.envelope.mbkind is Kind.COMMAND else None
    await handle(instance, "msg_a", said(1), said(2, Kind.COMMAND))

    await instance.relay(post)  # type: ignore[arg-type]  # it only publishes
    await instance.relay(post)  # type: ignore[arg-type]
    assert post.published == ["msg_0001"]
    post.fails = lambda _message: None
    await instance.relay(post)  # type: ignore[arg-type]

    assert post.published == ["msg_0001", "msg_0002"]
    assert await waiting(instance) == 0


async def test_an_unreadable_row_of_the_outbox_is_set_aside_and_holds_up_nothing(open_inbox: OpenInbox) -> None:
    post, instance = Post(), open_inbox()
    await handle(instance, None, said(1), said(2), said(3))
    async with instance.database.transaction() as session:
        outbox = inbox_tables.outbox
        await session.execute(update(outbox).where(outbox.c.seq == 2).values(envelope='{"id": "msg_0002", "torn'))

    await instance.start(post)  # type: ignore[arg-type]  # it only publishes

    async def all_are_settled() -> bool:
        return await waiting(instance) == 0

    await until(all_are_settled)
    assert post.published == ["msg_0001", "msg_0003"]
    assert await set_aside(instance) == [("outbox 2", "not an envelope")]
    assert instance.note.startswith("1 unreadable messages in the table quarantine of ")
    await handle(instance, None, said(4))
    await until(lambda: post.published[2:] == ["msg_0004"])
    restarted = open_inbox()
    await restarted.start(Post())  # type: ignore[arg-type]  # it only publishes
    assert restarted.note == instance.note


async def test_an_unreadable_outcome_is_set_aside_and_holds_up_nothing(open_inbox: OpenInbox) -> None:
    post, dead, alive = Post(), open_inbox(), open_inbox()
    unreadable = {"msg_a": '[{"exchange": "mb.evt.storage"}]', "msg_b": "7"}
    if alive.database.is_sqlite:
        # PostgreSQL takes nothing but JSON.
        unreadable["msg_c"] = '[{"exch'
    for number, message_id in enumerate((*unreadable, "msg_z")):
        await handle(dead, message_id, said(number))
    column = "CAST(:outcome AS TEXT)" if alive.database.is_sqlite else "CAST(:outcome AS JSON)"
    change = text(f"UPDATE inbox SET outcome = {column} WHERE message_id = :id")
    async with dead.database.transaction() as session:
        for message_id, outcome in unreadable.items():
            await session.execute(change, {"id": message_id, "outcome": outcome})

    await alive.start(post)  # type: ignore[arg-type]  # it only publishes

    async def all_are_aside() -> bool:
        return len(await set_aside(alive)) == len(unreadable)

    await until(all_are_aside)
    await until(lambda: post.published == [f"msg_{len(unreadable):04}"])
    assert [source for source, _ in await set_aside(alive)] == [f"inbox storage {each}" for each in unreadable]
    assert await outcome_of(alive, "msg_a") == []


async def test_a_message_that_cannot_be_sent_makes_it_unhealthy_and_holds_up_nothing(open_inbox: OpenInbox) -> None:
    post, instance = Post(), open_inbox()
    post.fails = lambda message: RuntimeError("a bug") if message.envelope.id == "msg_0001" else None
    await handle(instance, None, said(1), said(2))

    await instance.start(post)  # type: ignore[arg-type]  # it only publishes

    await until(lambda: instance.trouble)
    assert post.published == ["msg_0002"]
    post.fails = lambda _message: None
    await until(lambda: post.published == ["msg_0002", "msg_0001"])
    await until(lambda: not instance.trouble)


async def test_a_stop_marks_what_is_published(open_inbox: OpenInbox) -> None:
    instance = open_inbox()
    await handle(instance, "msg_a", said(1))
    instance.mark_published("storage", "msg_a")

    await instance.stop()

    assert await waiting(instance) == 0


async def test_messages_that_come_together_are_handled_once_each(open_inbox: OpenInbox) -> None:
    instance = open_inbox()

    results = await asyncio.gather(
        *(handle(instance, f"msg_{number % 20}", said(number)) for number in range(40)), return_exceptions=True
    )

    assert Counter(isinstance(result, TemporaryFailure) for result in results) == {False: 20, True: 20}
    assert await handled(instance) == await waiting(instance) == 20


async def record(instance: SqlInbox, message_id: str, *outgoing: Outgoing) -> None:
    """Say something about a message that has no effect in the database: on SQLite, within a group."""
    async with instance.unit_of_work("storage") as unit:
        await unit.record({message_id: outgoing})


async def test_messages_without_a_session_that_come_together_are_recorded_once_each(open_inbox: OpenInbox) -> None:
    instance = open_inbox()

    results = await asyncio.gather(
        *(record(instance, f"msg_{number % 20}", said(number)) for number in range(40)), return_exceptions=True
    )

    assert Counter(isinstance(result, TemporaryFailure) for result in results) == {False: 20, True: 20}
    assert await waiting(instance) == 20


async def test_what_is_unpublished_is_found_without_a_look_at_the_rest(open_inbox: OpenInbox) -> None:
    instance, post = open_inbox(), Post()
    if not instance.database.is_sqlite:
        pytest.skip("PostgreSQL chooses by its statistics")
    row = {"consumer": "storage", "outcome": [], "handled_at": datetime.now(UTC), "published": True}
    async with instance.database.transaction() as session:
        rows = [row | {"message_id": f"msg_{number}"} for number in range(3000)]
        await session.execute(insert(inbox_tables.inbox), rows)
    await record(instance, "msg_a", said(1))

    async with statements(instance.database) as asked:
        await instance.relay(post)  # type: ignore[arg-type]  # it only publishes

    assert post.published == ["msg_0001"]
    assert work_of(instance.database, asked).amount < 1000


async def test_what_was_not_published_for_a_month_is_published_nevertheless(open_inbox: OpenInbox) -> None:
    post, dead, alive = Post(), open_inbox(), open_inbox()
    await record(dead, "msg_a", said(1))
    async with dead.database.transaction() as session:
        await session.execute(update(inbox_tables.inbox).values(handled_at=datetime.now(UTC) - 2 * KEPT))

    await alive.start(post)  # type: ignore[arg-type]  # it only publishes

    await until(lambda: post.published == ["msg_0001"])


def test_what_an_earlier_release_has_handled_counts_as_published(empty_database_of: DatabaseOf) -> None:
    """Its messages are in the outbox."""
    database = Database(empty_database_of("storage"), "storage")
    row = {"consumer": "storage", "message_id": "msg_a", "outcome": [], "handled_at": datetime.now(UTC)}

    def go_back(connection: Connection) -> None:
        connection.execute(text("DROP TABLE quarantine"))
        connection.execute(text("DROP INDEX ix_inbox_unpublished"))
        connection.execute(text("ALTER TABLE inbox DROP COLUMN published"))
        names = ("consumer", "message_id", "outcome", "handled_at")
        old = Table("inbox", MetaData(), *(Column(name, inbox_tables.inbox.c[name].type) for name in names))
        connection.execute(insert(old).values(row))

    seen: list[object] = []
    asyncio.run(upgrade(database, MIGRATIONS))
    database.run_on_admin_connection(go_back)
    asyncio.run(upgrade(database, MIGRATIONS))
    database.run_on_admin_connection(
        lambda connection: seen.extend(connection.execute(select(inbox_tables.inbox.c.published)).scalars())
    )

    assert seen == [True]


async def test_a_full_queue_holds_up_no_other(open_inbox: OpenInbox) -> None:
    post, instance, slow = Post(), open_inbox(), FullQueue(0)
    post.fails = slow.fails
    for number in (1, 2):
        await handle(instance, f"msg_{number}", slow.said(number))
    await handle(instance, "msg_3", said(3))
    await handle(instance, None, said(4), *(said(number) for number in range(5, 155)), slow.said(155))

    with pytest.raises(QueueUnavailable):
        await instance.relay(post)  # type: ignore[arg-type]  # it only publishes

    # One attempt shows that it is full.
    assert (len(post.published), slow.tried) == (152, ["msg_0001"])
    assert await waiting(instance) == 3
    slow.room = 999
    await instance.relay(post)  # type: ignore[arg-type]
    assert sorted(post.published[152:]) == ["msg_0001", "msg_0002", "msg_0155"]
    assert await waiting(instance) == 0


async def test_one_attempt_shows_that_a_place_confirms_nothing(open_inbox: OpenInbox) -> None:
    """Each would wait for its confirm as long as the first, with the rows of the others locked."""
    post, instance, away = Post(), open_inbox(), FullQueue(0, BusUnavailable("no confirm"))
    post.fails = away.fails
    await handle(instance, None, *(away.said(number) for number in range(9)), said(9))

    with pytest.raises(BusUnavailable, match="no confirm"):
        await instance.relay(post)  # type: ignore[arg-type]  # it only publishes
    assert (post.published, away.tried, await waiting(instance)) == (["msg_0009"], ["msg_0000"], 9)

    # Of an outcome, none is still under way when the round is given up.
    await handle(instance, "msg_a", away.said(10), *map(said, range(11, 20)))
    with pytest.raises(BusUnavailable, match="no confirm"):
        await instance.relay(post)  # type: ignore[arg-type]
    assert (len(post.published), away.tried) == (10, ["msg_0000", "msg_0010"])


async def test_hardly_more_are_under_way_to_a_queue_than_it_has_taken(open_inbox: OpenInbox) -> None:
    post, instance, slow = Post(), open_inbox(), FullQueue(5)
    post.fails = slow.fails
    await handle(instance, None, *(slow.said(number) for number in range(90)))

    with pytest.raises(QueueUnavailable):
        await instance.relay(post)  # type: ignore[arg-type]

    assert (len(post.published), len(slow.tried)) == (5, 7)
    slow.room = 999
    await instance.relay(post)  # type: ignore[arg-type]
    assert post.published == [f"msg_{number:04}" for number in range(90)]


async def test_more_than_a_batch_is_forgotten_and_emptied(open_inbox: OpenInbox) -> None:
    instance, inbox = open_inbox(), inbox_tables.inbox
    now = datetime.now(UTC)
    rows = [
        {
            "consumer": "storage",
            "message_id": f"msg_{number:05}",
            "outcome": [{"envelope": '{"user_id":"anna"}' if number % 2 else '{"user_id":"boris"}'}],
            "handled_at": now - (2 * KEPT if number < 6_000 else timedelta(0)),
            "published": True,
        }
        for number in range(12_000)
    ]
    async with instance.database.transaction() as session:
        await session.execute(insert(inbox), rows)

    async with instance.unit_of_work("storage"):
        await instance.forget("anna")

    async def still_told(name: str) -> int:
        told = select(func.count()).select_from(inbox).where(inbox.c.outcome.cast(Text).contains(name))
        async with instance.database.reading() as session:
            return await session.scalar(told) or 0

    assert (await still_told("anna"), await still_told("boris")) == (0, 6_000)
    await instance.start(Post())  # type: ignore[arg-type]  # it only publishes

    async def left() -> int:
        async with instance.database.reading() as session:
            return await session.scalar(select(func.count()).select_from(inbox)) or 0

    async def old_ones_are_gone() -> bool:
        return await left() == 6_000

    await until(old_ones_are_gone)
