"""Whether a sentence can be understood by whoever reads nothing else."""

import re

from memory.packing.cues import FILLER, without_filler

_OF_A_REFERENCE, _OF_AN_ADDRESS, _OF_MANY_WORDS = 0.5, 0.8, 0.6
_LONGEST_READ_WORDS = 22
_LEAD = re.compile(
    r"^(?:(?:by the way|actually|honestly|you know(?: what)?|guess what|to be honest|anyways?|besides|"
    r"in fact|of course|also|plus|oh|ah|wow|hey|"
    r"слушай(?:те)?|знаешь|знаете|честно говоря|вообще|представляешь|в принципе|ой|ах|кстати)\b[\s,.!?—–-]+)+",
    re.IGNORECASE,
)
# Nobody can know what these are who has not read what goes before.
_REFERS = re.compile(
    r"^(?:it|it's|that|that's|this|these|those|they|they're|he|he's|she|she's|there|such|both|either|same|here|"
    r"you|you're|your|"
    r"это|этот|эта|эти|он|она|оно|они|там|туда|такой|такая|такие|тот|та|те|тоже|поэтому|его|её|их|ты|вы)\b",
    re.IGNORECASE,
)
_ADDRESSES = re.compile(
    r"\b(?:it|they|them|he|he'll|him|she|she'll|her|you|you're|your|он|она|они|его|её|их|ему|ей|"
    r"ты|тебя|тебе|твой|твоя|твои|вы|вас|вам)\b",
    re.IGNORECASE,
)


def without_lead(text: str) -> str:
    """As a sentence that nothing goes before."""
    bare = _LEAD.sub("", FILLER.sub("", text))
    bare = without_filler(bare) if 0 < len(bare) < len(text) else text
    return bare if bare[-1:] in '.!?…»”")' else f"{bare}."


def understood(text: str) -> float:
    """How much of a sentence is, from 0 to 1."""
    share = _OF_A_REFERENCE if _REFERS.match(text) else 1.0
    share *= _OF_AN_ADDRESS if _ADDRESSES.search(text) else 1.0
    return share * (_OF_MANY_WORDS if len(text.split()) > _LONGEST_READ_WORDS else 1.0)
