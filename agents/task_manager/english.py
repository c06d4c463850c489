"""English verbs of work, and the patterns that announce tasks."""

from functools import cache

from agents.task_manager.patterns import ImpliedOwner, task_pattern

_REGULAR = """
accept add adjust advise aggregate agree align allocate amend analyse analyze announce answer apply approach approve
archive arrange ask assemble assess assign attach attend audit authorise authorize backup benchmark bill block
brainstorm brief calibrate call cancel capture carry change check circulate clarify classify clean close coach collect
comment commit compare compile complete compose conduct configure confirm connect contact convert coordinate copy
correct create credit debug decide define delegate delete deliver demo deploy describe design develop diagnose
digitise digitize discuss dispatch distribute divide document double-check download draft edit eliminate email embed
enable enter equip escalate establish estimate evaluate examine exchange execute expand explain explore export extend
fetch figure file fill film filter finalise finalize finish fix flag follow format formulate forward fund gather
handle help highlight hire host identify illustrate implement import improve inform inspect install integrate
interview investigate invite invoice issue join label launch lease link list load lock log look maintain manage map
mark measure mend mention merge message migrate monitor mount move name negotiate notify obtain offer onboard open
optimise optimize order organise organize outline pack paint patch phone photograph pick pilot place plan plant polish
post prepare present print prioritise prioritize process procure profile promote propose provide publish purchase push
query quote raise rank rate reach recheck recommend reconcile record recruit redesign reduce refactor refine refresh
register release relocate remove rename renew rent repair replace reply report request reschedule research reserve
reset resolve restart restock restore return review revise rework rotate route scan schedule scope score screen search
secure select separate serve settle share ship shorten shortlist simplify simulate sketch solve sort source specify
staff start stock store study submit summarise summarize supply support survey switch sync tag talk test tidy trace
track train transfer translate transport triage trim tune type unblock unpack update upgrade upload validate verify
vet visit walk warn wash water weigh wrap
"""
# Base, past, participle.
_IRREGULAR = """
book booked booked
bring brought brought
build built built
buy bought bought
catch caught caught
choose chose chosen
cut cut cut
do did done
commit committed committed
debug debugged debugged
draw drew drawn
equip equipped equipped
flag flagged flagged
log logged logged
map mapped mapped
scan scanned scanned
vet vetted vetted
drop dropped dropped
find found found
forget forgot forgotten
freeze froze frozen
get got got
give gave given
hand handed handed
hold held held
keep kept kept
let let let
make made made
meet met met
pay paid paid
oversee oversaw overseen
plan planned planned
put put put
proofread proofread proofread
read read read
redo redid redone
rewrite rewrote rewritten
ring rang rung
run ran run
see saw seen
sell sold sold
send sent sent
set set set
show showed shown
sign signed signed
split split split
speak spoke spoken
submit submitted submitted
take took taken
tell told told
think thought thought
teach taught taught
tag tagged tagged
wrap wrapped wrapped
write wrote written
"""
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
    task_pattern(r"^\W*(?:todo|to do|to-do|action item|task)s?\s*:\s*", ImpliedOwner.SPEAKER),
    task_pattern(
        r"\b(?:please )?(?:remind me (?:to|about)|don't (?:let me )?forget to|remember to)\b",
        ImpliedOwner.SPEAKER,
        asks=True,
    ),
    task_pattern(rf"\b{_ASK} <name> to\b", asks=True),
    task_pattern(r"\bassign(?:ed|ing)? (?P<work>[^,;.]+?) to <name>"),
    task_pattern(r"(?P<work>[^,;.:]+?) (?:is|are) (?:now )?(?:on|up to|assigned to) <name>"),
    task_pattern(
        rf"<name>(?:, [^,.;:!?]{{2,40}},)?{_LIGHTLY}{_WILL}{_LIGHTLY} "
        r"(?!be\b|not\b|have\b|never\b|need\b|want\b|like\b|love\b)"
    ),
    task_pattern(r"<name>,? (?:please|could you(?: please)?|can you(?: please)?|would you(?: please)?),? ", asks=True),
    task_pattern(r"^\W*<name>\s*(?::|—|–| - )\s*"),
    task_pattern(
        rf"\b(?<!if )(?<!do )I(?:'ll| will| shall|'m going to| am going to| must|'ve got to| promised to| agreed to"
        rf"| plan to| should| (?:also |still |really |only )?(?:need|have|ought) to){_LIGHTLY} "
        r"(?!be\b|not\b|never\b|see\b|know\b|think\b|say\b|admit\b|miss\b|love\b|need\b|want\b|like\b|wait\b"
        r"|confess\b|understand\b|probably\b|maybe\b|have to\b|make it\b|remember\b|survive\b|manage\b|try\b(?! to))"
        r"(?:try to )?",
        ImpliedOwner.SPEAKER,
    ),
    task_pattern(rf"\bI (?:promise|plan|intend|aim) to{_LIGHTLY} ", ImpliedOwner.SPEAKER),
    task_pattern(
        rf"\b(?:we(?:'ll| will| need to| have to| must| should|'re going to| are going to| ought to)|let's){_LIGHTLY} "
        r"(?!be\b|not\b|never\b|see\b|know\b|think\b|say\b|hope\b|wait\b|need\b|have\b|talk\b|call it\b|use\b"
        r"|go with\b|make it\b)"
    ),
    task_pattern(rf"(?P<work>[^,;.:!?]+?) (?:must|should|has to|have to|needs? to) be {_READY}\b"),
    task_pattern(
        rf"(?P<work>[^,;.:!?]+?) (?:must|should|has to|have to|needs? to|will) be (?:{_READY}|{_DONE})", weak=True
    ),
    task_pattern(r"(?P<work>[^,;.:!?]+?) needs? [a-z]+ing\b"),
    task_pattern(r"\b(?:he|she|they)(?: still| also)? (?:needs? to|has to|have to|must) (?!be\b|know\b|see\b)"),
    task_pattern(rf"<name>(?:'s| is) {_DOING}", weak=True),
    task_pattern(rf"\bI(?:'m| am) {_DOING}", ImpliedOwner.SPEAKER, weak=True),
    task_pattern(rf"\bwe(?:'re| are) {_DOING}", weak=True),
    task_pattern(r"(?P<work>[^,;.:!?]+?) (?:is|are) (?:all )?due\b", weak=True),
    task_pattern(r"\b(?:the )?deadline for (?P<work>[^,;.:!?]+?) (?:is|was set for|will be)\b", weak=True),
    task_pattern(r"^\W*(?:also |and |then |please )*(?:need|have) to ", ImpliedOwner.SPEAKER),
    task_pattern(r"\bmake sure (?:to|that) ", ImpliedOwner.SPEAKER, weak=True),
    task_pattern(
        r"\b(?:please|could you(?: please)?|can you(?: please)?) (?!ask\b|remind\b|tell\b|let me know\b)",
        asks=True,
        weak=True,
    ),
)
# "…, that's on Kevin" names the doer of what was said just before.
AFTERTHOUGHT = task_pattern(r"\b(?:that's|that is|it's|this is|which is)(?: all)? (?:on|up to|assigned to) <name>")
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


@cache
def bases() -> dict[str, str]:
    """The base of every form of every verb."""
    irregular = [line.split() for line in _IRREGULAR.strip().splitlines()]
    known = {base for base, *_ in irregular}
    regular = [(base, past(base)) for base in _REGULAR.split() if base not in known]
    return {form: base for base, *forms in (*regular, *irregular) for form in (base, *forms)}


def pasts() -> list[str]:
    """Every form that tells of something done; forms that may as well be orders are left out."""
    return [form for form, base in bases().items() if form != base]


def past(base: str) -> str:
    """The past of a regular verb."""
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ied"
    return f"{base}ed"


# "… and send it": what else the same person does.
AND_ALSO = rf",?\s+(?:and|then|and then|and also)\s+(?=(?P<verb>{'|'.join(sorted(set(bases().values())))})\b)"
