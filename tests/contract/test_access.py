"""Who is admitted to each command: its owner, another person, an agent, a service, an operator, nobody."""

import json
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from bus_schema.access import ACCESS, PUBLISHERS, access_to, may_publish
from bus_schema.catalogue import commands, events
from bus_schema.delegation import may_act_for, targets_of
from bus_schema.envelope import CONTENT_TYPE
from bus_schema.history import ClearHistory, ShowHistory
from bus_schema.messages import Command, Event
from bus_schema.replies import Code
from bus_schema.storage import ArtifactRegistered
from mindbus.bus.decode import Unreadable, read_envelope
from mindbus.bus.handlers import on_event
from mindbus.bus.transport import Origin, Properties
from mindbus.bus.worker import Worker
from mindbus.registry import WorkerNameTaken, installed_workers
from mindbus.testing import deliver

GOLDEN = Path(__file__).parent / "golden"
ASKING = {
    "owner": "user.anna",
    "stranger": "user.boris",
    "agent": "agent.intruder.1",
    "service": "svc.intruder",
    "operator": "user.local",
    "anonymous": "",
}
_ALL = "owner stranger agent service operator"
_NAMED = "owner operator"
_OPERATORS = "operator"
_NOBODY = ""
# Of data about anna, or of the agent `researcher`; a handler that is for all checks each object's rights.
ADMITTED: Mapping[str, str] = {
    "context.review_desk": _OPERATORS,
    "data.clear": _OPERATORS,
    "data.delete_user": _OPERATORS,
    "dialogue.cancel": _NAMED,
    "dialogue.check_timeouts": _OPERATORS,
    "dialogue.deliver_notification": _OPERATORS,
    "dialogue.end": _NAMED,
    "dialogue.invoke": _NAMED,
    "dialogue.refresh": _ALL,
    "fact.find": _NAMED,
    "fact.learn": _NAMED,
    "fact.list": _NAMED,
    "glm.batch_store_kems": _ALL,
    "glm.check": _OPERATORS,
    "glm.delete_kem": _ALL,
    "glm.embed": _ALL,
    "glm.reindex": _OPERATORS,
    "glm.retrieve_kems": _ALL,
    "glm.stats": _ALL,
    "glm.store_kem": _ALL,
    "glm.update_kem": _ALL,
    "history.append": _OPERATORS,
    "history.append_many": _OPERATORS,
    "history.clear": _OPERATORS,
    "history.get": _OPERATORS,
    "history.list": _OPERATORS,
    "history.show": _OPERATORS,
    "kps.process_raw_data": _ALL,
    "lsm.apply_pack": _OPERATORS,
    "lsm.explain_episode": _ALL,
    "lsm.feedback": _ALL,
    "lsm.get_due": _OPERATORS,
    "lsm.get_episode": _ALL,
    "lsm.get_hot": _NAMED,
    "lsm.layer_history": _NAMED,
    "lsm.list_episodes": _NAMED,
    "lsm.record": _NAMED,
    "lsm.search": _NAMED,
    "lsm.set_anchor": _ALL,
    "lsm.stats": _OPERATORS,
    "lsm.tune": _OPERATORS,
    "lsm.unpack": _ALL,
    "packer.pack": _OPERATORS,
    "packer.run": _OPERATORS,
    "process.approve": _ALL,
    "process.cancel": _ALL,
    "process.execute_step": _OPERATORS,
    "process.get": _ALL,
    "process.get_costs": _ALL,
    "process.get_graph": _ALL,
    "process.list": _ALL,
    "process.list_cards": _ALL,
    "process.pause": _ALL,
    "process.replace_output": _ALL,
    "process.reject": _ALL,
    "process.rerun": _ALL,
    "process.resume": _ALL,
    "process.retry": _ALL,
    "process.start": _ALL,
    "sim.start": _OPERATORS,
    "sim.status": _OPERATORS,
    "sim.stop": _OPERATORS,
    "storage.audit": _OPERATORS,
    "storage.collect_garbage": _OPERATORS,
    "storage.get_agent_data": _OPERATORS,
    "storage.get_all_active_dialogues": _OPERATORS,
    "storage.get_artifact": _ALL,
    "storage.get_artifacts": _ALL,
    "storage.get_dialogue_fragment": _OPERATORS,
    "storage.get_lineage": _ALL,
    "storage.get_message": _NAMED,
    "storage.get_messages": _NAMED,
    "storage.get_timeline": _NAMED,
    "storage.get_timeline_buckets": _NAMED,
    "storage.get_user": _ALL,
    "storage.get_versions": _ALL,
    "storage.list_dialogues": _NAMED,
    "storage.list_facts": _OPERATORS,
    "storage.list_tasks": _OPERATORS,
    "storage.list_users": _ALL,
    "storage.open_claim": _ALL,
    "storage.put_agent_data": _OPERATORS,
    "storage.put_user": _OPERATORS,
    "storage.rate_answer": "owner",
    "storage.rebuild": _OPERATORS,
    "storage.get_tokens_today": _ALL,
    "storage.record_model_call": _ALL,
    "storage.register_artifact": _ALL,
    "storage.register_artifacts": _ALL,
    "storage.request_claim": _ALL,
    "storage.request_upload": _ALL,
    "storage.save_dialogue_fragment": _OPERATORS,
    "storage.save_events": _NOBODY,
    "storage.save_facts": _OPERATORS,
    "storage.save_message": _NOBODY,
    "storage.save_messages": _NOBODY,
    "storage.save_tasks": _OPERATORS,
    "storage.search_artifacts": _ALL,
    "storage.set_trace_members": _OPERATORS,
    "storage.settle_reminders": _OPERATORS,
    "storage.stats": _OPERATORS,
    "subagent.cancel_task": _NAMED,
    "subagent.execute_task": _NAMED,
    "swm.acquire_lock": _ALL,
    "swm.drop_kem": _ALL,
    "swm.get_counter": _ALL,
    "swm.get_lock_info": _ALL,
    "swm.increment_counter": _ALL,
    "swm.load_kems_from_glm": _ALL,
    "swm.publish_kem": _ALL,
    "swm.publish_kems": _ALL,
    "swm.query": _ALL,
    "swm.release_lock": _ALL,
    "swm.renew_lock": _ALL,
    "swm.subscribe": _ALL,
    "swm.unsubscribe": _ALL,
    "task.add": _NAMED,
    "task.cancel": _NAMED,
    "task.complete": _NAMED,
    "task.get": _NAMED,
    "task.list": _NAMED,
    "task.update": _NAMED,
}


