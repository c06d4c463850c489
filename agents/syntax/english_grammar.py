"""English words and clauses: closed classes, verbs of everyday work, word orders that speak of work."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.syntax.clauses import ImpliedOwner, Word
from language.words import is_base, is_past


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


COORDINATING = _listed("and but or then so plus while")
SUBORDINATING = _listed(
    "if unless whether when whenever because since until till once although though as where which who whose that "
    "before after cos cause like"
)
# How people are spoken to who are not named, and what stands before a name: part of it, or whose it is.
ADDRESSES = _listed(
    "darling love honey hun hon babe baby mate boss bro bruv bruh dude pal buddy sweetie sweetheart dear dears sir "
    "madam ma'am chief gaffer parents pupils students staff neighbours gents ladies kids mum mom dad mam nan yall "
    "y'all lads guys folks team everyone everybody all girls boys peeps colleagues else"
)
TITLES = _listed(
    "mr mrs ms miss dr prof pastor coach uncle aunt auntie aunty granny grandma grandpa nana sister sr rev"
)
WHOSE = _listed("our my your his her their wee little old young cousin brother friend colleague neighbour son daughter")
BREAKING = _listed("if because since when while so cos cause unless")
OPENERS = _listed(
    "ok okay so and but well hey hi hello right yes yeah yep oh also then just please pls plz plss actually anyway "
    "btw fyi lads guys folks team everyone everybody all girls boys peeps still now first finally really sorry cheers "
    "thanks haha lol hmm nah yo noted deal agreed morning evening afternoon dear quick reminder note self todo asap "
    "pleeease else kindly"
)
ADVERBS = _listed(
    "also still then just definitely really first quickly only now both all probably maybe possibly kindly finally "
    "actually always hopefully please pls plz not soon already quickly certainly"
)
POINTING = _listed("them it that him her those this")
PRONOUNS = _listed("i we you he she it they this that these those there who what which u ya one ive im")
ANYBODY = _listed("someone somebody anyone anybody everyone everybody whoever")
# "The second they do": when.
MOMENTS = [["the", "second"], ["the", "minute"], ["the", "moment"]]
POLITE = _listed("please pls plz plss pleeease kindly")
# Before a date.
DATE_LEADS = _listed("by before until till on at for due from this starting beginning")
DETERMINERS = _listed(
    "a an the my your his her its our their this that these those some any every each all another both no me us him "
    "them it up off out in on over back down round around away together through for to at with into two three four "
    "five six"
)
FINITE = _listed(
    "is are was were am has have had will would can could should must may might shall do does did isn't aren't wasn't "
    "weren't hasn't haven't hadn't won't wouldn't can't couldn't shouldn't don't doesn't didn't 's 're 'll 've 'd i'm "
    "it's that's there's he's she's we're you're they're what's who's i've i'll"
)
# Verbs of states and of talk, which nobody is asked or promises to do.
STATES = _listed(
    "be not never know think say admit miss love need want like wait confess understand hope guess wish feel mean bet "
    "see have hate believe suppose imagine doubt seem sound agree reckon wonder remember survive manage live fancy "
    "swear thank enjoy laugh cry die kill stop stay keep sleep happen work"
)
# With these an order begins that is none: they begin a statement whose subject is left out, or a greeting.
UNREAL = re.compile(
    r"\b(?:(?:would|could|should|might|may|must)(?:n't)?(?:'ve| have| of) |would|might|if |maybe |perhaps |"
    r"suppose\b|imagine\b"
    r"|wish |used to |wonder|probably |whether |i'd (?!better|like to))"
)
# "Has to have it ready".
HAVE_READY = re.compile(r"\bhave .+ (?:ready|done|finished|in|out|over|up|back|sorted|complete|with \w+)$")
NO_THINGS = _listed("of by so too again")
POLITELY = re.compile(
    r"(?:would|it'd|it would|i'd) (?:be|love it|appreciate it)|"
    r"would (?:you|someone|anyone|love it|appreciate it|\ue000)|ask \ue000|i(?: have|'ve)? (?:promised|said|told)|"
    r"\ue000 (?:says|said|promised|reckons)"
)
# Verbs of what takes place, which in the present tell of a timetable.
EVENTS = _listed("start begin finish leave arrive turn go come get fly land open close end run move play sing have")
NO_ORDER = STATES - {"have"} | _listed(
    "look work best worst good bad great nice lovely new old same last next every what how why where who love thanks "
    "had got went lost found saw been going feeling being having trying looking turns guess happy merry welcome god "
    "omg wow nope no not never nothing none yes maybe one two three four five more most less much many lots loads "
    "sure fair true false home work day week month year time today tomorrow night morning lunch dinner half top well "
    "done come came bloody absolutely totally so too very pretty quite rather even only"
)
# Of a copula: whose turn it is, or what was asked of them.
_BOUND = (
    r"down|set|due|meant|supposed|going|gonna|in|up|booked in|lined up|signed up|scheduled|expected|required|requested|"
    r"asked|told|ready|happy|here|still|next"
)
MODAL = (
    r"(?:(?:'s |'ve |has |have )?(?:promised|agreed|offered|volunteered|undertaken|arranged|got|signed up) to"
    rf"|(?:'s|'m|'re|is|am|are) (?:{_BOUND}) to"
    r"|(?:'s|'m|is|am) the one(?: (?:who's|who is|to|who has to|who'll|that's))?"
    r"|'ll|will|going to|happy to|shall|must|should|'d better|better|'m gonna|gonna|need to|needs to"
    r"|have to|has to|'ve to|gotta|ought to"
    r"|'ve gotta|promised? to|plan to|intend to|aim to|is to|'s to|'re to|are to|am to|'m to|can|to|owes? (?:me|us|you)"
    r"|want to|wants to|'d like to)"
)
NEEDED = r"(?:must|should|has to|have to|had better|needs? to|will|'ll|is to|are to|got to)"
READY = r"(?:ready|done|finished|complete|sent|submitted|delivered|live|signed|paid|in|over|with \w+)"
NAME = "\ue000"
WHO = NAME
ADV = rf"(?: (?:{'|'.join(ADVERBS)}))*"
VERB = rf"(?P<verb>(?!(?:{'|'.join(DETERMINERS | ADVERBS | PRONOUNS)})\b)[a-z][a-z'-]+)"
SUBJECT = (
    rf"(?P<who>{WHO}(?: and (?:{WHO}|me))?|me and {WHO}|i|we|he|she|they|someone|somebody|anyone|anybody"
    r"|whoever(?: [a-z]+){1,3}?|(?:one|any|some) of (?:you|us)|you(?: guys| lot| two)?|u)"
)

OBJECTS = _listed("a an the my your his her its our their this that these those some any every another me us him them")


def may_order(word: str) -> bool:
    """Check that a word may be a verb in its base form."""
    closed = NO_ORDER | DATE_LEADS | PRONOUNS | FINITE | DETERMINERS | SUBORDINATING | ADVERBS | OPENERS | ANYBODY
    return (
        word.isalpha()
        and word not in closed
        and not is_past(word)
        and (is_base(word) or not word.endswith(("ing", "ly")))
    )


def is_finite(word: Word) -> bool:
    return word.lower in FINITE or (re.search(r"'(?:s|re|ll|ve)$", word.lower) is not None and not word.mention)


def leads_to_date(words: Sequence[Word], at: int) -> bool:
    """Check for the "by" of "by Friday"."""
    return at + 1 < len(words) and words[at + 1].is_date and not words[at].is_date and words[at].lower in DATE_LEADS


_NOBODY = ImpliedOwner.NOBODY


@dataclass(frozen=True)
class Frame:
    """Word order of a clause that speaks of work.

    `asks` may be a question; a weak one is work only with a date; without a subject it is the speaker's or nobody's.
    """

    pattern: re.Pattern[str]
    asks: bool = False
    weak: bool = False
    default: ImpliedOwner = _NOBODY


def frame(pattern: str, *, asks: bool = False, weak: bool = False, default: ImpliedOwner = _NOBODY) -> Frame:
    return Frame(re.compile(pattern), asks, weak, default)


AFTERTHOUGHT = frame(
    rf"^(?:that's|that is|it's|this is|which is)(?: all)? (?:(?:on|up to|assigned to|down to|for) (?P<who>{WHO}|me)|"
    rf"(?P<for>{WHO}|my)(?:'s)? (?:job|department|problem|turn|baby|area|thing))$"
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
        rf"^(?:[a-z'{NAME}]+ )?(?:[a-z']+ )?(?:ask|asked|tell|told|get|have|want|wants|need|needs) "
        rf"(?P<who>{WHO}|him|her) (?:to )?(?!on |in |up |down |over ){VERB}(?! was| is|'s)",
        asks=True,
    ),
    frame(
        rf"^(?:(?:i|we|i've|we've|i'll|we'll|let's|i'd|we'd) )?(?:got|have|get|put|want|need|like|stick|stuck) "
        rf"(?P<who>{WHO}|me) (?:(?:[^ ]+ ){{1,6}}?to {VERB}|(?:down )?(?:on|for|in charge of) (?P<work>.+))"
    ),
    frame(r"^(?:please |you can )?(?:sign|count|pencil) (?P<who>me) (?:in|up|down)(?: for)? (?P<work>.+)"),
    frame(rf"^(?:tell|ask) (?P<who>{WHO}) (?P<work>.+)"),
    frame(
        rf"^[^ ]+(?: [^ ]+)?(?: [^ ]+)? (?:wants|needs|asked|expects|would like) (?P<who>me|us|you|{WHO}) "
        rf"(?:[^ ]+ ){{0,2}}?to {VERB}"
    ),
    # Talked into it: "mum made me promise to ring her", "I've been roped into judging the cakes".
    frame(
        rf"^(?!(?:can|could|do|did|would|will|please|let|help|it)\b)[^ ]+(?: [^ ]+){{0,3}}? "
        rf"(?!help|teach|taught|allow|let)[a-z]+ me "
        rf"(?:promise (?:that )?(?:to|i'd|i'll|i would)|swear to|into|to) {VERB}",
        default=ME,
    ),
    frame(
        rf"^i(?:'m|'ve| am| have| was| got)(?: been| got)? (?:[a-z]+(?:ed|ld|uck|nto)|put down)(?: in| up| down)? "
        rf"(?:into|to|with|for) {VERB}",
        default=ME,
    ),
    # Requests.
    frame(
        rf"^(?:(?P<called>{WHO}) )?(?:can|could|would|will|cld) {SUBJECT}{ADV}"
        rf"(?: be able to| be (?:ok|okay|happy|free) to)? {VERB}",
        asks=True,
    ),
    frame(rf"^(?:(?:do|would) (?P<who>you|{WHO}) )?mind {VERB}", asks=True),
    frame(
        rf"^(?:ask|check with|text|ring|see) (?P<who>{WHO}) (?:if|whether) (?:he|she|they) "
        rf"(?:can|could|will|would) {VERB}"
    ),
    frame(rf"^(?:is )?(?:any|some|every)(?:one|body) (?:free|able|around|available|happy) to {VERB}", asks=True),
    frame(rf"^(?:i |we |i'll |we'll |gonna )?(?:need|want|'d like) (?P<who>you|someone|somebody|{WHO}) to {VERB}"),
    frame(rf"^(?:any )?chance (?:of you |you |someone |u )(?:can |could |might )?{VERB}", asks=True),
    frame(rf"^(?:would|it'd|it would|i'd) (?:be [a-z]+|(?:love|appreciate) it) if {SUBJECT}(?: could| can)? {VERB}"),
    frame(rf"^let's{ADV} {VERB}"),
    # Duties and promises.
    frame(
        rf"^(?:(?:it's |it is |its |that's )?{SUBJECT}(?: who| that)? ?)?{ADV} ?{MODAL}{ADV} "
        rf"(?:try to |go and |pop and |go |"
        rf"remember to |not forget to |be able to |make sure (?:to|i|we) |be (?=[a-z]+ing)|to )?{VERB}",
        default=ME,
    ),
    frame(rf"^{SUBJECT}{ADV} (?:promise|plan|intend|aim|need|have|ought|want){ADV} to{ADV} {VERB}"),
    frame(rf"^{SUBJECT}(?:'ve| have|'s| has)? ?(?:got |have |has )(?P<object>.{{2,60}}?) to {VERB}"),
    frame(rf"^(?P<who>you|u){ADV} {VERB}", weak=True),
    frame(rf"^(?P<who>you)(?:'re| are){ADV} (?P<verb>[a-z]{{2,}}ing)\b(?! to\b)", weak=True),
    frame(rf"^(?:i |i've |i'm )?(?:keep|kept|been|always) meaning to {VERB}", default=ME),
    frame(rf"^(?P<who>someone|somebody|anyone) {VERB}"),
    frame(rf"^i(?: have|'ve)? (?:promised|said|told)(?: [^ ]+){{0,3}} (?:i'd|i would|to) {VERB}", default=ME),
    frame(rf"^(?:it's |is )?(?P<who>my|{WHO})(?:'s)? (?:turn|job|go) (?:to {VERB}|on (?P<work>.+))"),
    frame(rf"^(?P<who>{WHO}) (?:still )?owes? (?:me|us) (?P<work>.+)", weak=True),
    frame(rf"^(?:i'm |we're |still )?(?:waiting|chasing) (?:on |for )?(?P<who>{WHO}) (?:for|to|re|about) (?P<work>.+)"),
    frame(
        rf"^(?P<who>{WHO}) (?:says|said|promised|reckons|swore|confirmed|told (?:me|us))(?: that)? "
        rf"(?:he|she|they)(?:'s going to|'ll|'d| will| would) {VERB}"
    ),
    frame(rf"^(?:it's|its|that's) (?:on|down to|up to) (?P<who>me|you|{WHO}) to {VERB}"),
    frame(rf"^(?P<who>my|your|{WHO})(?:'s)? job is to {VERB}"),
    frame(rf"^(?:i'm |we're )?(?:hoping|planning|aiming|meaning|supposed|due) to {VERB}", weak=True, default=ME),
    frame(
        r"^(?:i've |we've |i have |i )?(?:got |have )(?:an? |my |the )(?P<work>(?:[a-z]+ ){0,2}"
        r"(?:appointment|meeting|call|interview|viewing|class|lesson|shift|session|exam|test|deadline|check-up)\b.*)",
        weak=True,
        default=ME,
    ),
    frame(
        rf"^(?:(?:i|we|i'm|we're|still) )*(?:need|want|require|expect|expecting|want) (?P<work>.+?) (?:back |over )?"
        rf"(?:from|off) (?P<who>you|{WHO})$"
    ),
    # Work named by what it is done to.
    frame(
        rf"^(?P<work>.+?) {NEEDED} be (?:{READY}|[a-z]+(?:ed|en|nt|pt|ne|lt|de|ut|id))\b(?P<tail>.*)", weak=True
    ),
    frame(r"^(?P<work>.+?) (?:needs?|wants?) (?:a )?(?P<tail>(?:[a-z]{3,}ing\b).*)"),
    frame(r"^(?P<work>.+?)(?: is| are|'s|'re)(?: all)? due\b(?! to\b)", weak=True),
    frame(r"^(?:the )?deadline for (?P<work>.+?) (?:is|was set for|will be)\b", weak=True),
    frame(
        rf"^(?:{SUBJECT} ?)?(?:'ll |will |gonna |am gonna |'m gonna |really )*(?:need|want|require)s? "
        rf"(?!to\b)(?P<work>.+)",
        weak=True,
    ),
    frame(r"^(?P<work>(?:(?:the|my|our|your|that) .+?|[a-z]+) (?:needs?|wants?) (?!to\b|me\b|us\b).+)", weak=True),
    # Whose it is.
    frame(rf"^assign(?:ed|ing)? (?P<work>.+?) to (?P<who>{WHO})"),
    frame(rf"^(?P<work>.+?)(?: is| are|'s|'re) (?:now )?(?:on|up to|assigned to|down to) (?P<who>{WHO}|me)$"),
    frame(
        rf"^(?P<work>.+?)(?: is| are|'s|'re) (?:now )?(?P<who>{WHO}(?='s)|mine|yours)(?:'s)?"
        r"(?: (?:now|to do|job|task|from now on))?$"
    ),
    frame(
        rf"^(?P<who>{WHO}|i|he|she|we|you)(?:'s|'m|'re| is| am| are)? (?:down for|in charge of|responsible for|"
        r"(?:on|doing) (?!holiday|leave|call|my way|your own|it$|the |a |his |her )) ?(?P<work>.+)",
        weak=True,
    ),
    frame(rf"^(?P<who>{WHO})(?:'s| has) got (?P<work>(?:the|that|this|our) .+)", weak=True),
    # A thing that goes to somebody, said without a verb.
    frame(rf"^(?!.*\b(?:{'|'.join(sorted(FINITE))})\b)(?P<work>.+ (?:back )?to (?:me|us))$", weak=True),
    frame(rf"^leave (?P<work>.+?) (?:to|with) (?P<who>me|{WHO})(?= |$)"),
    frame(rf"^(?P<who>{WHO}|i|we)(?:'s| has|'ve| have)(?: got)? (?:for|on) (?P<work>.+)", weak=True),
    # The work before who does it: "the invoices I'll send on Monday".
    frame(rf"^(?P<object>[^ ]+(?: [^ ]+){{0,4}}) {SUBJECT}(?:'ll| will| must|'ve to| have to) {VERB}$"),
    # Plans, with their date.
    frame(
        rf"^(?:(?P<who>i|we|he|she|{WHO}(?: and (?:{WHO}|me))?|me and {WHO}) ?(?:'m|am|'re|are|'s|is) )?"
        rf"{ADV} ?(?P<verb>[a-z]{{2,}}ing)\b(?! to\b)",
        weak=True, default=ME,
    ),
    frame(rf"^(?P<who>he|she|{WHO}){ADV} (?P<verb>[a-z]{{2,}}s)\b", weak=True),
    frame(rf"^(?P<who>i){ADV} {VERB}", weak=True),
)  # fmt: skip
