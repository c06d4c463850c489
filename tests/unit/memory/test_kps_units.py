from bus_schema.kem import Kem
from bus_schema.kps import Chunking, ProcessRawData
from memory.kps.formats import extract
from memory.kps.units import Unit, cut, units_of
from tests.clocks import NOON

TEXT = f"# Отпуск\n\n## Порядок\n\n{'Заявление подают за месяц до начала. ' * 20}"


def units(**fields: object) -> list[Unit]:
    command = ProcessRawData.model_validate({"raw_content": TEXT, "content_type": "text/markdown"} | fields)
    document = extract(str(command.raw_content).encode(), command.content_type)
    return units_of(command, "user.anna", document, cut(document, command.chunking))


def test_a_piece_is_embedded_under_its_headings_but_says_what_the_source_says() -> None:
    found = units(chunking=Chunking(max_chars=200, overlap_chars=0))

    assert len(found) > 2
    assert [unit.passage.count("Отпуск") for unit in found] == [1] * len(found)
    for unit in found:
        assert unit.draft.source is not None
        assert unit.draft.content == TEXT[unit.draft.source.start : unit.draft.source.end]


def test_a_piece_of_a_table_says_its_columns_and_where_its_own_rows_are() -> None:
    rows = "\n".join(["name,value", *(f"name {number},value {number}" for number in range(200))])
    found = units(raw_content=rows, content_type="text/csv")

    assert len(found) > 2
    for unit in found[1:]:
        assert unit.draft.content is not None
        columns, _, own = unit.draft.content.partition("\n")
        assert columns == "name,value"
        assert unit.draft.source is not None
        assert own == rows[unit.draft.source.start : unit.draft.source.end]


def test_rights_are_said_where_they_are_not_everybodys() -> None:
    (public,), (private,) = units(), units(rights={"visibility": "private"})

    assert "visibility" not in public.draft.model_fields_set
    assert private.draft.visibility == "private"
    assert public.kem_id == private.kem_id


def test_a_text_with_a_key_keeps_its_ids_in_other_words() -> None:
    (before,), (after,), (another,) = (
        units(raw_content=text, key=key) for text, key in (("one", "fact_1"), ("two", "fact_1"), ("one", "fact_2"))
    )

    assert before.kem_id == after.kem_id
    assert before.kem_id != another.kem_id


def test_what_memory_has_of_a_later_revision_stays() -> None:
    (earlier,), (later,) = (units(key="fact_1", revision=number) for number in (1, 2))

    assert earlier.is_known(stored_as(later))
    assert not later.is_known(stored_as(earlier))


def stored_as(unit: Unit) -> Kem:
    return Kem.model_validate(
        unit.draft.model_dump() | {"owner": "user.anna", "created_at": NOON, "updated_at": NOON, "version": 1}
    )
