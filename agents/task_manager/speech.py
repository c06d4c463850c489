"""What each language says tasks with."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.task_manager import english_cues, russian_cues
from agents.task_manager.cues import Cue
from agents.text import Language


@dataclass(frozen=True)
class Speech:
    """What a language says tasks with."""

    cues: Sequence[Cue]
    afterthought: Cue
    hedges: re.Pattern[str]
    distant_hedges: re.Pattern[str]
    openings: re.Pattern[str]
    asides: re.Pattern[str]
    reasons: re.Pattern[str]
    and_also: re.Pattern[str]


SPEECH = {
    language: Speech(
        module.CUES,
        module.AFTERTHOUGHT,
        *(
            re.compile(pattern, re.IGNORECASE)
            for pattern in (
                module.HEDGES,
                module.DISTANT_HEDGES,
                module.EMPTY_OPENINGS,
                module.ASIDES,
                module.REASONS,
                module.AND_ALSO,
            )
        ),
    )
    for language, module in ((Language.ENGLISH, english_cues), (Language.RUSSIAN, russian_cues))
}
