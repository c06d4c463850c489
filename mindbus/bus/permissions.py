"""Permissions of the users of RabbitMQ: one template, as the broker's regular expressions."""

import base64
import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bus_schema.delegation import client_identity
from mindbus.bus.topology import DEAD_LETTERS, EVENTS, REPLIES, SUBSCRIBERS, Rung, Topology

# Every participant may subscribe to these: whether storage is there, which units of memory have changed.
_HEARD_BY_ALL = ("fleet.heartbeat", "kem.*")
_NOTHING = "^$"
# Its queues are kept for agents that are away.
_KEEPER_OF_SUBSCRIPTIONS = "swm"
_MARK_DIGITS = 12
_SALT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Permissions:
    """Names that a user may configure, write and read; by topic exchange, the keys that it may write and bind."""

    configure: str = ".*"
    write: str = ".*"
    read: str = ".*"
    topics: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def of_worker(name: str, targets: Iterable[str], heard: Iterable[str], rungs: Iterable[Rung]) -> Permissions:
    """Permissions of a worker: it commands `targets`, subscribes to the topics `heard`, takes from its own queues.

    Both may hold patterns, of names (`subagent-*`, `*`) and of topics (`process.*`, `#`).
    """
    own, ladder = re.escape(name), tuple(rungs)
    temporary = rf"mb\.(?:reply|tap)\.{own}\..+"
    queues = rf"mb\.q\.{own}(?:\.(?:events|[0-9]+))?"
    # Of its dead letters it replays those that died with somebody else.
    dead = rf"mb\.q\.{own}\.dead"
    kept = [r"mb\.sub(?:\..+)?"] if name == _KEEPER_OF_SUBSCRIPTIONS else []
    ways = [re.escape(each) for each in (DEAD_LETTERS, *(rung.exchange for rung in ladder))]
    return Permissions(
        _any(temporary, *kept),
        _any(*map(_commands, targets), rf"mb\.evt\.{own}", *ways, re.escape(REPLIES), temporary, *kept),
        _any(queues, dead, temporary, re.escape(REPLIES), re.escape(EVENTS), _subscriptions(name), *kept),
        {
            **_topics(rf"reply\.{own}\.", heard),
            DEAD_LETTERS: (f"^{own}$", _NOTHING),
            # Under the key of another's queue it would come back to that queue.
            **{rung.exchange: (f"^{queues}$", _NOTHING) for rung in ladder},
        },
    )


def of_client(user: str, targets: Iterable[str], heard: Iterable[str]) -> Permissions:
    """Permissions of a client: it sends commands, takes the replies and subscribes to the topics `heard`."""
    instances = rf"(?:cli|client)\.{re.escape(instance_mark(user))}"
    temporary = rf"mb\.(?:reply|tap)\.{instances}.+"
    return Permissions(
        _any(temporary),
        _any(*map(_commands, targets), temporary),
        _any(temporary, re.escape(REPLIES), re.escape(EVENTS), _subscriptions(user)),
        _topics(rf"reply\.{instances}", heard),
    )


def instance_mark(user: str) -> str:
    """Beginning of the instance of a client, which tells the reply queues of one user from those of another.

    Empty for users of a service, which has names of its own.
    """
    return f"{_digest(user)}-" if client_identity(user) is not None else ""


def is_same_participant(reply_key: str, other: str) -> bool:
    """Whether two keys of replies are those of instances of one service, and of one user where they have a mark."""
    return _without_instance(reply_key) == _without_instance(other)


def _without_instance(reply_key: str) -> tuple[str, str]:
    service, _, instance = reply_key.rpartition(".")
    return service, instance.rpartition("-")[0]


def subscription_mark(owner: str) -> str:
    """Beginning of the id of a subscription, which tells whose it is: of a worker by name, of others by identity."""
    return f"sub_{_digest(owner)}"


def definitions_of(user: str, permissions: Permissions, vhost: str = "/") -> dict[str, list[dict[str, Any]]]:
    """A user's permissions as RabbitMQ imports them."""
    granted = {"configure": permissions.configure, "write": permissions.write, "read": permissions.read}
    topics = [
        {"user": user, "vhost": vhost, "exchange": exchange, "write": write, "read": read}
        for exchange, (write, read) in permissions.topics.items()
    ]
    return {"permissions": [{"user": user, "vhost": vhost, **granted}], "topic_permissions": topics}


def topology_definitions(topology: Topology, vhost: str = "/") -> dict[str, list[dict[str, Any]]]:
    """Policies, exchanges, queues and bindings as RabbitMQ imports them, each once."""
    durable = {"vhost": vhost, "durable": True, "auto_delete": False}
    policies = {each.name: each for each in topology.policies}.values()
    exchanges = {each.name: each for each in topology.exchanges}.values()
    queues = {each.name: each for each in topology.queues}.values()
    return {
        "policies": [{"name": each.name, "vhost": vhost, **each.as_json()} for each in policies],
        "exchanges": [
            {"name": each.name, "type": each.kind, "internal": False, "arguments": each.arguments, **durable}
            for each in exchanges
        ],
        "queues": [{"name": each.name, "arguments": each.arguments, **durable} for each in queues],
        "bindings": [
            {
                "source": each.source,
                "vhost": vhost,
                "destination": each.target,
                "destination_type": "exchange" if each.to_exchange else "queue",
                "routing_key": each.key,
                "arguments": {},
            }
            for each in dict.fromkeys(topology.bindings)
        ],
    }


def user_definition(name: str, password: str | None) -> dict[str, str]:
    """A user as RabbitMQ imports it, with the hash of its password; without one it cannot log in until it has one."""
    hashed = ""
    if password is not None:
        # As rabbit_password_hashing_sha256 does: four random bytes, then the digest of these and the password.
        salt = secrets.token_bytes(_SALT_BYTES)
        hashed = base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()
    return {
        "name": name,
        "password_hash": hashed,
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": "",
    }


def merged(parts: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Definitions that hold all of these."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: [row for part in parts for row in part.get(name, ())] for name in names}


def _topics(own_keys: str, heard: Iterable[str]) -> dict[str, tuple[str, str]]:
    patterns = [_keys(topic) for topic in (*_HEARD_BY_ALL, *heard)]
    return {
        REPLIES: (r"^reply\.", f"^{own_keys}"),
        EVENTS: (_NOTHING, _any(*patterns)),
        SUBSCRIBERS: (r"^sub_", r"^sub_"),
    }


def _commands(target: str) -> str:
    # With the partitions of the service.
    rest = ".*" if target.endswith("*") else r"(?:\.[0-9]+)?"
    return rf"mb\.cmd\.{re.escape(target.removesuffix('*'))}{rest}"


def _keys(topic: str) -> str:
    """Expression of the binding keys within a pattern; `*` is one word, `#` all that follow."""
    words = re.escape(topic).replace(re.escape("*"), "[^.#]+").replace(re.escape("#"), ".*")
    return rf"evt\.{words}"


def _subscriptions(owner: str) -> str:
    return rf"mb\.sub\.{subscription_mark(owner.removeprefix('agent.'))}.*"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_MARK_DIGITS // 2).hexdigest()


def _any(*names: str) -> str:
    return f"^(?:{'|'.join(names)})$"
