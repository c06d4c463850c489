"""Self-contained sentences: what can be understood without the rest of the dialogue."""

import re

# Factors for a sentence that begins with a reference, that addresses or refers to somebody, that is long.
_REFERENCE, _ADDRESS, _LONG = 0.5, 0.8, 0.6
_LONG_WORDS = 22
_FILLER = re.compile(
    r"^(?:(?:ok(?:ay)?|well|so|right|great|alright|all right|anyway|good|yes|yeah|sure|then|and|but|also|"
    r"ну|итак|так|ладно|хорошо|окей|ок|отлично|значит|в общем|короче|да|тогда|и|кстати)\b[\s,.!—–-]+)+",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:by the way|actually|honestly|you know(?: what)?|guess what|to be honest|anyways?|besides|"
    r"in fact|of course|also|plus|oh|ah|wow|hey|"
    r"слушай(?:те)?|знаешь|знаете|честно говоря|вообще|представляешь|в принципе|ой|ах|кстати)\b[\s,.!?—–-]+)+",
    re.IGNORECASE,
)
# References to what was said before.
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


def without_filler(text: str) -> str:
    """Sentence without leading filler words, capitalised."""
    bare = _FILLER.sub("", text)
    is_lower_case = bare[:1].islower() and bare.split()[0][1:] == bare.split()[0][1:].lower()
    return (bare[:1].upper() + bare[1:] if is_lower_case else bare) or text


def without_lead_in(text: str) -> str:
    """Sentence without leading filler and discourse markers, with a full stop."""
    bare = _LEAD.sub("", _FILLER.sub("", text))
    bare = without_filler(bare) if 0 < len(bare) < len(text) else text
    return bare if bare[-1:] in '.!?…»”")' else f"{bare}."


def self_containedness(text: str) -> float:
    """Factor from 0 to 1: the share of a sentence's score that it keeps when it stands alone."""
    factor = _REFERENCE if _REFERS.match(text) else 1.0
    factor *= _ADDRESS if _ADDRESSES.search(text) else 1.0
    return factor * (_LONG if len(text.split()) > _LONG_WORDS else 1.0)
