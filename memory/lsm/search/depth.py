"""Whether what a layer says is enough, or the raw turns are needed."""

import re
from collections.abc import Iterator

from bus_schema.episodes import ColdContent, Content, WarmContent

_OVERVIEW = re.compile(
    r"\b(?:summar(?:y|ise|ize)|overview|recap|in general|what (?:have|did|were) we (?:talk|discuss|speak|decid)\w*"
    r"|what (?:was|were|is|has been) (?:\w+ ){0,2}(?:discussed|decided|agreed)|remind me what we|tell me about our"
    r"|о ч[её]м мы|что мы (?:обсуждали|решили|решали|выбрали)"
    r"|на ч[её]м (?:мы )?(?:остановились|сошлись)|что было решено"
    r"|кратко|вкратце|в общих чертах|итоги?|резюме|подытожь|напомни,? (?:о ч[её]м|что мы))\b",
    re.IGNORECASE,
)


def is_overview(question: str) -> bool:
    """Whether it asks for what a matter came to, which a pack says; all else asks for details, which turns say.

    Measured: packs alone answer a third of the questions for details, raw turns nearly all.
    """
    return _OVERVIEW.search(question) is not None


def layer_text(content: Content | None) -> str | None:
    """What a packed episode says without its turns."""
    return None if content is None else "\n".join(_lines(content)) or None


def _lines(content: Content) -> Iterator[str]:
    if isinstance(content, WarmContent):
        yield content.summary
        yield from (f"- {point}" for point in content.key_points)
        said = {content.summary, *content.key_points}
        yield from (f"- {decision.text}" for decision in content.decisions if decision.text not in said)
    elif isinstance(content, ColdContent):
        yield content.headline
