"""Units as programs hand them over: drafts or dictionaries, each with an id of its own before it is sent."""

from typing import Any

import pytest

from bus_schema.glm import MAX_BATCH
from bus_schema.kem import KemDraft
from mindbus.sdk.errors import MalformedKem
from mindbus.sdk.memory_link import batches_of


def test_dictionaries_are_drafts() -> None:
    ((first, second),) = batches_of(
        [{"content": "On Friday.", "metadata": {"topic": "plan"}}, KemDraft(content="Later.")]
    )

    assert (first.content, first.metadata) == ("On Friday.", {"topic": "plan"})
    assert first.is_new
    assert len({None, first.id, second.id}) == 3


def test_an_id_that_is_given_stays() -> None:
    ((draft,),) = batches_of([{"id": "kem_mine", "content": "On Friday."}])

    assert (draft.id, draft.is_new) == ("kem_mine", KemDraft(id="kem_mine", content="x").is_new)


@pytest.mark.parametrize(
    ("unit", "reason"),
    [
        pytest.param({"text": "On Friday."}, "unit 2: text: ", id="unknown field"),
        pytest.param({"metadata": {}}, "unit 2: ", id="no content"),
        pytest.param("On Friday.", "unit 2 is of the type str", id="a text"),
    ],
)
def test_what_is_no_unit_is_named_before_anything_is_sent(unit: Any, reason: str) -> None:
    with pytest.raises(MalformedKem, match=reason):
        next(batches_of([{"content": "Fine."}, unit]))


def test_many_are_several_batches() -> None:
    sizes = [len(some) for some in batches_of({"content": str(number)} for number in range(MAX_BATCH + 1))]

    assert sizes == [MAX_BATCH, 1]
