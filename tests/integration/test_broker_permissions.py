"""Permissions on a real broker: who may publish, consume, bind and declare what; all that the template leaves out."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import AMQPError
from yarl import URL

from bus_schema.delegation import client_identity
from bus_schema.replies import Code
from bus_schema.storage import GetArtifact
from bus_schema.uploads import FoundManifest
from config.settings import FleetSettings
from mindbus import MessageContext, Rejected, Worker, connect, on_command
from mindbus.bus.deadletters import DeadLetters
from mindbus.bus.decode import ATTEMPT, ORIGIN
from mindbus.bus.permissions import definitions_of, instance_mark
from mindbus.bus.transport import USER
from mindbus.errors import NotPermitted, SubscriptionRefused, TopologyMissing
from mindbus.testing.wait import until
from mindbus_fleet.node.private import PrivateNode
from tests.command_line import Shell
from tests.fleets import fleet_of
from tests.greetings import Greet, Greeter, Greeting
from tests.private_users import RUNGS, admin_of, private_node, settings_of, template_for
from tests.raw_amqp import an_envelope, properties_for

WORKERS = ("critic", "dialogue", "storage", "swm", "tracker", "gateway", "counter", "subagent-analytic")
CLIENTS = ("user.anna", "agent.scout", "operator.olga")
OPERATORS = {"gateway", "operator.olga"}
USERS = (*WORKERS, *CLIENTS)
EVERYBODY, NOBODY = frozenset(USERS), frozenset[str]()

Attempt = Callable[[AbstractChannel, str], Awaitable[object]]


class Nobody(Worker):
    """A worker for which nothing has been made."""

    name = "nobody"

    def __init__(self, _context: object) -> None:
        """Needs nothing."""

    @on_command
    async def greet(self, command: Greet) -> Greeting:
        return Greeting(text=command.name)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateNode]:
    with private_node(tmp_path_factory.mktemp("node"), ("greeter", *USERS)) as node:
        yield node


@pytest.fixture
def settings(node: PrivateNode, tmp_path: Path) -> FleetSettings:
    return settings_of(node, tmp_path)


def publish(exchange: str, key: str = "cmd.greeter.greet") -> Attempt:
    """An attempt to publish; `{user}` is whoever tries."""

    async def attempt(channel: AbstractChannel, user: str) -> None:
        message = aio_pika.Message(b"{}", user_id=user)
        target = await channel.get_exchange(exchange.format(user=user), ensure=False)
        await target.publish(message, key.format(user=user), mandatory=False, timeout=60)

    return attempt


async def publish_to_the_default_exchange(channel: AbstractChannel, user: str) -> None:
    await channel.default_exchange.publish(aio_pika.Message(b"{}", user_id=user), "mb.q.greeter", timeout=60)


async def publish_under_the_name_of_another(channel: AbstractChannel, user: str) -> None:
    target = await channel.get_exchange("mb.cmd.storage", ensure=False)
    await target.publish(aio_pika.Message(b"{}", user_id="greeter"), "cmd.storage.get_artifact", timeout=60)


def consume(queue: str) -> Attempt:
    async def attempt(channel: AbstractChannel, user: str) -> None:
        found = await channel.get_queue(queue.format(user=user), ensure=False)
        await found.cancel(await found.consume(_ignore))

    return attempt


def take(queue: str) -> Attempt:
    async def attempt(channel: AbstractChannel, user: str) -> None:
        found = await channel.get_queue(queue, ensure=False)
        await found.get(fail=False, no_ack=False)

    return attempt


def declare_queue(name: str) -> Attempt:
    return lambda channel, user: channel.declare_queue(_of(name, user), exclusive=True)


def declare_exchange(name: str) -> Attempt:
    return lambda channel, user: channel.declare_exchange(_of(name, user), "topic", durable=True)


def delete(queue: str) -> Attempt:
    return lambda channel, user: channel.queue_delete(queue)


def purge(queue: str) -> Attempt:
    async def attempt(channel: AbstractChannel, user: str) -> None:
        await (await channel.get_queue(queue, ensure=False)).purge()

    return attempt


def bind(exchange: str, key: str, queue: str = "mb.tap.{me}x") -> Attempt:
    """An attempt to bind a queue of one's own."""

    async def attempt(channel: AbstractChannel, user: str) -> None:
        own = await channel.declare_queue(_of(queue, user), exclusive=True)
        await own.bind(exchange, _of(key, user))

    return attempt


