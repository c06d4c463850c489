"""Closed classes of English words."""

import re


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


COORDINATING = _listed("and but or then so plus while")
SUBORDINATING = _listed(
    "if unless whether when whenever because since until till once although though as where which who whose that "
    "before after cos cause like"
)
BREAKING = _listed("if because since when while so cos cause unless")
HEDGES = _listed("if unless whether maybe perhaps possibly might suppose imagine wish probably hopefully wonder")
OPENERS = _listed(
    "ok okay so and but well hey hi hello right yes yeah yep oh also then just please pls plz plss actually anyway btw "
    "fyi lads guys folks team everyone everybody all girls boys peeps still now first finally really sorry cheers "
    "thanks haha lol hmm morning evening afternoon dear quick reminder note self todo asap pleeease"
)
ADVERBS = _listed(
    "also still then just definitely really first quickly only now both all probably maybe possibly kindly finally "
    "actually always hopefully please pls plz not soon already quickly certainly"
)
PRONOUNS = _listed("i we you he she it they this that these those there who what which u ya one ive im")
ANYBODY = _listed("someone somebody anyone anybody everyone everybody whoever")
# "The second they do": when.
MOMENTS = [["the", "second"], ["the", "minute"], ["the", "moment"]]
POLITE = _listed("please pls plz plss pleeease")
CONTRACTIONS = {
    "im": "i'm", "ive": "i've", "id": "i'd", "dont": "don't", "cant": "can't", "wont": "won't", "didnt": "didn't",
    "doesnt": "doesn't", "isnt": "isn't", "thats": "that's", "lets": "let's", "youre": "you're", "u": "you", "r": "are",
    "wouldve": "would've", "shouldve": "should've", "gotta": "gotta", "tryna": "trying to", "wanna": "want to",
    "gonna": "gonna", "needa": "need to", "cannot": "can't", "todo": "todo",
}  # fmt: skip
DETERMINERS = _listed(
    "a an the my your his her its our their this that these those some any every each all another both no me us "
    "him them "
    "it up off out in on over back down round around away together through for to at with into two three four five six"
)
FINITE = _listed(
    "is are was were am has have had will would can could should must may might shall do does did isn't aren't wasn't "
    "weren't hasn't haven't hadn't won't wouldn't can't couldn't shouldn't don't doesn't didn't 's 're 'll 've 'd i'm "
    "it's that's there's he's she's we're you're they're what's who's i've i'll"
)
# Verbs of states and of talk, which nobody is asked or promises to do.
STATES = _listed(
    "be not never know think say admit miss love need want like wait confess understand hope guess wish feel mean bet "
    "see have hate believe suppose imagine doubt seem sound agree reckon wonder remember survive manage live "
    "fancy swear thank enjoy laugh cry die kill stop stay keep sleep happen work"
)
# With these an order begins that is none: they begin a statement whose subject is left out, or a greeting.
UNREAL = re.compile(
    r"\\b(?:(?:would|could|should|might|may|must)(?:n't)?(?:'ve| have| of) |would|might|if |maybe |perhaps |"
    r"suppose|imagine"
    r"|wish |used to |wonder|probably |whether |i'd (?!better|like to))"
)
POLITELY = re.compile(r"(?:would|it'd|it would) be|would (?:you|someone|anyone)|i(?: have|'ve)? promised")
NO_ORDER = STATES - {"have"} | _listed(
    "look work best worst good bad great nice lovely new old same last next every what how why where who love "
    "thanks had got went "
    "lost found saw been going feeling being having trying looking turns guess happy merry welcome god omg wow nope no "
    "not never nothing none yes maybe one two three four five more most less much many lots loads sure fair true false "
    "home work day week month year time today tomorrow night morning lunch dinner half top well done come came "
    "bloody absolutely totally so too very pretty quite rather even only"
)
MODAL = (
    r"(?:(?:'ll|will|shall|must|should|'d better|better|'m gonna|gonna|'m going to|am going to|going to|is going to"
    r"|'s going to|are going to|'re going to|need to|needs to|have to|has to|'ve to|'ve got to|have got to|'s "
    r"got to|has got to"
    r"|got to|gotta|'ve gotta|ought to|promised? to|agreed to|plan to|intend to|aim to|offered to|is supposed to"
    r"|'m supposed to|is to|'s to|'re to|are to|am to|'m to|can|to|owes? (?:me|us|you)|want to|wants to|'d like to))"
)
NEEDED = r"(?:must|should|has to|have to|had better|needs? to|will|'ll|is to|are to|got to)"
READY = r"(?:ready|done|finished|complete|sent|submitted|delivered|live|signed|paid|in|over|with \w+)"
NAME = "\ue000"
WHO = NAME
ADV = rf"(?: (?:{'|'.join(ADVERBS)}))*"
VERB = rf"(?P<verb>(?!(?:{'|'.join(DETERMINERS | ADVERBS | PRONOUNS)})\b)[a-z][a-z'-]+)"
SUBJECT = (
    rf"(?P<who>{WHO}|i|we|he|she|they|someone|somebody|anyone|anybody|whoever(?: [a-z]+){{1,3}}?"
    r"|(?:one|any|some) of (?:you|us)|you(?: guys| lot| two)?|u)"
)

OBJECTS = _listed("a an the my your his her its our their this that these those some any every another me us him them")
