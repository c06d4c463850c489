"""Centrality of texts, rarity of terms."""

from agents.keywords import centrality, inverse_document_frequency, weighted_overlap
from language.words import terms


def test_what_shares_its_words_with_the_rest_is_central() -> None:
    weights = centrality(
        [
            "The rink heats the pool through a pipe.",
            "The pipe between rink and pool is short.",
            "A pipe carries the heat of the rink.",
            "Somebody lost a red umbrella yesterday evening.",
        ]
    )

    assert min(weights) == weights[3]
    assert centrality([]) == []


def test_rare_terms_count_more_when_coverage_is_measured() -> None:
    weights = inverse_document_frequency(["the pool is warm", "the pool is cold", "the pool has a medieval drain"])
    wanted = terms("pool with a medieval drain")

    assert weighted_overlap(wanted, terms("a medieval drain"), weights) > 0.9
    assert weighted_overlap(wanted, terms("the pool"), weights) < 0.2
    assert weighted_overlap([], terms("anything"), weights) == 1.0