async def bind_a_queue_of_another(channel: AbstractChannel, user: str) -> None:
    await (await channel.get_queue("mb.q.greeter", ensure=False)).bind("mb.reply", f"reply.{_me(user)}1")


async def _ignore(_message: object) -> None:
    """Take it and say nothing."""


def _me(user: str) -> str:
    """Beginning of the names of a participant's own queues."""
    return f"client.{instance_mark(user)}" if "." in user else f"{user}."


def _of(name: str, user: str) -> str:
    return name.format(user=user, me=_me(user))


ROWS: dict[str, tuple[Attempt, Collection[str]]] = {
    "own events": (publish("mb.evt.{user}"), frozenset(WORKERS)),
    "another's events": (publish("mb.evt.greeter"), NOBODY),
    "all events": (publish("mb.evt"), NOBODY),
    "a command to storage, which serves everybody": (publish("mb.cmd.storage"), EVERYBODY),
    "a command to the tracker, which serves nobody": (publish("mb.cmd.tracker"), {"tracker", *OPERATORS}),
    "a command to a worker that it does not name": (publish("mb.cmd.greeter"), OPERATORS),
    "a command to a sub-agent": (
        publish("mb.cmd.subagent-analytic"),
        {"dialogue", "subagent-analytic", "user.anna", *OPERATORS},
    ),
    "a reply": (publish("mb.reply", "reply.greeter.1"), frozenset(WORKERS)),
    "a notification to a subscriber": (publish("mb.sub", "sub_1"), {"swm"}),
    "own retry": (publish("mb.delay.50ms", "mb.q.{user}"), frozenset(WORKERS)),
    "a retry of own events": (publish("mb.delay.50ms", "mb.q.{user}.events"), frozenset(WORKERS)),
    "another's retry": (publish("mb.delay.50ms", "mb.q.greeter"), NOBODY),
    "a retry past the ladder": (publish("mb.requeue", "mb.q.{user}"), NOBODY),
    "another's retry past the ladder": (publish("mb.requeue", "mb.q.greeter"), NOBODY),
    "own dead letter": (publish("mb.deadletter", "{user}"), frozenset(WORKERS)),
    "another's dead letter": (publish("mb.deadletter", "greeter"), NOBODY),
    "a dead letter as of the broker": (publish("mb.dead", "greeter"), NOBODY),
    "what nobody takes": (publish("mb.unrouted"), NOBODY),
    "to a queue by its name": (publish_to_the_default_exchange, NOBODY),
    "as somebody else": (publish_under_the_name_of_another, NOBODY),
    "consume own commands": (consume("mb.q.{user}"), frozenset(WORKERS)),
    "consume own events": (consume("mb.q.{user}.events"), frozenset(WORKERS)),
    "consume another's commands": (consume("mb.q.greeter"), NOBODY),
    "consume another's events": (consume("mb.q.greeter.events"), NOBODY),
    "consume another's dead letters": (consume("mb.q.greeter.dead"), NOBODY),
    "consume another's replies": (consume("mb.reply.greeter.1"), NOBODY),
    "consume the ladder": (consume("mb.retry.50ms"), NOBODY),
    "consume what was lost": (consume("mb.q.lost.dead"), NOBODY),
    "consume another's subscription": (consume("mb.sub.sub_1"), {"swm"}),
    "take one from another's queue": (take("mb.q.greeter"), NOBODY),
    "purge another's queue": (purge("mb.q.greeter"), NOBODY),
    "delete another's queue": (delete("mb.q.greeter"), NOBODY),
    "delete own queue of work": (delete("mb.q.critic"), NOBODY),
    "declare own reply queue": (declare_queue("mb.reply.{me}1"), EVERYBODY),
    "declare another's reply queue": (declare_queue("mb.reply.greeter.2"), NOBODY),
    "declare a queue of work": (declare_queue("mb.q.new"), NOBODY),
    "declare any queue": (declare_queue("stash"), NOBODY),
    "declare an exchange": (declare_exchange("mb.cmd.new"), NOBODY),
    "declare its own events anew": (declare_exchange("mb.evt.{user}"), NOBODY),
    "bind own replies": (bind("mb.reply", "reply.{me}1", "mb.reply.{me}3"), EVERYBODY),
    "bind another's replies": (bind("mb.reply", "reply.greeter.1", "mb.reply.{me}3"), NOBODY),
    "bind all replies": (bind("mb.reply", "#", "mb.reply.{me}3"), NOBODY),
    "bind heartbeats": (bind("mb.evt", "evt.fleet.heartbeat"), EVERYBODY),
    "bind all": (bind("mb.evt", "#"), NOBODY),
    "bind all events": (bind("mb.evt", "evt.#"), OPERATORS),
    "bind another's dialogues": (bind("mb.evt", "evt.dialogue.*"), OPERATORS),
    "bind one's own to commands": (bind("mb.cmd.greeter", "#"), NOBODY),
    "bind one's own to returns": (bind("mb.requeue", "mb.q.greeter"), NOBODY),
    "bind another's queue": (bind_a_queue_of_another, NOBODY),
}


