"""Outputs of a model that are no result: nothing, a refusal, one in another language, one off the topic."""

from dataclasses import dataclass

from agents.creative.refusals import is_refusal
from agents.models.errors import AnswerMisfit
from bus_schema.history import sanitise_text
from bus_schema.runs import MisbehaviourKind
from language.identification import name_of, other_language
from language.sentences import sentences
from language.words import terms, words
from mindbus.sdk.steps import items_of

_LONGEST_WORDS_CHARS = 500
_FEWEST_TERMS = 15
# Summaries share 38 % to 86 % of their terms with the talk that they are of; of unrelated talks they share 17 %.
_SHARED_TERMS = 0.1
_REPEATED, _FEWEST_REPEATED = 0.8, 6


class ModelMisbehaviour(AnswerMisfit):
    """The model's answer is no result; another model, or other instructions, may help."""

    def __init__(self, kind: MisbehaviourKind, detail: str, text: str = "") -> None:
        super().__init__(detail, text)
        self.kind = kind

    @property
    def retryable(self) -> bool:
        """True: another attempt may be a result."""
        return True

    def __str__(self) -> str:
        quote = f": “{excerpt(self.text, 160)}”" if self.text.strip() else ""
        return f"the model {self.detail}{quote}; try another model, or change the instructions of the step"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.kind, self.detail, self.text), self.__dict__


def excerpt(text: str, most: int = _LONGEST_WORDS_CHARS) -> str:
    """The beginning of a model's words on one line, without NUL and lone surrogates."""
    line = " ".join(sanitise_text(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


@dataclass(frozen=True)
class Expectation:
    """Requirements of an output: its language by code, if any; the material it has to do with, if that matters.

    One that `is_list` has items. What the role was told of its work, `told`, is no result.
    """

    language: str | None = None
    material: str | None = None
    is_list: bool = False
    told: str = ""

    def check(self, text: str) -> None:
        """Raises ModelMisbehaviour."""
        if not any(letter.isalnum() for letter in text):
            raise ModelMisbehaviour(MisbehaviourKind.EMPTY, "answered nothing", text)
        if is_refusal(text):
            raise ModelMisbehaviour(MisbehaviourKind.REFUSAL, "refused the task", text)
        if self.told and is_repeated(text, self.told):
            detail = "repeated what it was told of its work"
            raise ModelMisbehaviour(MisbehaviourKind.OFF_TOPIC, detail, text)
        if self.language and (other := other_language(text, self.language)):
            detail = f"wrote {name_of(other)} instead of {name_of(self.language)}"
            raise ModelMisbehaviour(MisbehaviourKind.WRONG_LANGUAGE, detail, text)
        if self.is_list and not items_of(text):
            raise ModelMisbehaviour(MisbehaviourKind.NO_LIST, "made no list of items", text)
        if self.material is not None and is_off_topic(text, self.material):
            raise ModelMisbehaviour(MisbehaviourKind.OFF_TOPIC, "wrote about something else than its inputs", text)


def is_repeated(text: str, source: str) -> bool:
    """Whether nearly all words of a text stand in the source, in sentences that nobody writes by chance."""
    whole, said = f" {' '.join(words(source))} ", [words(sentence) for sentence in sentences(text)]
    repeated = [each for each in said if len(each) >= _FEWEST_REPEATED and f" {' '.join(each)} " in whole]
    return sum(map(len, repeated)) > _REPEATED * sum(map(len, said))


def is_off_topic(text: str, material: str) -> bool:
    """Whether a text shares hardly a term with the material that it is made from."""
    said = set(terms(text))
    return len(said) >= _FEWEST_TERMS and len(said & set(terms(material))) < _SHARED_TERMS * len(said)
