"""What a text is about."""

from agents.keywords import KeyTerm, centrality, inverse_document_frequency, key_terms, weighted_overlap
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


def test_key_terms_are_what_the_text_comes_back_to() -> None:
    text = "The heat pump is new. A heat pump needs power, and power is dear. Heat pumps hum near the swimming pool."

    assert key_terms(text, 2) == [KeyTerm("heat pump", 3), KeyTerm("power", 2)]


def test_a_term_is_given_as_a_dictionary_would() -> None:
    text = "Через реку ходят зимой. На реке лёд. Река широкая. В Перми тают снега. О Перми спорят. Пермь далеко."

    assert [term.text for term in key_terms(text, 2)] == ["Пермь", "река"]


def test_what_figures_are_counted_in_is_no_key_term() -> None:
    text = "In 3 years, 40 percent. Two years passed. Ten percent left. The boats sank. Some boats rose. Boats it is."

    assert [term.text for term in key_terms(text, 5)] == ["boats"]


def test_a_text_that_repeats_nothing_still_has_key_terms() -> None:
    assert {term.text for term in key_terms("The harbour froze.", 5)} == {"harbour", "froze"}
    assert key_terms("", 5) == []


def test_rare_terms_count_more_when_coverage_is_measured() -> None:
    weights = inverse_document_frequency(["the pool is warm", "the pool is cold", "the pool has a medieval drain"])
    wanted = terms("pool with a medieval drain")

    assert weighted_overlap(wanted, terms("a medieval drain"), weights) > 0.9
    assert weighted_overlap(wanted, terms("the pool"), weights) < 0.2
    assert weighted_overlap([], terms("anything"), weights) == 1.0
