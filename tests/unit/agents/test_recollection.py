"""Of what memory finds, only what bears on the matter is shown to a model."""

from agents.models.prompt import memory_materials
from bus_schema.glm import Explanation, FoundKem
from bus_schema.kem import Kem
from tests.clocks import NOON


def found(number: int, text: str | None = "Релиз 24 марта.", *, dense: float = 0, lexical: float = 0) -> FoundKem:
    content = {"content": text} if text else {"ref": REF}
    times = {"created_at": NOON, "updated_at": NOON, "version": 1}
    kem = Kem.model_validate({"id": f"kem_{number}", "owner": "agent.context_manager"} | content | times)
    return FoundKem(kem=kem, score=0.5, explain=Explanation(dense=dense, lexical=lexical))


REF = {"artifact_id": "art_1", "version": 1, "sha256": "a" * 64, "size_bytes": 9, "content_type": "text/plain"}
NEAR = 0.6


def test_what_shares_words_or_meaning_is_shown_under_its_id_the_rest_is_not() -> None:
    items = [
        found(1, "The release is on May 12.", dense=0.6, lexical=0.5),
        found(2, "Релиз 12 мая.", dense=NEAR),
        found(3, lexical=0.4),
        found(4, dense=0.2, lexical=0.05),
        found(5),
    ]

    materials = memory_materials(items, 100)

    assert [(material.id, material.type) for material in materials] == [
        ("kem_1", "memory"),
        ("kem_2", "memory"),
        ("kem_3", "memory"),
    ]
    assert materials[1].text == "Релиз 12 мая."


def test_there_is_no_more_of_it_than_there_is_room_for() -> None:
    assert [
        each.id for each in memory_materials([found(1, dense=NEAR), found(2, dense=NEAR), found(3, dense=NEAR)], 7)
    ] == [
        "kem_1",
        "kem_2",
    ]


def test_a_long_text_is_shown_by_its_beginning() -> None:
    (material,) = memory_materials([found(1, "слово " * 1000, dense=NEAR)], 400)

    assert 100 < len(material.text.split()) < 130


def test_what_is_only_pointed_to_is_not_shown() -> None:
    assert memory_materials([found(1, None, dense=NEAR)], 100) == ()
