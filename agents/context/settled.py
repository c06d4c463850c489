"""What nobody needs to be told any more, since the world has moved on."""

from collections.abc import Iterable

from bus_schema.processing import FactUpdate, Mood, TaskUpdate

_WELL_AGAIN = -0.2


def settled_by_tasks(updates: Iterable[TaskUpdate]) -> tuple[str, ...]:
    """The tasks that nobody needs to be reminded of."""
    return tuple(update.task.task_id for update in updates if update.change in ("done", "cancelled"))


def settled_by_facts(updates: Iterable[FactUpdate]) -> tuple[str, ...]:
    """News of a fact that is no longer true itself."""
    replaced = (update.fact.supersedes for update in updates if update.change == "superseded")
    return tuple(f"{fact_id} superseded" for fact_id in replaced if fact_id)


def settled_by_moods(moods: Iterable[Mood]) -> tuple[str, ...]:
    """Concern for somebody who sounds well again."""
    return tuple(f"mood down {mood.assessed_at:%Y-%m-%d}" for mood in moods if mood.tone > _WELL_AGAIN)
