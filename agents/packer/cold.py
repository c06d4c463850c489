"""Says in one sentence what an episode was about, with tags to find it by (warm to cold)."""

from agents.guides import shipped_guide
from agents.models.language_model import LanguageModel
from agents.models.prompt import Material, lay_out
from agents.models.structured import attempt_as
from agents.packer.reading import ReadCold
from bus_schema.episodes import ColdContent, WarmContent

_LONGEST_TAG_WORDS = 3


async def read_cold(warm: WarmContent, words: int, model: LanguageModel) -> ColdContent | None:
    """In about so many words; None where no model helps."""
    guide = shipped_guide("packer_cold")
    kept = Material("summary", "summary", "\n".join(_lines(warm)))
    order = f"Report headline and tags as JSON, the headline in at most {max(4, words * 2 // 3)} words."
    read = await attempt_as(model, lay_out("memory", "write", guide.system, order, [kept]), ReadCold, guide.model)
    if read is None:
        return None
    tags = dict.fromkeys(tag.strip() for tag in read.tags if 0 < len(tag.split()) <= _LONGEST_TAG_WORDS)
    return ColdContent(headline=read.headline.strip(), tags=tuple(tags))


def _lines(warm: WarmContent) -> list[str]:
    names = ", ".join(entity.name for entity in warm.entities)
    decisions = (f"Decided: {decision.text}" for decision in warm.decisions)
    return [warm.summary, *(f"- {point}" for point in warm.key_points), *decisions, f"Named: {names or 'nothing'}"]
