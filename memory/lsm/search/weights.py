"""What each signal of the search is worth."""

from collections.abc import Mapping

Weights = Mapping[str, float]

# Fitted by logistic regression to questions about dialogues, held against dialogues that were left out of the fitting.
# `time` has no such questions; it is worth as much as half of all the words.
SHIPPED: Weights = {
    "words_in_context": 2.6,
    "words": 1.4,
    "speaker": 0.75,
    "stretch": 1.4,
    "asks": -1.4,
    "meaning_in_context": 0.65,
    "meaning": 0.35,
    "time": 1.5,
}
