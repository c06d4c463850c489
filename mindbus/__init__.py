"""MindBus: a RabbitMQ worker fleet for teams of AI agents."""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from mindbus.version import __version__ as __version__

if TYPE_CHECKING:
    from bus_schema.dialogue import DialogueFragment
    from bus_schema.messages import Command, Event, Nothing, Query
    from mindbus.bus.client import Client
    from mindbus.bus.connection import NoBroker, connect
    from mindbus.bus.context import MessageContext
    from mindbus.bus.handlers import Publish, Send, background, every, on_command, on_event, on_topic, time_limit
    from mindbus.bus.subscriptions import EventSubscription
    from mindbus.bus.worker import Worker, WorkerContext
    from mindbus.errors import (
        BusUnavailable,
        MindBusError,
        NoReply,
        PermanentFailure,
        Rejected,
        ReplyError,
        TemporaryFailure,
        Unroutable,
    )
    from mindbus.sdk.agent import AgentSDK, SyncAgentSDK
    from mindbus.sdk.dialogue_agent import ProcessingAgent
    from mindbus.sdk.errors import CircuitOpen, LockLost, MemoryAway
    from mindbus.sdk.subagent import Delegated, SubAgent
    from mindbus.settings import Settings

# Looked up when first used: a health probe must not pay for the AMQP client.
_HOMES = {
    "bus_schema.messages": ("Command", "Event", "Nothing", "Query"),
    "mindbus.bus.client": ("Client",),
    "mindbus.bus.subscriptions": ("EventSubscription",),
    "mindbus.bus.connection": ("NoBroker", "connect"),
    "mindbus.errors": (
        "BusUnavailable",
        "MindBusError",
        "NoReply",
        "PermanentFailure",
        "Rejected",
        "ReplyError",
        "TemporaryFailure",
        "Unroutable",
    ),
    "mindbus.bus.handlers": (
        "Send",
        "Publish",
        "background",
        "every",
        "on_command",
        "on_event",
        "on_topic",
        "time_limit",
    ),
    "mindbus.bus.context": ("MessageContext",),
    "mindbus.bus.worker": ("WorkerContext", "Worker"),
    "bus_schema.dialogue": ("DialogueFragment",),
    "mindbus.sdk.agent": ("AgentSDK", "SyncAgentSDK"),
    "mindbus.sdk.errors": ("CircuitOpen", "LockLost", "MemoryAway"),
    "mindbus.sdk.dialogue_agent": ("ProcessingAgent",),
    "mindbus.sdk.subagent": ("Delegated", "SubAgent"),
    "mindbus.settings": ("Settings",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AgentSDK",
    "BusUnavailable",
    "CircuitOpen",
    "Client",
    "Command",
    "Delegated",
    "DialogueFragment",
    "Event",
    "EventSubscription",
    "LockLost",
    "MemoryAway",
    "MessageContext",
    "MindBusError",
    "NoBroker",
    "NoReply",
    "Nothing",
    "PermanentFailure",
    "ProcessingAgent",
    "Publish",
    "Query",
    "Rejected",
    "ReplyError",
    "Send",
    "Settings",
    "SubAgent",
    "SyncAgentSDK",
    "TemporaryFailure",
    "Unroutable",
    "Worker",
    "WorkerContext",
    "background",
    "connect",
    "every",
    "on_command",
    "on_event",
    "on_topic",
    "time_limit",
]


# Until the next release, the old names still work.
_RENAMED = {
    "CommandFailed": "ReplyError",
    "Handling": "MessageContext",
    "Kit": "WorkerContext",
    "Refused": "Rejected",
    "Subscription": "EventSubscription",
    "To": "Send",
    "Told": "Publish",
}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        warnings.warn(f"mindbus.{name} is now mindbus.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mindbus' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)
