"""What the agents know of a user can be taken out of what they know of all."""

from datetime import UTC, datetime

from agents.context_manager.knowledge import FactBase
from bus_schema.processing import Fact, FactKind

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)


def a_fact(number: int, said_by: str, superseded_by: str | None = None) -> Fact:
    return Fact(
        fact_id=f"fact_{number}",
        kind=FactKind.DECISION,
        text="We ship on Friday.",
        said_by=said_by,
        said_at=NOW,
        superseded_by=superseded_by,
        message_ids=("msg_1",),
    )


def test_what_a_forgotten_user_had_corrected_does_not_hold_again() -> None:
    knowledge = FactBase(facts=(a_fact(1, "boris", superseded_by="fact_2"), a_fact(2, "anna"), a_fact(3, "boris")))

    left = knowledge.without("anna")

    assert [fact.fact_id for fact in left.facts] == ["fact_1", "fact_3"]
    assert [fact.fact_id for fact in left.current] == ["fact_3"]