@pytest.mark.parametrize("user", USERS)
async def test_the_broker_lets_a_user_do_what_the_template_says_and_nothing_else(node: PrivateNode, user: str) -> None:
    found = {}
    async with await aio_pika.connect(node.amqp_url) as connection, connection.channel() as channel:
        for queue in ("mb.reply.greeter.1", "mb.sub.sub_1"):
            await channel.declare_queue(queue, durable=True)
        async with await aio_pika.connect(node.worker_urls[user]) as theirs:
            for name, (attempt, _users) in ROWS.items():
                found[name] = await _is_allowed(theirs, attempt, user)

    assert found == {name: user in users for name, (_attempt, users) in ROWS.items()}


async def _is_allowed(connection: aio_pika.abc.AbstractConnection, attempt: Attempt, user: str) -> bool:
    channel = await connection.channel(on_return_raises=False)
    try:
        await attempt(channel, user)
    except (AMQPError, asyncio.CancelledError):
        return False
    finally:
        if not channel.is_closed:
            await channel.close()
    return True


async def test_a_login_that_may_not_hear_events_is_told_so(node: PrivateNode, settings: FleetSettings) -> None:
    own = settings.model_copy(update={"amqp_url": node.worker_urls["user.anna"]})
    async with connect("user.anna", settings=own) as bus:
        with pytest.raises(SubscriptionRefused, match="operators all"):
            async with bus.subscribe("process.*"):
                pass
        async with bus.subscribe("kem.*"):
            pass


LADDER, COMMANDS = "mb.delay.50ms mb.q.{user}", "mb.cmd.storage cmd.storage.get_artifact"
RETURNED = {ATTEMPT: 2, ORIGIN: "mb.q.greeter", USER: "storage"}
NOT_SENT = "a retried copy that this queue has not sent"
# By: the way, headers, changes of the envelope, the receiver, the reason in its dead letter, for whom it is no forgery.
FORGERIES: dict[str, tuple[str, dict[str, Any], dict[str, str], str, str, Collection[str]]] = {
    "CC of an own retry": (LADDER, {"CC": ["mb.q.greeter"], **RETURNED}, {}, "greeter", NOT_SENT, NOBODY),
    "BCC of an own retry": (LADDER, {"BCC": ["mb.q.greeter"], **RETURNED}, {}, "greeter", NOT_SENT, NOBODY),
    "CC of a command": (COMMANDS, {"CC": ["cmd.storage.audit"]}, {}, "storage", "does not come by", NOBODY),
    "BCC of a command": (
        *("mb.cmd.storage cmd.storage.audit", {"BCC": ["cmd.storage.get_artifact"]}, {}),
        *("storage", "does not come by cmd.storage.audit", NOBODY),
    ),
    # Shared memory asks in the name of whoever asks it.
    "foreign mbrequester": (COMMANDS, {}, {"mbrequester": "svc.greeter"}, "storage", "may not speak for", {"swm"}),
    "foreign mbonbehalfof": (
        *(COMMANDS, {}, {"mbonbehalfof": "agent.editor"}, "storage", "may not speak for agent.editor", {"swm"}),
    ),
    "foreign source": (COMMANDS, {}, {"source": "/mb/greeter/1"}, "storage", "as the service greeter", NOBODY),
    "foreign mbreplyto": (COMMANDS, {}, {"mbreplyto": "reply.greeter.1"}, "storage", "may not have", NOBODY),
}


