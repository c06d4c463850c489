"""What a language model finds worth remembering, as far as the messages bear it out."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from agents.context_manager.ledger import Ledger
from agents.evidence import borne_out, quoted_in
from agents.guides import shipped_guide
from agents.models.language_model import LanguageModel
from agents.models.prompt import Material, lay_out
from agents.models.structured import attempt_as
from bus_schema.dialogue import DialogueMessage
from bus_schema.processing import FactKind


class ReadFact(BaseModel):
    """One thing that the model has read."""

    model_config = ConfigDict(extra="forbid")
    kind: FactKind
    message_id: str
    quote: str
    text: str
    supersedes: str | None


class ReadFacts(BaseModel):
    """All that the model has read."""

    model_config = ConfigDict(extra="forbid")
    items: list[ReadFact] = Field(max_length=40)


async def read_by_model(messages: Sequence[DialogueMessage], ledger: Ledger, model: LanguageModel) -> None:
    """Enter what the rules have missed; what no message says is dropped."""
    if not messages:
        return
    guide = shipped_guide("context_manager")
    known = "\n".join(f"{fact.fact_id}: {fact.text}" for fact in ledger.knowledge.current)
    materials = [
        Material("known", "known", known or "nothing"),
        *(Material(message.message_id, "message", message.content or "") for message in messages),
    ]
    asked = lay_out("context", "write", guide.system, "Report what has become known as JSON.", materials)
    read = await attempt_as(model, asked, ReadFacts, guide.model)
    for item in read.items if read else ():
        message = quoted_in(item.quote, messages, item.message_id)
        if message and borne_out(item.text, item.quote) and not _is_read(item, message, ledger):
            old = next((fact for fact in ledger.knowledge.current if fact.fact_id == item.supersedes), None)
            ledger.enter(item.text, item.kind, message, project=None, old=old)


def _is_read(item: ReadFact, message: DialogueMessage, ledger: Ledger) -> bool:
    """Whether the rules have read the same words already."""
    return any(
        message.message_id in update.fact.message_ids
        and (borne_out(item.text, update.fact.text) or borne_out(update.fact.text, item.quote))
        for update in ledger.updates
    )
