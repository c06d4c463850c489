"""Every message that MindBus itself defines."""

# A message is known once its module is imported.
from bus_schema import (  # noqa: F401
    agent_data,
    conversations,
    data,
    dialogue,
    facts,
    fleet,
    glm,
    history,
    kps,
    lsm,
    lsm_events,
    lsm_search,
    lsm_statistics,
    model_calls,
    notification,
    packer,
    process,
    processing,
    run_control,
    sim,
    storage,
    storage_maintenance,
    subagent,
    swm,
    task_records,
    tasks,
    timeline,
    uploads,
    users,
)
from bus_schema.messages import Command, Event, Message, known_types


def commands() -> list[type[Command]]:  # type: ignore[type-arg]  # of any result
    """All commands, by wire type."""
    return [message for message in _ours() if issubclass(message, Command)]


def events() -> list[type[Event]]:
    """All events, by wire type."""
    return [message for message in _ours() if issubclass(message, Event)]


def _ours() -> list[type[Message]]:
    return [message for message in known_types().values() if message.__module__.startswith(f"{__package__}.")]
