"""MindBus: a RabbitMQ worker fleet for teams of AI agents."""

from bus_schema.messages import Command, Event, Nothing, Query
from mindbus.bus.client import Client, Subscription
from mindbus.bus.connecting import NoBroker, connect
from mindbus.bus.failures import (
    BusUnavailable,
    CommandFailed,
    NoReply,
    PermanentFailure,
    Refused,
    TemporaryFailure,
    Unroutable,
)
from mindbus.bus.handlers import To, Told, every, on_command, on_event, on_topic
from mindbus.bus.handling import Handling
from mindbus.bus.worker import Kit, Worker
from mindbus.settings import Settings

__all__ = [
    "BusUnavailable",
    "Client",
    "Command",
    "CommandFailed",
    "Event",
    "Handling",
    "Kit",
    "NoBroker",
    "NoReply",
    "Nothing",
    "PermanentFailure",
    "Query",
    "Refused",
    "Settings",
    "Subscription",
    "TemporaryFailure",
    "To",
    "Told",
    "Unroutable",
    "Worker",
    "connect",
    "every",
    "on_command",
    "on_event",
    "on_topic",
]
