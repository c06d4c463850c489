"""The process in which documents are read, itself."""

import asyncio
from collections.abc import AsyncIterator
from inspect import getmembers, isclass

import pytest

from memory.kps import document
from memory.kps.document import CorruptDocument, DocumentTooLarge, ExtractionTooLarge, NotText
from memory.kps.extractor import DocumentExtractor, ExtractionLimits
from mindbus.errors import Rejected
from tests.documents import a_pdf

pytestmark = pytest.mark.slow


@pytest.fixture
async def reader() -> AsyncIterator[DocumentExtractor]:
    async with DocumentExtractor() as opened:
        yield opened


async def test_one_process_reads_one_document_after_the_other(reader: DocumentExtractor) -> None:
    documents = await asyncio.gather(*(reader.read(f"Text {n}.".encode(), "text/plain") for n in range(20)))

    assert [document.text for document in documents] == [f"Text {n}." for n in range(20)]
    assert (await reader.read(a_pdf(["Страница."]), "application/pdf")).blocks[0].page == 1


async def test_a_refusal_comes_through_with_its_details(reader: DocumentExtractor) -> None:
    with pytest.raises(NotText) as refused:
        await reader.read(b"\xff\xfe\xfd", "text/plain; charset=ascii")

    assert refused.value.details == {"charset": "ascii", "at_byte": 0}


async def test_what_a_parser_stumbles_over_is_refused_and_the_next_is_read(reader: DocumentExtractor) -> None:
    broken = a_pdf(["x"]).replace(b"/Kids [", b"/Kids 7 [")

    with pytest.raises(CorruptDocument):
        await reader.read(broken, "application/pdf")
    assert (await reader.read(b"fine", "text/plain")).text == "fine"


async def test_what_takes_too_long_is_given_up_and_the_next_is_read() -> None:
    async with DocumentExtractor(ExtractionLimits(timeout_s=1.0)) as reader:
        await reader.read(b"warm", "text/plain")

        with pytest.raises(ExtractionTooLarge):
            await reader.read(b"*a_ " * 2_000_000, "text/markdown")
        assert (await reader.read(b"fine", "text/plain")).text == "fine"


async def test_what_takes_too_much_memory_is_refused_and_the_next_is_read() -> None:
    async with DocumentExtractor(ExtractionLimits(memory_bytes=400 * 1024**2)) as reader:
        with pytest.raises(ExtractionTooLarge):
            await reader.read(b"[" + b'{"a":"b"},' * 3_000_000 + b"1]", "application/json")
        assert (await reader.read(b"fine", "text/plain")).text == "fine"


async def test_who_stops_waiting_leaves_no_answer_behind_for_others(reader: DocumentExtractor) -> None:
    await reader.read(b"warm", "text/plain")
    waiting = asyncio.create_task(reader.read(b"word " * 1_000_000, "text/markdown"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert (await reader.read(b"fine", "text/plain")).text == "fine"


async def test_what_is_too_large_is_not_read_at_all() -> None:
    with pytest.raises(DocumentTooLarge):
        await DocumentExtractor(ExtractionLimits(max_bytes=3)).read(b"four", "text/plain")


def test_every_refusal_says_what_is_wrong_in_a_sentence() -> None:
    kinds = [
        kind for _name, kind in getmembers(document, isclass) if issubclass(kind, Rejected) and kind is not Rejected
    ]
    assert kinds
    for kind in kinds:
        assert str(kind()).endswith("."), kind
        assert "\n" not in str(kind()), kind