# Without a user these are about whoever asks: their workers see to it.
OF_THE_ASKER = {"fact.list", "task.cancel", "task.complete", "task.get", "task.list", "task.update"}
BY_NAME = {".".join(command.wire.type.split(".")[2:4]): command for command in commands()}


def admits(command: type[Command[Any]], identity: str, about: str | None = "anna") -> bool:
    """Whether a command about a person, or about the agent researcher, is admitted from an identity."""
    fields: dict[str, Any] = {"user_id": about, "chat_id": about, "agent": "researcher"}
    message = command.model_construct(**fields)
    return access_to(command).admits(message, identity, {"local"}, ())


def test_every_command_has_an_entry_and_every_entry_a_command() -> None:
    assert set(ACCESS) == set(BY_NAME)
    assert set(ADMITTED) == set(BY_NAME)


@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("name", ADMITTED)
def test_a_command_is_for_whom_the_table_says(name: str, asking: str) -> None:
    assert admits(BY_NAME[name], ASKING[asking]) == (asking in ADMITTED[name].split())


class Unsigned(SimpleNamespace):
    """A delivery that the broker names no user of."""

    origin = Origin("")
    headers: Mapping[str, Any] = MappingProxyType({})


@pytest.mark.parametrize("name", ADMITTED)
def test_whom_the_broker_does_not_name_is_refused_whatever_the_command(name: str) -> None:
    golden = GOLDEN / f"{BY_NAME[name].wire.type}.json"
    envelope = json.loads(golden.read_text(encoding="utf-8"))

    with pytest.raises(Unreadable, match="user_id is missing") as refused:
        read_envelope(_delivery(envelope))
    with pytest.raises(Unreadable, match="mbrequester"):
        read_envelope(_delivery(envelope | {"mbrequester": ""}))
    assert refused.value.code is Code.UNAUTHORIZED


def _delivery(envelope: Mapping[str, Any]) -> Any:
    properties = Properties(content_type=CONTENT_TYPE)
    return Unsigned(body=json.dumps(envelope).encode(), properties=properties)


@pytest.mark.parametrize("name", ADMITTED)
def test_the_workers_of_an_entry_are_admitted_and_people_of_their_names_are_not(name: str) -> None:
    for worker in ACCESS[name].workers:
        for identity in (f"svc.{worker}", f"agent.{worker}", f"agent.{worker}.7"):
            assert admits(BY_NAME[name], identity)
        assert admits(BY_NAME[name], f"user.{worker}") == ("stranger" in ADMITTED[name].split())


def test_the_workers_of_the_table_are_those_of_the_fleet() -> None:
    named = {worker for access in ACCESS.values() for worker in access.workers}

    assert named <= {point.name for point in entry_points(group="mindbus.workers")}


def test_a_reader_may_ask_what_workers_may_and_change_nothing() -> None:
    for reader, message, may in (
        ("auditor", ShowHistory(key="chat_history:anna"), True),
        ("auditor", ClearHistory(key="chat_history:anna"), False),
        ("other", ShowHistory(key="chat_history:anna"), False),
    ):
        assert access_to(type(message)).admits(message, f"svc.{reader}", (), {"auditor"}) == may


