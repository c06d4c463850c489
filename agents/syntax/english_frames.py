"""Word orders of English clauses that speak of work."""

import re
from dataclasses import dataclass

from agents.syntax.clauses import ImpliedOwner
from agents.syntax.english_words import ADV, MODAL, NAME, NEEDED, READY, SUBJECT, VERB, WHO


@dataclass(frozen=True)
class Frame:
    """Word order of a clause that speaks of work.

    `asks` may be a question; a weak one is work only with a date; without a subject it is the speaker's or nobody's.
    """

    pattern: re.Pattern[str]
    asks: bool = False
    weak: bool = False
    default: ImpliedOwner = ImpliedOwner.NOBODY


def frame(
    pattern: str, *, asks: bool = False, weak: bool = False, default: ImpliedOwner = ImpliedOwner.NOBODY
) -> Frame:
    return Frame(re.compile(pattern), asks, weak, default)


AFTERTHOUGHT = frame(
    rf"^(?:that's|that is|it's|this is|which is)(?: all)? (?:on|up to|assigned to|down to|for) (?P<who>{WHO}|me)$"
)
ME = ImpliedOwner.SPEAKER
FRAMES = (
    # Reminders and what must not be forgotten.
    frame(
        rf"^(?:can you |could you )?remind (?P<for>me|us|{WHO})(?: to {VERB}| (?:about|of)(?= ))",
        asks=True,
        default=ME,
    ),
    frame(
        r"^(?:do not|don't|never|can't|mustn't|must not|not to)(?: let me| let us)? forget"
        rf"(?: to {VERB}|(?: about)?(?= ))",
        default=ME,
    ),
    frame(rf"^remember to {VERB}", default=ME),
    frame(rf"^make sure (?:you |to |that )?{VERB}", default=ME),
    # Somebody is to tell, ask or get somebody else.
    frame(
        rf"^(?:[a-z'{NAME}]+ )?(?:[a-z']+ )?(?:ask|asked|tell|told|get|have|want|wants|need|needs) (?P<who>{WHO}) "
        rf"(?:to )?{VERB}(?! was| is|'s)",
        asks=True,
    ),
    frame(rf"^(?:tell|ask) (?P<who>{WHO}) (?P<work>.+)"),
    frame(rf"^[^ ]+(?: [^ ]+)?(?: [^ ]+)? (?:wants|needs|asked|expects|would like) (?P<who>me|us|you|{WHO}) to {VERB}"),
    # Requests.
    frame(
        rf"^(?:(?P<called>{WHO}) )?(?:can|could|would|will|cld) {SUBJECT}{ADV}"
        rf"(?: be able to| be (?:ok|okay|happy|free) to)? {VERB}",
        asks=True,
    ),
    frame(rf"^(?:do|would) you mind {VERB}", asks=True),
    frame(rf"^(?:any )?chance (?:of you |you |someone |u )(?:can |could |might )?{VERB}", asks=True),
    frame(rf"^(?:would|it'd|it would) be [a-z]+ if {SUBJECT}(?: could| can)? {VERB}"),
    frame(rf"^let's{ADV} {VERB}"),
    # Duties and promises.
    frame(
        rf"^(?:{SUBJECT} ?)?{ADV} ?{MODAL}{ADV} (?:try to |go and |pop and |go |remember to |not forget to |"
        rf"be able to |make sure (?:to|i|we) )?{VERB}",
        default=ME,
    ),
    frame(rf"^{SUBJECT}{ADV} (?:promise|plan|intend|aim|need|have|ought|want){ADV} to{ADV} {VERB}"),
    frame(rf"^{SUBJECT}(?:'ve| have|'s| has)? ?(?:got |have |has )(?P<object>.{{2,60}}?) to {VERB}"),
    frame(rf"^(?P<who>{WHO}) (?:you |u ){ADV} ?{VERB}"),
    frame(rf"^(?P<who>someone|somebody|anyone) {VERB}"),
    frame(rf"^i(?: have|'ve)? promised(?: [^ ]+){{0,3}} (?:i'd|i would|to) {VERB}", default=ME),
    frame(rf"^(?:it's |is )?(?P<who>my|{WHO})(?:'s)? (?:turn|job|go) (?:to {VERB}|on (?P<work>.+))"),
    frame(rf"^(?P<who>{WHO}) (?:still )?owes? (?:me|us) (?P<work>.+)", weak=True),
    frame(rf"^(?:i'm |we're |still )?(?:waiting|chasing) (?:on |for )?(?P<who>{WHO}) (?:for|to|re|about) (?P<work>.+)"),
    # Work named by what it is done to.
    frame(
        rf"^(?P<work>.+?) {NEEDED} be (?:{READY}|[a-z]+(?:ed|en|nt|pt|ne|lt|de|ut|id))\b(?P<tail>.*)", weak=True
    ),
    frame(r"^(?P<work>.+?) needs? (?:a )?(?P<tail>(?:[a-z]{3,}ing\b).*)"),
    frame(r"^(?P<work>.+?) (?:is|are|'s)(?: all)? due\b", weak=True),
    frame(r"^(?:the )?deadline for (?P<work>.+?) (?:is|was set for|will be)\b", weak=True),
    frame(
        rf"^(?:{SUBJECT} ?)?(?:'ll |will |gonna |am gonna |'m gonna |really )*(?:need|want|require)s? "
        rf"(?!to\b)(?P<work>.+)",
        weak=True,
    ),
    # Whose it is.
    frame(rf"^assign(?:ed|ing)? (?P<work>.+?) to (?P<who>{WHO})"),
    frame(rf"^(?P<work>.+?)(?: is| are|'s|'re) (?:now )?(?:on|up to|assigned to|down to) (?P<who>{WHO}|me)$"),
    frame(
        rf"^(?P<work>.+?)(?: is| are|'s|'re) (?:now )?(?P<who>{WHO}(?='s)|mine|yours)(?:'s)?"
        r"(?: (?:now|to do|job|task|from now on))?$"
    ),
    frame(
        rf"^(?P<who>{WHO})(?:'s| is) (?:on|down for|doing) (?P<work>(?!holiday|leave|call|the phone|a |his |her ).+)",
        weak=True,
    ),
    frame(r"^leave (?P<work>.+?) (?:to|with) (?P<who>me)\b"),
    # Plans, with their date.
    frame(
        rf"^(?:(?P<who>i|we|{WHO}) ?(?:'m|am|'re|are|'s|is) )?{ADV} ?(?P<verb>[a-z]{{2,}}ing)\b(?! to\b)",
        weak=True, default=ME,
    ),
)  # fmt: skip
