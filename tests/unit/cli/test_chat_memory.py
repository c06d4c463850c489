"""`mindbus chat` tells under an answer what was remembered for it."""

from bus_schema.dialogue import Answered
from bus_schema.message_parts import RecalledEpisode
from mindbus.cli.chat import memory_lines
from tests.clocks import NOON

ANSWER = Answered(message_id="msg_1", response_id="msg_2", response="It is 4711.")
USED = RecalledEpisode(episode_id="ep_1", time=NOON, raw_log_ids=("raw_1",), used=("raw_1",))
SEEN = RecalledEpisode(episode_id="ep_2", time=NOON, raw_log_ids=("raw_2",), is_uncertain=True)


def test_what_was_used_is_named_the_rest_is_counted() -> None:
    assert memory_lines(ANSWER) == []
    assert memory_lines(ANSWER.model_copy(update={"episodes": (SEEN, USED)})) == [
        "(from memory: ep_1 (2026-03-14))",
        "(also looked at: episodes 1, units of shared memory 0)",
    ]


def test_that_memory_was_late_is_told() -> None:
    assert memory_lines(ANSWER.model_copy(update={"memory": "late"})) == [
        "(memory was late: this may lack something that is known)"
    ]
