from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bus_schema.kps import Chunking
from memory.kps.document import Composer, Document
from memory.kps.formats import extract
from memory.kps.units import Piece, cut

SMALL = Chunking(max_chars=200, overlap_chars=60)


def pieces_of(text: str, chunking: Chunking = SMALL, content_type: str = "text/markdown") -> tuple[str, list[Piece]]:
    document = extract(text.encode(), content_type)
    return document.text, cut(document, chunking)


def test_a_short_document_is_one_piece_under_all_its_headings() -> None:
    text, (piece,) = pieces_of("# Plan\n\n## When\n\nOn Friday.\n\n## Who\n\nAnna.\n")

    assert text[piece.start : piece.end] == text.strip()
    assert piece.section == ("Plan", "When", "Who")


def test_a_section_of_some_length_begins_a_piece_of_its_own() -> None:
    text, pieces = pieces_of(
        f"# A\n\n{'One word more. ' * 9}\n\n## B\n\nAnother matter.\n\n# C\n\n{'Last words. ' * 11}"
    )

    assert [text[piece.start : piece.end].split("\n")[0] for piece in pieces] == ["# A", "## B"]
    assert [piece.section for piece in pieces] == [("A",), ("A", "B", "C")]


def test_a_long_paragraph_is_cut_between_sentences_and_its_pieces_overlap() -> None:
    text, pieces = pieces_of("".join(f"Предложение номер {number}. " for number in range(40)))

    assert len(pieces) > 3
    for piece, following in pairwise(pieces):
        assert text[piece.start : piece.end].startswith("Предложение")
        assert text[piece.start : piece.end].endswith(".")
        assert 0 < piece.end - following.start <= SMALL.overlap_chars


def test_without_overlap_nothing_is_said_twice() -> None:
    chunking = Chunking(max_chars=200, overlap_chars=0)
    _, pieces = pieces_of("One more sentence here. " * 60, chunking)

    assert all(piece.end <= following.start for piece, following in pairwise(pieces))


def test_further_pieces_of_a_table_know_its_columns() -> None:
    rows = ["name,value", *(f"name {number},value {number}" for number in range(60))]
    text, pieces = pieces_of("\n".join(rows), content_type="text/csv")

    assert [piece.header for piece in pieces] == ["", *("name,value" for _ in pieces[1:])]
    assert len(pieces) > 3
    for piece in pieces:
        assert len(piece.header) + piece.end - piece.start <= SMALL.max_chars
    assert "\n".join(text[piece.start : piece.end] for piece in pieces) == text


def test_lists_and_what_follows_a_table_have_no_columns() -> None:
    table = "\n".join(["| a | b |", "|---|---|", *(f"| {number} | {number} |" for number in range(30))])
    _, pieces = pieces_of(f"{table}\n\n{'Some words more. ' * 20}\n\n" + "\n".join(f"- item {n}" for n in range(60)))

    headed = [piece.header for piece in pieces]
    assert headed[:2] == ["", "| a | b |"]
    assert set(headed[2:]) == {""}


def test_a_table_is_cut_between_its_lines() -> None:
    text, pieces = pieces_of(
        "\n".join(f"name {number},value {number}" for number in range(60)), content_type="text/csv"
    )

    lines = text.split("\n")
    for piece in pieces:
        assert set(text[piece.start : piece.end].split("\n")) <= set(lines)


def test_a_word_without_end_is_cut_all_the_same() -> None:
    _, pieces = pieces_of("x" * 1000)

    assert sum(piece.end - piece.start for piece in pieces) == 1000


@given(
    st.lists(st.sampled_from(["# H\n", "## Глава\n", "Слово. ", "Two words. ", "\n\n", "- item\n", "y" * 250, "a\n"])),
    st.integers(200, 500),
    st.integers(0, 100),
)
def test_nothing_is_lost_and_no_piece_is_too_long(parts: list[str], max_chars: int, overlap_chars: int) -> None:
    text = f"# Begin\n\n{''.join(parts)}"
    found, pieces = pieces_of(text, Chunking(max_chars=max_chars, overlap_chars=overlap_chars))

    covered = bytearray(len(found))
    for piece in pieces:
        assert 0 < piece.end - piece.start <= max_chars
        covered[piece.start : piece.end] = b"\1" * (piece.end - piece.start)
    blocks = extract(text.encode(), "text/markdown").blocks
    missed = [found[at] for block in blocks for at in range(block.start, block.end) if not covered[at]]
    assert not "".join(missed).strip()
    assert [piece.start for piece in pieces] == sorted(piece.start for piece in pieces)


def test_the_page_is_that_on_which_a_piece_begins() -> None:
    composer = Composer()
    for page in (1, 2, 3):
        composer.prose("Words of this page. " * 10, page)
    document: Document = composer.document()

    assert [piece.page for piece in cut(document, SMALL)] == [1, 2, 3]
