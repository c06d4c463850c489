"""An answer has used a turn if it has words, names or numbers of it that the question has not."""

import pytest

from workers.dialogue.memory import used_turns

TURNS = {
    "raw_1": "The door code of the studio is 4711.",
    "raw_2": "Polaris gets 30 percent in advance, the rest after the assembly.",
    "raw_3": "Hello! How are you? What a lovely day.",
    "raw_4": "Решили печатать каталог в Риге, тираж пятьсот.",
    "raw_5": "Олег привезёт проектор к девяти утра в большой зал.",
}


@pytest.mark.parametrize(
    ("question", "answer", "used"),
    [
        ("What is the door code?", "It is 4711.", ["raw_1"]),
        ("What is the door code?", "I don't know the door code of the studio.", []),
        ("What do we pay?", "You agreed that Polaris is paid 30 percent, the rest after the assembly.", ["raw_2"]),
        ("Good morning!", "Good morning! How are you? It is a lovely day.", []),
        ("Где печатаем?", "Каталог печатаем в Риге.", ["raw_4"]),
        ("Где печатаем каталог?", "Этого я пока не знаю.", []),
        ("Что с проектором?", "Проектор привезут утром в большой зал к девяти.", ["raw_5"]),
    ],
)
def test_used_turns(question: str, answer: str, used: list[str]) -> None:
    assert used_turns(question, answer, TURNS) == used


def test_only_the_turns_that_fit_nearly_as_well_as_the_best_are_used() -> None:
    turns = {"raw_1": "Anna brings the projector on Friday at 9.", "raw_2": "Anna likes tea."}

    assert used_turns("Who comes?", "It is Anna, on Friday at 9, with the projector.", turns) == ["raw_1"]
    assert used_turns("Who comes?", "Nobody.", {}) == []
