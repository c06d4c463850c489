"""Notes: what a person told of an event, a preference, an instruction or a number, by rules and by a model."""

import pytest

from agents.packer import ReadNote, ReadWarm, read_warm
from bus_schema.episodes import Note, RawTurn
from memory.packing.notes import notes_of
from memory.packing.packing import Proposal, pack_warm
from memory.packing.warm import warm_of
from tests.clocks import NOON
from tests.scripted_model import ScriptedModel


def turns(*contents: str, role: str = "user", speaker: str | None = None) -> list[RawTurn]:
    return [
        RawTurn.model_validate(
            {"raw_log_id": f"raw_{n}", "role": role, "content": text, "time": NOON, "speaker": speaker}
        )
        for n, text in enumerate(contents)
    ]


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        ("I signed up for a pottery class yesterday.", {"event"}),
        ("We ran 12 km last Sunday.", {"event", "number"}),
        ("На прошлой неделе мы ездили в Казань.", {"event"}),
        ("Вчера мою дочь приняли в школу.", {"event"}),
        ("Вчера я мыла окна на кухне.", {"event"}),
        ("Вчера я пила кофе с Анной.", {"event"}),
        ("Если завтра пойдёт дождь, мы останемся дома.", set()),
        ("I prefer an aisle seat on long flights.", {"preference"}),
        ("My favourite tea is oolong.", {"preference"}),
        ("Терпеть не могу жалюзи в комнате.", {"preference"}),
        ("Always format code with comments when I ask about Python.", {"instruction"}),
        ("From now on call me Captain, please.", {"instruction"}),
        ("Отвечай мне всегда по-русски и коротко.", {"instruction"}),
        ("The budget is 300,000 dollars for everything.", {"number"}),
        ("Бюджет ремонта вырос, теперь 560 тысяч рублей.", {"number"}),
        ("Always here to cheer you on!", set()),
        ("Did you run 12 km last Sunday?", set()),
        ("I would like to know more about trains.", set()),
        ("Thanks, that sounds great!", set()),
    ],
)
def test_a_sentence_is_a_note_of_the_kinds_that_it_tells(said: str, kinds: set[str]) -> None:
    notes = notes_of(turns(said))

    assert {note.kind for note in notes} == kinds
    assert all(note.text in said and note.raw_log_ids == ("raw_0",) for note in notes)


def test_an_assistant_tells_no_notes_and_people_instruct_none() -> None:
    order = "Never forget to water the plants."

    assert notes_of(turns("I love such long walks.", order, role="assistant")) == ()
    assert notes_of(turns(order, speaker="Maria")) == ()


def test_what_is_said_again_is_one_note_of_both_turns() -> None:
    (note,) = notes_of(turns("I prefer short answers.", "Well. I prefer short answers."))

    assert note.raw_log_ids == ("raw_0", "raw_1")


def test_of_a_models_notes_those_remain_that_their_turns_support() -> None:
    said = turns("We planted forty tulips near the old gate.", "It rained all afternoon, so we stopped early.")
    good = Note(kind="event", text="planted forty tulips near the gate", raw_log_ids=("raw_0",))
    invented = Note(kind="preference", text="roses are preferred to tulips", raw_log_ids=("raw_0",))
    unknown = good.model_copy(update={"raw_log_ids": ("raw_9",)})

    pack = pack_warm(said, Proposal("model", warm_of(said), notes=(good, invented, unknown)))

    assert pack.notes == (good,)
    assert set(pack.report.struck_out) == {invented.text, unknown.text}


async def test_a_model_notes_what_it_reads_by_the_numbers_of_the_turns() -> None:
    said = turns("We planted forty tulips near the old gate.", "It rained all afternoon.")
    notes = [
        ReadNote(kind="event", text="planted forty tulips", turns=[1]),
        ReadNote(kind="number", text="seven gates", turns=[7]),
    ]
    answer = ReadWarm(summary="Tulips.", key_points=[], entities=[], decisions=[], notes=notes)

    reading = await read_warm(said, ScriptedModel(answer))

    assert reading is not None
    assert reading.notes == (Note(kind="event", text="planted forty tulips", raw_log_ids=("raw_0",)),)
    assert reading.unfounded == ("seven gates",)
