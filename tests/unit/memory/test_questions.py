"""What memory is searched with to see how well it finds."""

import re

from tests.memory_documents import documents

MANY = 200


def test_the_questions_are_as_many_in_either_language_and_none_repeats_a_name() -> None:
    texts = documents(MANY)
    questions = [question for each in texts for question in each.questions]

    assert len(texts) == len({each.name for each in texts}) == MANY
    assert len(questions) == len(set(questions)) == 100
    assert sum(bool(re.search("[а-я]", question)) for question in questions) == 50
    for each in texts:
        assert len(each.text) <= 2000
        assert not any(each.name in question for question in each.questions)
