"""Verbs of work in English, in the forms in which people promise, report."""

from functools import cache

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
