"""Access to the messages of MindBus: the one table of who may send which command, and about whose data; events."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from bus_schema.identities import user_of, worker_of
from bus_schema.messages import Command, Query


@dataclass(frozen=True, slots=True)
class Access:
    """Rule of who may send a command.

    `workers`: these services and agents. `owner`: the person whose id is in this field; with `means_asker` also
    whoever leaves it empty, since its service takes it for their own. `namesake`: the worker whose name is in this
    field. `everybody`: whoever has an identity; its service checks their rights for each object, by what `checked`
    says. `operators`: whether operators may.
    """

    workers: tuple[str, ...] = ()
    owner: str = ""
    means_asker: bool = False
    namesake: str = ""
    everybody: bool = False
    checked: str = "everybody, each for what they may see"
    operators: bool = True

    def admits(self, command: Command, identity: str, operators: Collection[str], readers: Collection[str]) -> bool:  # type: ignore[type-arg]  # of any result
        """Whether an identity may send this command.

        `operators` are ids of people; `readers` are names of workers that may ask what the fleet's own may.
        """
        person, worker = user_of(identity), worker_of(identity)
        if person is None and worker is None:
            return False
        if self.everybody or (person in operators and self.operators):
            return True
        if worker is not None:
            is_reader = bool(self.workers) and isinstance(command, Query) and worker in readers
            return (
                worker in self.workers
                or is_reader
                or (bool(self.namesake) and getattr(command, self.namesake) == worker)
            )
        if not self.owner:
            return False
        owner = getattr(command, self.owner)
        return owner == person if owner is not None else self.means_asker

    @property
    def told(self) -> str:
        """Words for it, as in the table of the docs."""
        who = [
            *([self.checked] if self.everybody else []),
            *([f"the person in `{self.owner}`"] if self.owner else []),
            *([f"the worker in `{self.namesake}`"] if self.namesake else []),
            *(f"`{worker}`" for worker in self.workers),
            *(["operators"] if self.operators and not self.everybody else []),
        ]
        return ", ".join(who)


_EVERYBODY = Access(everybody=True)
_OPERATORS = Access()
_LISTENERS = ("task_manager", "context_manager", "mood_watcher")
_OF_USER = Access(("dialogue", "context", "sim"), "user_id")
_OF_USER_OR_ASKER = Access(("dialogue", "context", "sim"), "user_id", means_asker=True)
_OF_CHAT = Access(("dialogue", "packer"), "chat_id")
_PACKER = Access(("packer",))
_TASKS, _FACTS = Access(("task_manager",)), Access(("context_manager",))

# By the wire type without `mb.cmd.` and version.
ACCESS: Mapping[str, Access] = {
    "context.review_desk": Access(("context",)),
    "data.clear": _OPERATORS,
    "data.delete_user": _OPERATORS,
    "dialogue.cancel": _OF_USER,
    "dialogue.check_timeouts": Access(("dialogue",)),
    "dialogue.deliver_notification": Access(("context",)),
    "dialogue.end": _OF_USER,
    "dialogue.invoke": _OF_USER,
    "dialogue.refresh": _EVERYBODY,
    "fact.find": _OF_USER,
    "fact.learn": _OF_USER,
    "fact.list": _OF_USER_OR_ASKER,
    "glm.batch_store_kems": _EVERYBODY,
    "glm.check": _OPERATORS,
    "glm.delete_kem": _EVERYBODY,
    "glm.embed": _EVERYBODY,
    "glm.reindex": _OPERATORS,
    "glm.retrieve_kems": _EVERYBODY,
    "glm.stats": _EVERYBODY,
    "glm.store_kem": _EVERYBODY,
    "glm.update_kem": _EVERYBODY,
    "history.append": Access(("dialogue",)),
    "history.append_many": Access(("dialogue",)),
    "history.clear": Access(("dialogue",)),
    "history.get": Access(("dialogue",)),
    "history.list": Access(("dialogue",)),
    "history.show": Access(("dialogue",)),
    "kps.process_raw_data": _EVERYBODY,
    "lsm.apply_pack": _PACKER,
    "lsm.explain_episode": _EVERYBODY,
    "lsm.feedback": _EVERYBODY,
    "lsm.get_due": _PACKER,
    "lsm.get_episode": _EVERYBODY,
    "lsm.get_hot": _OF_CHAT,
    "lsm.layer_history": _OF_CHAT,
    "lsm.list_episodes": _OF_CHAT,
    "lsm.record": _OF_CHAT,
    "lsm.search": _OF_CHAT,
    "lsm.set_anchor": _EVERYBODY,
    "lsm.stats": _OPERATORS,
    "lsm.tune": _OPERATORS,
    "lsm.unpack": _EVERYBODY,
    "packer.pack": _PACKER,
    "packer.run": _PACKER,
    "process.approve": _EVERYBODY,
    "process.cancel": _EVERYBODY,
    "process.execute_step": Access(("orchestrator",)),
    "process.get": _EVERYBODY,
    "process.get_costs": _EVERYBODY,
    "process.get_graph": _EVERYBODY,
    "process.list": _EVERYBODY,
    "process.list_cards": _EVERYBODY,
    "process.pause": _EVERYBODY,
    "process.replace_output": _EVERYBODY,
    "process.reject": _EVERYBODY,
    "process.rerun": _EVERYBODY,
    "process.resume": _EVERYBODY,
    "process.retry": _EVERYBODY,
    "process.start": _EVERYBODY,
    "sim.start": _OPERATORS,
    "sim.status": Access(("context", *_LISTENERS)),
    "sim.stop": _OPERATORS,
    "storage.audit": _OPERATORS,
    "storage.collect_garbage": _OPERATORS,
    "storage.get_agent_data": Access(("dialogue", "context", "sim"), namesake="agent"),
    "storage.get_all_active_dialogues": Access(("dialogue", "sim")),
    "storage.get_artifact": _EVERYBODY,
    "storage.get_artifacts": _EVERYBODY,
    "storage.get_dialogue_fragment": Access(("dialogue", *_LISTENERS)),
    "storage.get_lineage": _EVERYBODY,
    "storage.get_message": Access(("dialogue", "context", "lsm", "sim", "kps", "glm", "swm"), "user_id"),
    "storage.get_messages": Access(("dialogue", "context", "lsm", "sim"), "user_id"),
    "storage.get_timeline": Access(("sim",), "user_id"),
    "storage.get_timeline_buckets": Access((), "user_id"),
    "storage.get_user": _EVERYBODY,
    "storage.get_versions": _EVERYBODY,
    "storage.list_dialogues": Access(("dialogue", "lsm"), "user_id"),
    "storage.list_facts": _FACTS,
    "storage.list_tasks": _TASKS,
    "storage.list_users": _EVERYBODY,
    "storage.open_claim": _EVERYBODY,
    "storage.put_agent_data": Access(("sim",), namesake="agent"),
    "storage.put_user": _OPERATORS,
    "storage.rate_answer": Access(owner="user_id", operators=False),
    "storage.rebuild": _OPERATORS,
    "storage.get_tokens_today": _EVERYBODY,
    "storage.record_model_call": Access(
        everybody=True, checked="workers, for themselves and whom they work for, operators"
    ),
    "storage.register_artifact": _EVERYBODY,
    "storage.register_artifacts": _EVERYBODY,
    "storage.request_claim": _EVERYBODY,
    "storage.request_upload": _EVERYBODY,
    "storage.save_dialogue_fragment": Access(("dialogue",)),
    "storage.save_events": Access(("tracker",), operators=False),
    "storage.save_facts": _FACTS,
    "storage.save_message": Access(("dialogue",), operators=False),
    "storage.save_messages": Access(("dialogue",), operators=False),
    "storage.save_tasks": _TASKS,
    "storage.search_artifacts": _EVERYBODY,
    "storage.set_trace_members": Access(("orchestrator", "dialogue")),
    "storage.settle_reminders": _TASKS,
    "storage.stats": _OPERATORS,
    # Gateways of earlier releases send it as themselves; they have checked whose task it is.
    "subagent.cancel_task": Access(("dialogue", "gateway"), "chat_id"),
    "subagent.execute_task": Access(("dialogue",), "chat_id"),
    "swm.acquire_lock": _EVERYBODY,
    "swm.drop_kem": _EVERYBODY,
    "swm.get_counter": _EVERYBODY,
    "swm.get_lock_info": _EVERYBODY,
    "swm.increment_counter": _EVERYBODY,
    "swm.load_kems_from_glm": _EVERYBODY,
    "swm.publish_kem": _EVERYBODY,
    "swm.publish_kems": _EVERYBODY,
    "swm.query": _EVERYBODY,
    "swm.release_lock": _EVERYBODY,
    "swm.renew_lock": _EVERYBODY,
    "swm.subscribe": _EVERYBODY,
    "swm.unsubscribe": _EVERYBODY,
    "task.add": _OF_USER,
    "task.cancel": _OF_USER_OR_ASKER,
    "task.complete": _OF_USER_OR_ASKER,
    "task.get": _OF_USER_OR_ASKER,
    "task.list": _OF_USER_OR_ASKER,
    "task.update": _OF_USER_OR_ASKER,
}


@lru_cache(maxsize=1024)
def access_to(command: type[Command]) -> Access:  # type: ignore[type-arg]  # of any result
    """The table's entry for a command; a command of other people's workers is for everybody on the bus."""
    _mb, _cmd, domain, action, _version = command.wire.type.split(".")
    is_ours = command.__module__.startswith(f"{__package__}.")
    return ACCESS.get(f"{domain}.{action}", _OPERATORS if is_ours else _EVERYBODY)


_ORCHESTRATOR, _DIALOGUE, _SUBAGENTS = ("orchestrator",), ("dialogue",), ("dialogue", "gateway", "subagent-")

# By topic, or topic and name, the workers that alone publish such events; a name that ends with `-` is a prefix. Others
# are for everybody with a worker of their own: what agents have found or want to say, and the ends of steps, which
# the orchestrator takes from the role of the step alone.
PUBLISHERS: Mapping[str, tuple[str, ...]] = {
    "artifact": ("storage",),
    "dialogue": _DIALOGUE,
    "dialogue.answer_rated": ("storage",),
    "dialogue.message_stored": ("storage",),
    "episode": ("lsm",),
    "kem": ("glm", "swm", "kps"),
    "model": ("storage",),
    "notification.deferred": ("context",),
    "notification.ignored": ("context",),
    "notification.sent": _DIALOGUE,
    "process.approval_requested": _ORCHESTRATOR,
    "process.artifact_missing": _ORCHESTRATOR,
    "process.cancelled": _ORCHESTRATOR,
    "process.completed": _ORCHESTRATOR,
    "process.failed": _ORCHESTRATOR,
    "process.output_replaced": _ORCHESTRATOR,
    "process.paused": _ORCHESTRATOR,
    "process.resumed": _ORCHESTRATOR,
    "process.retried": _ORCHESTRATOR,
    "process.started": _ORCHESTRATOR,
    "process.step_answered": _ORCHESTRATOR,
    "process.step_started": _ORCHESTRATOR,
    "processed.task_changed": ("task_manager",),
    "raw.dialogue_fragment": _DIALOGUE,
    "sim": ("sim",),
    "subagent": _SUBAGENTS,
}


@lru_cache(maxsize=4096)
def may_publish(event_type: str, identity: str) -> bool:
    """Whether an event, by its wire type, may be this worker's; a person publishes none but as the owner of a node."""
    worker = worker_of(identity)
    topic, _, rest = event_type.removeprefix("mb.evt.").partition(".")
    publishers = PUBLISHERS.get(f"{topic}.{rest.partition('.')[0]}", PUBLISHERS.get(topic))
    if publishers is None or worker is None:
        return True
    return any(worker.startswith(name) if name.endswith("-") else worker == name for name in publishers)
