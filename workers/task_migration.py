"""Migration of the tasks that older versions kept as one value for the whole team."""

from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter

from agents.context.preferences import PreferencesFile
from bus_schema.agent_data import GetAgentData, PutAgentData
from bus_schema.processing import Task
from mindbus.bus.client import Client
from mindbus.logs import logger
from mindbus.sdk.requests import request_in_scope
from workers.simulated_users import HeardUsers
from workers.task_store import FieldChange, TaskStore

_AGENT, _NAMESPACE, _TEAM = "task_manager", "notes", "team"
_TASKS = TypeAdapter(tuple[Task, ...])
_END_OF_DAY = time(23, 59, 59)


async def move_team_tasks(
    bus: Client, tasks: TaskStore, heard: HeardUsers, habits: PreferencesFile, now: datetime
) -> None:
    """Save each task as a record, then delete the value; repeating it after a crash changes nothing."""
    page = await request_in_scope(bus, GetAgentData(agent=_AGENT, namespace=_NAMESPACE, key=_TEAM))
    if not page.items:
        return
    value: Any = page.items[0].value
    state = value.get("state", {}) if isinstance(value, dict) else {}
    found = _TASKS.validate_python(state.get("book", {}).get("tasks", ()))
    zone = ZoneInfo(habits.default.zone)
    changes = [
        FieldChange(_with_day(task, zone), ("text", "owner", "due", "status"), task.changed_at, insert=True)
        for task in found
    ]
    await tasks.save(changes, now)
    for user_id in state.get("heard", ()):
        await heard.add(user_id)
    delete = PutAgentData(
        agent=_AGENT, namespace=_NAMESPACE, key=_TEAM, value=None, expected_version=page.items[0].version
    )
    await request_in_scope(bus, delete)
    logger().info("tasks of the team moved to records", tasks=len(found))


def _with_day(task: Task, zone: ZoneInfo) -> Task:
    """A date at the end of a day was said without a time."""
    due = task.due.astimezone(zone) if task.due else None
    if due is None or due.time().replace(microsecond=0) != _END_OF_DAY:
        return task
    return task.model_copy(update={"due_on": due.date()})
