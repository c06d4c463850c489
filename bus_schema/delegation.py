"""Delegation: for whom each user of RabbitMQ speaks, whether as an operator, and whom it may command."""

from collections.abc import Collection, Mapping
from functools import lru_cache

from bus_schema.access import ACCESS, Access
from bus_schema.identities import owner_of, worker_of

OPERATOR_ROLE = "operator"
_PEOPLE, _ANYBODY = ("user.",), ("",)
# Prefixes of the identities for whom a worker may speak besides itself: the gateway for whoever is signed in; the
# dialogue, its sub-agents and the roles for the user whom they serve; memories for whoever asks them to remember.
_SPEAKS_FOR: Mapping[str, tuple[str, ...]] = {
    "gateway": ("user.", "agent."),
    "dialogue": _PEOPLE,
    **dict.fromkeys(("pushkin", "researcher", "ideator", "critic", "editor", "importer"), _PEOPLE),
    **dict.fromkeys(("kps", "glm", "swm"), _ANYBODY),
}
_OPERATOR = "operator."
_CLIENT_USERS = ("user.", "agent.", _OPERATOR)
_SUBAGENTS, CLIENTS = "subagent-", ("client", "cli")
_DOORS = frozenset({"gateway"})


def client_identity(user: str) -> str | None:
    """Identity of a person or an agent outside the fleet who logs in as this user of RabbitMQ; None for others.

    The user is called as the identity; of a person who is an operator, `operator.NAME`.
    """
    if user.startswith(_OPERATOR):
        return f"user.{user.removeprefix(_OPERATOR)}"
    return user if user.startswith(_CLIENT_USERS) else None


@lru_cache(maxsize=4096)
def speaks_for(user: str, identity: str, service: str) -> bool:
    """Whether a user of RabbitMQ may send messages of this identity, without instance, and as this service.

    A worker's user has its name, and speaks as `svc.NAME` or `agent.NAME`; that of a person or an agent outside the
    fleet is called as the identity.
    """
    if user.startswith(_CLIENT_USERS):
        return identity == client_identity(user) and service in CLIENTS
    others = _PEOPLE if user.startswith(_SUBAGENTS) else _SPEAKS_FOR.get(user, ())
    return service == user and (
        worker_of(identity) == user or (identity.startswith(others) and not (user in _DOORS and is_of_fleet(identity)))
    )


def is_of_fleet(identity: str) -> bool:
    """Whether it is an agent or a service to which the tables above give something: nobody signs in as that."""
    worker = worker_of(identity) or ""
    return worker in _named_workers() or worker.startswith(_SUBAGENTS)


@lru_cache(maxsize=1)
def _named_workers() -> frozenset[str]:
    return frozenset(_SPEAKS_FOR).union(*(access.workers for access in ACCESS.values()))


# Services whose commands begin with another word; those without one are sent to whom `sends_to` names.
_SERVICE_OF: Mapping[str, str | None] = {
    "data": None,
    "fact": "context_manager",
    "process": "orchestrator",
    "subagent": "subagent-*",
    "task": "task_manager",
}


def targets_of(worker: str, readers: Collection[str] = ()) -> frozenset[str]:
    """Services, or patterns of their names, that take commands of this worker, or of this client's user.

    Operators speak at the doors and at clients of their own alone.
    """
    if worker in _DOORS or worker.startswith(_OPERATOR):
        return frozenset("*")
    is_person = worker.startswith(_PEOPLE)
    services = {
        _target(name)
        for name, access in ACCESS.items()
        if (is_person and access.owner) or _may_send(worker, access, readers)
    }
    return frozenset(filter(None, services)) | ({worker} if client_identity(worker) is None else frozenset())


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
    return user.startswith((*_PEOPLE, _OPERATOR)) or user in _DOORS


def is_operator_by(user: str, role: str | None) -> bool:
    """Whether a message of this user of RabbitMQ is an operator's, whatever the settings say.

    Its login says so, or the gateway, where an operator is signed in, says it of them in `mbrole`.
    """
    return user.startswith(_OPERATOR) or (role == OPERATOR_ROLE and user in _DOORS)


def is_own(user: str, identity: str, service: str) -> bool:
    """Whether an identity, without instance, is that of the user of RabbitMQ itself."""
    return speaks_for(user, identity, service) and identity in (client_identity(user), *_own_names(user))


def _own_names(user: str) -> tuple[str, str]:
    return f"svc.{user}", f"agent.{user}"


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