class Store(Worker):
    """Takes what everybody may ask of storage, and says who has asked."""

    name = "storage"

    def __init__(self, _context: object) -> None:
        self.asked: list[str] = []

    @on_command
    async def get(self, query: GetArtifact, context: MessageContext) -> FoundManifest:
        self.asked.append(context.envelope.id)
        raise Rejected(message=f"{query.artifact_id} is not here")


async def test_what_the_broker_cannot_refuse_the_receiver_drops_and_says_so(
    node: PrivateNode, settings: FleetSettings
) -> None:
    forged: dict[str, tuple[str, str]] = {}
    allowed: list[str] = []
    async with fleet_of(Greeter, Store, settings=settings) as fleet:
        for user in USERS:
            async with await aio_pika.connect(node.worker_urls[user]) as theirs:
                for case, (way, _headers, _changes, receiver, reason, unforged) in FORGERIES.items():
                    is_taken, message_id = await _forge(theirs, user, case)
                    assert is_taken == (user in WORKERS or way != LADDER), (user, case)
                    if user in unforged:
                        allowed.append(message_id)
                    elif is_taken:
                        forged[message_id] = (receiver, reason)
        await until(lambda: _are_dead(node, forged))

        assert fleet[Store].asked == allowed
        assert fleet[Greeter].greeted == []


async def _forge(connection: aio_pika.abc.AbstractConnection, user: str, case: str) -> tuple[bool, str]:
    """Whether the broker takes a forgery, and the id of its message."""
    way, headers, changes, receiver, _reason, _unforged = FORGERIES[case]
    identity = client_identity(user)
    own = {"source": f"/mb/{'client' if identity else user}/1", "mbrequester": identity or f"svc.{user}"}
    is_query = receiver == "storage"
    data = {"artifact_id": "art_none"} if is_query else {"name": "raw"}
    wire_type = "mb.cmd.storage.get_artifact.v1" if is_query else "mb.cmd.greeter.greet.v1"
    envelope = an_envelope(wire_type, data, **own | changes)
    message = aio_pika.Message(json.dumps(envelope).encode(), headers=headers, user_id=user, **properties_for(envelope))
    exchange, key = way.format(user=user).split()

    async def attempt(channel: AbstractChannel, _user: str) -> None:
        await (await channel.get_exchange(exchange, ensure=False)).publish(message, key, timeout=60)

    return await _is_allowed(connection, attempt, user), envelope["id"]


async def _are_dead(node: PrivateNode, forged: Mapping[str, tuple[str, str]]) -> bool:
    """Whether each forgery is a dead letter of its receiver that tells the reason."""
    dead = DeadLetters(node.amqp_url)
    letters = [letter for receiver in ("greeter", "storage") for letter in await dead.look(receiver, limit=500)]
    reasons = {(letter.message_id, letter.service): letter.reason for letter in letters}
    return all(reason in reasons.get((message_id, to), "") for message_id, (to, reason) in forged.items())


