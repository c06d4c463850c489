"""The tasks that are known."""

from typing import Self

from pydantic import BaseModel, ConfigDict

from bus_schema.processing import Task, TaskStatus

_MOST_KEPT = 250


class TaskBook(BaseModel):
    """An agent's memory of tasks; `reminded` are the reminders that have gone out, by what they were about."""

    model_config = ConfigDict(frozen=True)
    tasks: tuple[Task, ...] = ()
    reminded: tuple[str, ...] = ()

    @property
    def open(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.status is TaskStatus.OPEN)

    def with_task(self, task: Task) -> Self:
        """The book with this task in the place of its former self; of too many, closed ones go first."""
        tasks = [each for each in self.tasks if each.task_id != task.task_id]
        tasks.append(task)
        tasks.sort(key=lambda each: each.found_at)
        while len(tasks) > _MOST_KEPT:
            tasks.remove(next((each for each in tasks if each.status is not TaskStatus.OPEN), tasks[0]))
        return self.model_copy(update={"tasks": tuple(tasks)})

    def without(self, user_id: str) -> Self:
        """The book without the tasks that a user spoke of; others' tasks for them keep the name that was said."""
        tasks = [task for task in self.tasks if task.asked_by != user_id]
        gone = {task.task_id for task in self.tasks if task.asked_by == user_id}
        left = [t.model_copy(update={"owner_id": None}) if t.owner_id == user_id else t for t in tasks]
        reminded = tuple(about for about in self.reminded if about.split(" ", 1)[0] not in gone)
        return self.model_copy(update={"tasks": tuple(left), "reminded": reminded})
