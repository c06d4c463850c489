"""English verbs of everyday work with their forms."""

from functools import cache

_REGULAR = """
    accept add adjust advise aggregate agree align allocate amend analyse analyze announce answer apply approach
    approve archive arrange ask assemble assess assign attach attend audit authorise authorize backup bake benchmark
    bill block brainstorm brief brush bump calibrate call calm cancel capture carry change charge chase check chuck
    circulate clarify classify clean clear close coach collect comment compare compile complete compose conduct
    configure confirm connect contact convert cook coordinate copy correct count cover create credit cycle decide
    define delegate delete deliver demo deploy describe design develop diagnose dig digitise digitize discuss dispatch
    distribute divide document double-check download draft drag drain dry dump dust edit eliminate email embed empty
    enable enter escalate escort establish estimate evaluate examine exchange execute expand explain explore export
    extend fax fetch figure file fill film filter finalise finalize finish fix fold follow format formulate forward
    fund gather google grease grit handle help highlight hire hoover host identify illustrate implement import improve
    inform inspect install integrate interview investigate invite invoice iron issue jet join jot kick knock label
    launch lease lift link list load lock look mail maintain manage mark measure mend mention merge message migrate
    monitor mount move mow mute name negotiate notify nudge obtain offer onboard open optimise optimize order organise
    organize outline pack paint park pass patch peel phone photograph pick pilot ping place plant plaster polish post
    pour pray prepare present press print prioritise prioritize process procure profile promote propose provide
    publish pull pump purchase push query quote raise rake rank rate reach recheck recommend reconcile record recruit
    redesign reduce refactor refill refine refresh refuel refund register reheat release relocate remind remove rename
    renew rent repair replace reply report request reschedule research reserve reset resolve restart restock restore
    return review revise rework rinse rota rotate route sand save schedule scope score screen scrub seal search secure
    select separate serve settle shake share sharpen shorten shortlist simplify simulate sketch skip slide soak solve
    sort source specify spin spray stack staff stamp start stir stock store study summarise summarize supply support
    survey swing switch sync talk tape test text tick tidy tighten time toast tow trace track train transfer translate
    transport triage tune turn type unblock unload unlock unpack untangle update upgrade upload vacuum validate verify
    visit wait walk warm warn wash water weed weigh wind wipe wire zip
"""
# Base, past, participle.
_IRREGULAR = """
    book booked booked | bring brought brought | build built built | buy bought bought | catch caught caught | choose
    chose chosen | cut cut cut | do did done | commit committed committed | debug debugged debugged | draw drew drawn
    | equip equipped equipped | flag flagged flagged | log logged logged | map mapped mapped | scan scanned scanned |
    vet vetted vetted | drop dropped dropped | find found found | forget forgot forgotten | freeze froze frozen | get
    got got | give gave given | hand handed handed | hold held held | keep kept kept | let let let | make made made |
    meet met met | pay paid paid | oversee oversaw overseen | plan planned planned | put put put | proofread proofread
    proofread | read read read | redo redid redone | rewrite rewrote rewritten | ring rang rung | run ran run | see
    saw seen | sell sold sold | send sent sent | set set set | show showed shown | sign signed signed | split split
    split | speak spoke spoken | submit submitted submitted | take took taken | tell told told | think thought thought
    | teach taught taught | tag tagged tagged | wrap wrapped wrapped | write wrote written | leave left left | throw
    threw thrown | drive drove driven | feed fed fed | lend lent lent | light lit lit | shut shut shut | spend spent
    spent | sweep swept swept | swim swam swum | wear wore worn | win won won | wake woke woken | lay laid laid | lose
    lost lost | come came come | go went gone | eat ate eaten | drink drank drunk | fall fell fallen | fly flew flown
    | forgive forgave forgiven | hang hung hung | hear heard heard | hide hid hidden | hit hit hit | know knew known |
    lead led led | mean meant meant | ride rode ridden | rise rose risen | sit sat sat | sleep slept slept | stand
    stood stood | steal stole stolen | stick stuck stuck | swap swapped swapped | stop stopped stopped | chat chatted
    chatted | plug plugged plugged | bin binned binned | scrap scrapped scrapped | grab grabbed grabbed | mop mopped
    mopped | ship shipped shipped | pin pinned pinned | pop popped popped | nip nipped nipped | top topped topped |
    trim trimmed trimmed | tip tipped tipped | unzip unzipped unzipped | cost cost cost | deal dealt dealt | feel felt
    felt | fight fought fought | grow grew grown | begin began begun | break broke broken | bite bit bitten | blow
    blew blown | burn burnt burnt | say said said | have had had | be was been
"""


@cache
def bases() -> dict[str, str]:
    """The base of every form of every verb."""
    irregular = [entry.split() for entry in _IRREGULAR.split("|")]
    regular = [(base, _past(base)) for base in _REGULAR.split()]
    return {form: base for base, *forms in (*regular, *irregular) for form in (base, *forms)}


def is_base(word: str) -> bool:
    """Whether a word may be the base form of one of the verbs."""
    return word in _base_forms()


def is_past(word: str) -> bool:
    """Whether a word is the past or the participle of a verb, known or regular, and no base."""
    is_regular = len(word) > 4 and word.endswith("ed") and word not in _NO_PAST
    return word not in _base_forms() and (word in bases() or is_regular)


def base_of(word: str) -> str:
    """The base of a verb: of a known form, or of its participle in -ing."""
    if word in bases() or not word.endswith("ing"):
        return bases().get(word, word)
    stem = word.removesuffix("ing")
    doubled = stem[:-1] if len(stem) > 2 and stem[-1] == stem[-2] else stem
    return next((each for each in (stem, f"{stem}e", doubled) if each in _base_forms()), word)


@cache
def _base_forms() -> frozenset[str]:
    return frozenset(bases().values())


_NO_PAST = frozenset(
    ["need", "feed", "speed", "indeed", "exceed", "proceed", "succeed", "weed", "seed", "bleed", "breed"]
)


def _past(base: str) -> str:
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ied"
    return f"{base}ed"