async def test_a_refused_message_says_so_at_once_and_leaves_the_others_alone(
    node: PrivateNode, settings: FleetSettings
) -> None:
    theirs = settings.model_copy(update={"amqp_url": node.worker_urls["critic"]})
    async with connect("agent.critic", settings=theirs, service="critic") as bus:
        refused = [bus.send(Greet(name="Ann")) for _ in range(5)]
        allowed = [bus.send(GetArtifact(artifact_id="art_none")) for _ in range(20)]
        ends = await asyncio.gather(*refused, *allowed, return_exceptions=True)

    assert [type(end) for end in ends] == [NotPermitted] * 5 + [str] * 20
    assert ends[0].code is Code.UNAUTHORIZED  # type: ignore[union-attr]  # an error, as the line above says
    assert "mb.cmd.greeter" in str(ends[0])


async def test_a_worker_whose_queues_have_not_been_made_says_who_makes_them(
    node: PrivateNode, settings: FleetSettings
) -> None:
    # As on a RabbitMQ of one's own, where an administrator has made the user alone.
    theirs = settings.model_copy(update={"amqp_url": node.worker_urls["critic"].replace("critic", "nobody")})
    password = URL(theirs.amqp_url or "").password
    await admin_of(node).import_definitions({"users": [{"name": "nobody", "password": password, "tags": ""}]})
    await admin_of(node).import_definitions(definitions_of("nobody", template_for("nobody")))

    with pytest.raises(TopologyMissing, match="mindbus topology apply --worker"):
        async with fleet_of(Nobody, settings=theirs):
            pass


ERRAND = """
from bus_schema.messages import Query
from mindbus import Worker, on_command
from pydantic import BaseModel

class Said(BaseModel):
    text: str

class Run(Query[Said], domain="errand", action="run"):
    pass

class Errand(Worker):
    name = "errand"
    sends_to = ("greeter",)

    @on_command
    async def run(self, query: Run) -> Said:
        return Said(text="done")
"""


async def test_an_administrator_makes_a_worker_its_user_and_its_queues(
    node: PrivateNode, settings: FleetSettings, tmp_path: Path
) -> None:
    (tmp_path / "errand.py").write_text(ERRAND)
    address = node.address
    variables = {
        "MINDBUS_AMQP_URL": node.amqp_url,
        "MINDBUS_MANAGEMENT_URL": address.management_url,
        "MINDBUS_RETRY_RUNGS": RUNGS,
    }
    shell = Shell(tmp_path / "data", [tmp_path], variables)
    apply = ("topology", "apply", "--worker", "errand:Errand")

    made = await asyncio.to_thread(lambda: shell.json(*apply, spawned=True))
    again = await asyncio.to_thread(lambda: shell.json(*apply, spawned=True))

    assert again == {"users": {"errand": None}}
    own = Path(made["users"]["errand"])
    async with await aio_pika.connect(await asyncio.to_thread(own.read_text)) as theirs:
        allowed = {name for name, (attempt, _) in ROWS.items() if await _is_allowed(theirs, attempt, "errand")}
    counters = {name for name, (_, users) in ROWS.items() if "counter" in users}
    # It listens to no events, and says whom it commands.
    assert allowed == counters - {"consume own events"} | {"a command to a worker that it does not name"}


async def test_exported_definitions_hold_the_users_that_a_broker_needs(node: PrivateNode, tmp_path: Path) -> None:
    shell = Shell(tmp_path / "data", settings={"MINDBUS_AMQP_URL": node.amqp_url})
    file, passwords = tmp_path / "definitions.json", tmp_path / "passwords"

    await asyncio.to_thread(
        lambda: shell.ok("topology", "export", "-o", str(file), "--passwords", str(passwords), spawned=True)
    )
    await admin_of(node).import_definitions(json.loads(file.read_text()))

    assert {user.name for user in passwords.iterdir()} >= {"storage", "gateway", "dialogue", "critic", "history"}
    async with await aio_pika.connect((passwords / "history").read_text()) as theirs:
        assert await _is_allowed(theirs, consume("mb.q.history"), "history")
        assert not await _is_allowed(theirs, consume("mb.q.dialogue"), "history")
    assert "password" not in {key for user in json.loads(file.read_text())["users"] for key in user}
