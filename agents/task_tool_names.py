"""Names of the dialogue's task tools, and how the results begin that found no task."""

from language.words import Language

LIST, ADD, COMPLETE, MOVE, CANCEL = "list_tasks", "add_task", "complete_task", "move_task", "cancel_task"
NOT_FOUND = {Language.ENGLISH: "No open task fits", Language.RUSSIAN: "Нет открытой задачи"}