@pytest.mark.parametrize(
    "name", [name for name, access in ACCESS.items() if BY_NAME[name].model_fields.get(access.owner) is not None]
)
def test_what_names_nobody_is_about_everybody_unless_it_means_the_asker(name: str) -> None:
    assert admits(BY_NAME[name], "user.anna", about=None) == (name in OF_THE_ASKER)


def _step(started_by: str) -> object:
    return SimpleNamespace(started_by=started_by)


_ADDRESSED = [
    each for each in commands() if each.wire.service is not None and each.__module__.startswith("bus_schema.")
]


@pytest.mark.parametrize("command", _ADDRESSED, ids=lambda command: command.wire.type)
def test_whom_the_table_lets_command_a_service_may_write_to_it(command: type[Command[Any]]) -> None:
    access = access_to(command)
    senders = {*access.workers, "gateway", *(["anybody"] if access.everybody or access.namesake else [])}

    for sender in senders:
        assert {command.wire.service, "*"} & targets_of(sender), sender


def test_a_worker_that_the_table_does_not_name_may_write_to_those_alone_who_serve_everybody() -> None:
    assert targets_of("counter") == {"counter", "dialogue", "glm", "kps", "lsm", "orchestrator", "storage", "swm"}
    assert "context" not in targets_of("auditor")
    assert {"context_manager", "task_manager", "history"} <= targets_of("auditor", readers=["auditor"])


@pytest.mark.parametrize(
    ("service", "identity", "at_hand", "requester", "may"),
    [
        ("gateway", "user.anna", None, None, True),
        ("gateway", "svc.storage", None, None, False),
        ("critic", "agent.critic.2", None, None, True),
        ("critic", "user.anna", _step("user.anna"), "svc.orchestrator", True),
        ("critic", "user.boris", _step("user.anna"), "svc.orchestrator", False),
        ("kps", "user.anna", None, "user.anna", True),
        ("kps", "user.boris", None, "user.anna", False),
        ("glm", "agent.scout", None, None, True),
        ("storage", "user.anna", None, "user.anna", False),
        ("cli", "user.anna", None, None, True),
    ],
)
def test_a_service_acts_for_whom_the_list_names(
    service: str, identity: str, at_hand: object, requester: str | None, may: bool
) -> None:
    assert may_act_for(service, identity, at_hand, requester) is may


@pytest.mark.parametrize("name", ["storage", "gateway", "mindbus", "viewer", "cli"])
def test_a_worker_of_ones_own_has_the_name_of_no_other_user_of_the_private_node(name: str) -> None:
    with pytest.raises(WorkerNameTaken, match=name):
        installed_workers().require_free(name, "mine:Mine")

    installed_workers().require_free("counter", "mine:Mine")


# Events that whoever has a worker of their own may publish.
OPEN = {
    *(
        "fleet.agent_activity_started",
        "fleet.agent_result",
        "fleet.heartbeat",
        "fleet.metrics",
        "notification.generated",
    ),
    *("process.model_misbehaved", "process.step_begun", "process.step_completed", "process.step_failed"),
    *("process.step_pending_storage", "process.step_progress"),
    *("processed.context_updated", "processed.mood_assessed", "processed.tasks_found"),
}
SENDERS = {name.removesuffix("-") for names in PUBLISHERS.values() for name in names}


def event_name(event: type[Event]) -> str:
    return ".".join(event.wire.type.split(".")[2:4])


@pytest.mark.parametrize("event", events(), ids=event_name)
def test_an_event_of_one_service_is_published_by_no_other(event: type[Event]) -> None:
    name = event_name(event)
    allowed = {sender for sender in SENDERS if may_publish(event.wire.type, f"svc.{sender}")}

    assert may_publish(event.wire.type, "agent.intruder.1") == (name in OPEN)
    assert may_publish(event.wire.type, "svc.intruder") == (name in OPEN)
    assert (allowed == SENDERS) == (name in OPEN)
    assert allowed


@pytest.mark.parametrize("sender", ["agent.intruder.1", "svc.intruder", "agent.subagent-x.1"])
async def test_an_event_of_another_reaches_no_handler(sender: str) -> None:
    golden = json.loads((GOLDEN / "mb.evt.artifact.registered.v1.json").read_text())
    event = ArtifactRegistered.model_validate(golden["data"])
    heard: list[ArtifactRegistered] = []

    class Listener(Worker):
        name = "listener"

        @on_event
        async def hear(self, event: ArtifactRegistered) -> None:
            heard.append(event)

    await deliver(Listener(), event, by=sender)
    assert not heard

    await deliver(Listener(), event, by="svc.storage")
    assert heard == [event]
