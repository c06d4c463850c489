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


# Commands that a model answers, at the cost of whoever asks.
ASK_MODELS = (dialogue.Invoke, subagent.ExecuteTask)


def commands_by_name() -> dict[str, type[Command]]:  # type: ignore[type-arg]  # of any result
    """Commands by their short names, such as `storage.get_artifact`; of several versions the last."""
    return {".".join(command.wire.type.split(".")[2:4]): command for command in commands()}


def summary_of(message: type[Message]) -> str:
    """The first paragraph of what a message says of itself."""
    return (message.__doc__ or "").strip().split("\n\n")[0]


def events() -> list[type[Event]]:
    """All events, by wire type."""
    return [message for message in _ours() if issubclass(message, Event)]


def _ours() -> list[type[Message]]:
    return [message for message in known_types().values() if message.__module__.startswith(f"{__package__}.")]
