from bus_schema.kps import Chunking, ProcessRawData
from memory.kps.chunks import cut
from memory.kps.formats import extract
from memory.kps.units import Unit, units_of

TEXT = f"# Отпуск\n\n## Порядок\n\n{'Заявление подают за месяц до начала. ' * 20}"


def units(**fields: object) -> list[Unit]:
    command = ProcessRawData.model_validate({"raw_content": TEXT, "content_type": "text/markdown"} | fields)
    document = extract(TEXT.encode(), command.content_type)
    return units_of(command, "user.anna", document, cut(document, command.chunking))


def test_a_piece_is_embedded_under_its_headings_but_says_what_the_source_says() -> None:
    found = units(chunking=Chunking(max_chars=200, overlap_chars=0))

    assert len(found) > 2
    assert [unit.passage.count("Отпуск") for unit in found] == [1] * len(found)
    for unit in found:
        assert unit.draft.source is not None
        assert unit.draft.content == TEXT[unit.draft.source.start : unit.draft.source.end]


def test_rights_are_said_where_they_are_not_everybodys() -> None:
    (public,), (private,) = units(), units(rights={"visibility": "private"})

    assert "visibility" not in public.draft.model_fields_set
    assert private.draft.visibility == "private"
    assert public.kem_id == private.kem_id
