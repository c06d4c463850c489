"""How tasks are spoken of in English."""

from agents.task_manager.cues import Doer, cue
from agents.task_manager.english_verbs import bases

_LIGHTLY = r"(?: also| still| then| just| definitely| really| first| quickly)*"
_WILL = (
    r"(?: will| is going to| should| must| needs to| has to| promised to| agreed to| offered to| is supposed to| is to"
    r"| can|'ll| to)"
)
_READY = r"(?:ready|done|finished|complete|completed|sent|submitted|delivered|live|signed|paid)"
_DOING = r"(?P<verb>(?!going\b|moving\b|being\b|thinking\b|feeling\b|looking\b|hoping\b|having\b)[a-z]{3,}ing)\b"
_DONE = r"(?!able\b|there\b)[a-z]+(?:ed|en|nt|pt|ne|lt|de|ut)\b"
_ASK = r"(?:ask|asked|tell|told|have|get|remind|need|want)"

CUES = (
    cue(r"^\W*(?:todo|to do|to-do|action item|task)s?\s*:\s*", Doer.SPEAKER),
    cue(r"\b(?:please )?(?:remind me (?:to|about)|don't (?:let me )?forget to|remember to)\b", Doer.SPEAKER, asks=True),
    cue(rf"\b{_ASK} <name> to\b", asks=True),
    cue(r"\bassign(?:ed|ing)? (?P<work>[^,;.]+?) to <name>"),
    cue(r"(?P<work>[^,;.:]+?) (?:is|are) (?:now )?(?:on|up to|assigned to) <name>"),
    cue(
        rf"<name>(?:, [^,.;:!?]{{2,40}},)?{_LIGHTLY}{_WILL}{_LIGHTLY} "
        r"(?!be\b|not\b|have\b|never\b|need\b|want\b|like\b|love\b)"
    ),
    cue(r"<name>,? (?:please|could you(?: please)?|can you(?: please)?|would you(?: please)?),? ", asks=True),
    cue(r"^\W*<name>\s*(?::|—|–| - )\s*"),
    cue(
        rf"\b(?<!if )(?<!do )I(?:'ll| will| shall|'m going to| am going to| must|'ve got to| promised to| agreed to"
        rf"| plan to| should| (?:also |still |really |only )?(?:need|have|ought) to){_LIGHTLY} "
        r"(?!be\b|not\b|never\b|see\b|know\b|think\b|say\b|admit\b|miss\b|love\b|need\b|want\b|like\b|wait\b"
        r"|confess\b|understand\b|probably\b|maybe\b|have to\b|make it\b|remember\b|survive\b|manage\b|try\b(?! to))"
        r"(?:try to )?",
        Doer.SPEAKER,
    ),
    cue(rf"\bI (?:promise|plan|intend|aim) to{_LIGHTLY} ", Doer.SPEAKER),
    cue(
        rf"\b(?:we(?:'ll| will| need to| have to| must| should|'re going to| are going to| ought to)|let's){_LIGHTLY} "
        r"(?!be\b|not\b|never\b|see\b|know\b|think\b|say\b|hope\b|wait\b|need\b|have\b|talk\b|call it\b|use\b"
        r"|go with\b|make it\b)"
    ),
    cue(rf"(?P<work>[^,;.:!?]+?) (?:must|should|has to|have to|needs? to) be {_READY}\b"),
    cue(rf"(?P<work>[^,;.:!?]+?) (?:must|should|has to|have to|needs? to|will) be (?:{_READY}|{_DONE})", weak=True),
    cue(r"(?P<work>[^,;.:!?]+?) needs? [a-z]+ing\b"),
    cue(r"\b(?:he|she|they)(?: still| also)? (?:needs? to|has to|have to|must) (?!be\b|know\b|see\b)"),
    cue(rf"<name>(?:'s| is) {_DOING}", weak=True),
    cue(rf"\bI(?:'m| am) {_DOING}", Doer.SPEAKER, weak=True),
    cue(rf"\bwe(?:'re| are) {_DOING}", weak=True),
    cue(r"(?P<work>[^,;.:!?]+?) (?:is|are) (?:all )?due\b", weak=True),
    cue(r"\b(?:the )?deadline for (?P<work>[^,;.:!?]+?) (?:is|was set for|will be)\b", weak=True),
    cue(r"^\W*(?:also |and |then |please )*(?:need|have) to ", Doer.SPEAKER),
    cue(r"\bmake sure (?:to|that) ", Doer.SPEAKER, weak=True),
    cue(
        r"\b(?:please|could you(?: please)?|can you(?: please)?) (?!ask\b|remind\b|tell\b|let me know\b)",
        asks=True,
        weak=True,
    ),
)

# "…, that's on Kevin" names the doer of what was said just before.
AFTERTHOUGHT = cue(r"\b(?:that's|that is|it's|this is|which is)(?: all)? (?:on|up to|assigned to) <name>")
# Spoil a cue in the same clause, or anywhere before it.
HEDGES = (
    r"\b(?:if|unless|whether|when|suppose|maybe|perhaps|possibly|probably|might|wish|not sure|thought|used to|why"
    r"|how)\b"
)
DISTANT_HEDGES = (
    r"\b(?:thought|wish|hoped|dreamt|said (?:he|she|they)|if i can|"
    r"if (?:i|we) (?:have|get|find|had) (?:the |some )?time)\b"
)
EMPTY_OPENINGS = r"^(?:and|but|so|also|then|well|ok|okay|please|just|that)\b[\s,]*"
ASIDES = (
    r",?\s*\b(?:please|promise|i promise|for sure|i hope|hopefully|thanks|thank you|ok|okay|as agreed|too|as well)"
    r"\b[.!]*$"
)
REASONS = r",?\s+(?:because|since|otherwise|so that|as soon as|once|unless|before you|but|which|and then we)\b.*$"
# "… and send it": what else the same person does.
AND_ALSO = rf",?\s+(?:and|then|and then|and also)\s+(?=(?P<verb>{'|'.join(sorted(set(bases().values())))})\b)"
