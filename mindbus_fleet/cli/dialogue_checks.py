"""What `doctor` looks at where the dialogue is concerned."""

import os
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from agents.configuration.validation import InvalidFile
from agents.context.preferences import open_preferences
from agents.models.errors import ModelHalfConfigured
from agents.models.selection import model_of
from agents.people_directory import open_people_directory
from agents.sim.scenarios import SimLibrary
from mindbus.bus.topology import commands_queue, events_queue
from mindbus.management import QueueState
from mindbus.settings import Settings
from mindbus_fleet.cli.finding import Finding
from mindbus_fleet.cli.sim_files import scenarios_of, teams_of

_QUEUES = (
    commands_queue("storage"),
    *(events_queue(agent) for agent in ("task_manager", "context_manager", "mood_watcher", "context")),
    commands_queue("context"),
    commands_queue("dialogue"),
    commands_queue("history"),
    events_queue("tracker"),
)


def dialogue_files(settings: Settings) -> Iterator[Finding]:
    """The model, the files that agents and simulations read."""
    yield _model(settings)
    yield _file("Habits", settings.habits or "those that come with MindBus", lambda: open_preferences(settings.habits))
    yield _file(
        "People", settings.people or "the simulated teams alone", lambda: open_people_directory(settings.people)
    )
    yield _simulations(settings)


def dialogue_queues(queues: Sequence[QueueState]) -> Finding:
    """Whether there is somebody to answer wherever a dialogue goes."""
    heard = {queue.name for queue in queues if queue.consumers}
    silent = [name for name in _QUEUES if name not in heard]
    if silent:
        detail = f"nobody listens to {', '.join(silent)}: start all workers with `mindbus up`"
        return Finding(check="Dialogue", status="warning", detail=detail)
    return Finding(check="Dialogue", status="ok", detail="every queue on the way of a message has a consumer")


def _model(settings: Settings) -> Finding:
    check = "Language model"
    if not (settings.llm_base_url or settings.llm_model or settings.llm_api_key):
        return Finding(check=check, status="ok", detail="the offline model")
    try:
        model_of(settings)
    except ModelHalfConfigured as half:
        return Finding(check=check, status="failed", detail=str(half))
    where = urlsplit(settings.llm_base_url or "").hostname
    return Finding(check=check, status="ok", detail=f"{settings.llm_model} at {where}; not asked")


def _file(check: str, name: str, read: Callable[[], object]) -> Finding:
    try:
        read()
    except InvalidFile as bad:
        return Finding(check=check, status="failed", detail=str(bad))
    except OSError as unreadable:
        return Finding(check=check, status="failed", detail=f"{name} cannot be read: {unreadable.strerror}")
    return Finding(check=check, status="ok", detail=name)


def _simulations(settings: Settings) -> Finding:
    check = "Simulations"
    if settings.sim_dir is not None and not os.access(settings.sim_dir, os.R_OK | os.X_OK):
        detail = f"{settings.sim_dir} is no folder that can be read: mend MINDBUS_SIM_DIR"
        return Finding(check=check, status="failed", detail=detail)
    library = SimLibrary(settings.sim_dir)
    teams, scenarios = teams_of(library), scenarios_of(library)
    if problems := [f"{each.name}: {each.problem}" for each in (*teams, *scenarios) if each.problem]:
        detail = f"{'; '.join(problems)}. See all of it: mindbus sim check FILE"
        return Finding(check=check, status="warning", detail=detail)
    return Finding(check=check, status="ok", detail=f"{len(teams)} teams, {len(scenarios)} scenarios")
