"""What the agents know of a user can be taken out of what they know of all."""

from datetime import UTC, datetime

from agents.context_manager.knowledge import FactBase
from agents.task_manager.tasks import TaskList
from bus_schema.processing import Fact, FactKind, Task

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)


def a_task(number: int, asked_by: str, owner_id: str | None = None) -> Task:
    return Task(
        task_id=f"task_{number}",
        text="подготовить договор",
        owner="Анна" if owner_id else None,
        owner_id=owner_id,
        asked_by=asked_by,
        found_at=NOW,
        changed_at=NOW,
        message_ids=("msg_1",),
    )


def a_fact(number: int, said_by: str, superseded_by: str | None = None) -> Fact:
    return Fact(
        fact_id=f"fact_{number}",
        kind=FactKind.DECISION,
        text="We ship on Friday.",
        said_by=said_by,
        said_at=NOW,
        superseded_by=superseded_by,
        message_ids=("msg_1",),
    )


def test_the_tasks_of_a_forgotten_user_go_and_nobody_is_reminded_on_their_behalf() -> None:
    book = TaskList(
        tasks=(a_task(1, "anna"), a_task(2, "boris", owner_id="anna"), a_task(3, "boris")),
        reminded=("task_1 2026-03-14 due_soon", "task_3 2026-03-14 overdue"),
    )

    left = book.without("anna")

    assert [(task.task_id, task.owner, task.owner_id) for task in left.tasks] == [
        ("task_2", "Анна", None),
        ("task_3", None, None),
    ]
    assert left.reminded == ("task_3 2026-03-14 overdue",)


def test_what_a_forgotten_user_had_corrected_does_not_hold_again() -> None:
    knowledge = FactBase(facts=(a_fact(1, "boris", superseded_by="fact_2"), a_fact(2, "anna"), a_fact(3, "boris")))

    left = knowledge.without("anna")

    assert [fact.fact_id for fact in left.facts] == ["fact_1", "fact_3"]
    assert [fact.fact_id for fact in left.current] == ["fact_3"]
