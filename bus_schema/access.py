"""Access to the commands of MindBus: the one table of who may send which, and about whose data."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from bus_schema.identities import owner_of, user_of, worker_of
from bus_schema.messages import Command, Query


@dataclass(frozen=True, slots=True)
class Access:
    """Rule of who may send a command.

    `workers`: these services and agents. `owner`: the person whose id is in this field; with `means_asker` also
    whoever leaves it empty, since its service takes it for their own. `namesake`: the worker whose name is in this
    field. `everybody`: all; its service checks their rights for each object. `operators`: whether operators may.
    """

    workers: tuple[str, ...] = ()
    owner: str = ""
    means_asker: bool = False
    namesake: str = ""
    everybody: bool = False
    operators: bool = True

    def admits(self, command: Command, identity: str, operators: Collection[str], readers: Collection[str]) -> bool:  # type: ignore[type-arg]  # of any result
        """Whether an identity may send this command.

        `operators` are ids of people; `readers` are names of workers that may ask what the fleet's own may.
        """
        person, worker = user_of(identity), worker_of(identity)
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
            *(["everybody, each for what they may see"] if self.everybody else []),
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
    "fact.list": _OF_USER_OR_ASKER,
    "glm.batch_store_kems": _EVERYBODY,
    "glm.check": _OPERATORS,
    "glm.delete_kem": _EVERYBODY,
    "glm.reindex": _OPERATORS,
    "glm.retrieve_kems": _EVERYBODY,
    "glm.stats": _EVERYBODY,
    "glm.store_kem": _EVERYBODY,
    "glm.update_kem": _EVERYBODY,
    "history.append": Access(("dialogue",)),
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
    "process.cancel": _EVERYBODY,
    "process.execute_step": Access(("orchestrator",)),
    "process.get": _EVERYBODY,
    "process.list": _EVERYBODY,
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
    "storage.list_dialogues": Access(("dialogue", "lsm")),
    "storage.list_facts": _FACTS,
    "storage.list_tasks": _TASKS,
    "storage.list_users": _EVERYBODY,
    "storage.open_claim": _EVERYBODY,
    "storage.put_agent_data": Access(("sim",), namesake="agent"),
    "storage.put_user": _OPERATORS,
    "storage.rebuild": _OPERATORS,
    "storage.register_artifact": _EVERYBODY,
    "storage.register_artifacts": _EVERYBODY,
    "storage.request_claim": _EVERYBODY,
    "storage.request_upload": _EVERYBODY,
    "storage.save_dialogue_fragment": Access(("dialogue",)),
    "storage.save_events": Access(("tracker",), operators=False),
    "storage.save_facts": _FACTS,
    "storage.save_message": Access(("dialogue",), operators=False),
    "storage.save_tasks": _TASKS,
    "storage.search_artifacts": _EVERYBODY,
    "storage.set_trace_members": Access(("orchestrator", "dialogue")),
    "storage.settle_reminders": _TASKS,
    "storage.stats": _OPERATORS,
    "subagent.cancel_task": Access(("dialogue",)),
    "subagent.execute_task": Access(("dialogue",)),
    "swm.acquire_lock": _EVERYBODY,
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


_PEOPLE, _ANYBODY = ("user.",), ("",)
# Prefixes of the identities for whom a worker may speak besides itself: the gateway for whoever is signed in; the
# dialogue, its sub-agents and the roles for the user whom they serve; memories for whoever asks them to remember.
_SPEAKS_FOR: Mapping[str, tuple[str, ...]] = {
    "gateway": _PEOPLE,
    "dialogue": _PEOPLE,
    **dict.fromkeys(("pushkin", "researcher", "ideator", "critic", "editor"), _PEOPLE),
    **dict.fromkeys(("kps", "glm", "swm"), _ANYBODY),
}
_CLIENT_USERS = ("user.", "agent.")
_SUBAGENTS, CLIENTS = "subagent-", ("client", "cli")
_DOORS = frozenset({"gateway"})


@lru_cache(maxsize=4096)
def speaks_for(user: str, identity: str, service: str) -> bool:
    """Whether a user of RabbitMQ may send messages of this identity, without instance, and as this service.

    A worker's user has its name, and speaks as `svc.NAME` or `agent.NAME`; that of a person or an agent outside the
    fleet is called as the identity.
    """
    if user.startswith(_CLIENT_USERS):
        return identity == user and service in CLIENTS
    others = _PEOPLE if user.startswith(_SUBAGENTS) else _SPEAKS_FOR.get(user, ())
    return service == user and (worker_of(identity) == user or identity.startswith(others))


# Services whose commands begin with another word; those without one are sent to whom `sends_to` names.
_SERVICE_OF: Mapping[str, str | None] = {
    "data": None,
    "fact": "context_manager",
    "process": "orchestrator",
    "subagent": "subagent-*",
    "task": "task_manager",
}


def targets_of(worker: str, readers: Collection[str] = ()) -> frozenset[str]:
    """Services, or patterns of their names, that take commands of this worker; operators speak at the doors alone."""
    if worker in _DOORS:
        return frozenset("*")
    services = {_target(name) for name, access in ACCESS.items() if _may_send(worker, access, readers)}
    return frozenset(filter(None, services)) | {worker}


def _target(name: str) -> str | None:
    domain = name.partition(".")[0]
    return _SERVICE_OF.get(domain, domain)


def _may_send(worker: str, access: Access, readers: Collection[str]) -> bool:
    is_named = worker in access.workers or (worker in readers and bool(access.workers))
    return access.everybody or bool(access.namesake) or is_named


def may_operate(user: str) -> bool:
    """Whether operators have their rights where this user of RabbitMQ speaks for them.

    Those of a person's own client and of the gateway, at which people sign in, do. A worker that serves people acts
    for them with the rights that everybody has: its model, or whoever has taken it over, is no operator.
    """
    return user.startswith(_PEOPLE) or user in _DOORS


def is_own(user: str, identity: str, service: str) -> bool:
    """Whether an identity, without instance, is that of the user of RabbitMQ itself."""
    return speaks_for(user, identity, service) and (user == identity or worker_of(identity) == user)


def may_act_for(service: str, identity: str, at_hand: object, requester: str | None) -> bool:
    """Whether a service may ask in the name of an identity, while it handles a message of a requester, if any.

    A role acts for who has started the run of its step, the knowledge processor for who asks it.
    """
    whose = owner_of(identity)
    if service in CLIENTS or worker_of(identity) == service:
        return True
    if not speaks_for(service, whose, service):
        return False
    started_by = getattr(at_hand, "started_by", None)
    if started_by is not None:
        return owner_of(started_by) == whose
    return service != "kps" or requester is None or owner_of(requester) == whose


def access_to(command: type[Command]) -> Access:  # type: ignore[type-arg]  # of any result
    """The table's entry for a command; a command of other people's workers is for everybody on the bus."""
    _mb, _cmd, domain, action, _version = command.wire.type.split(".")
    is_ours = command.__module__.startswith(f"{__package__}.")
    return ACCESS.get(f"{domain}.{action}", _OPERATORS if is_ours else _EVERYBODY)
