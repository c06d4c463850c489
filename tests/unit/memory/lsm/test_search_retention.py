"""A search that nobody has said anything of is forgotten after a time; one with feedback teaches, so it stays."""

from datetime import timedelta
from functools import partial

from sqlalchemy import select

from memory.lsm.tables import SearchRow
from tests.clocks import NOON
from tests.lsm_kit import ANNA, Archive

DAY = timedelta(days=1)


async def kept(archive: Archive) -> set[str]:
    async with archive.database.reading() as session:
        return set(await session.scalars(select(SearchRow.search_id)))


async def search(archive: Archive, search_id: str, feedback: dict[str, list[str]] | None = None) -> None:
    """As of a time long past."""
    about = {"requester": "user.anna", "chat_id": ANNA, "query": "What?", "unpacked": False, "hits": []}
    async with archive.database.transaction() as session:
        session.add(SearchRow(search_id=search_id, at=NOON - 900 * DAY, feedback=feedback, **about))


async def test_a_search_without_feedback_is_forgotten_after_ninety_days(archive: Archive) -> None:
    await search(archive, "srch_silent")
    await search(archive, "srch_useful", {"used": []})
    for days in (0, 89):
        assert await archive.work(partial(archive.memory.erasure.forget_searches, NOON + days * DAY)) == 0
    await search(archive, "srch_new")

    assert await archive.work(partial(archive.memory.erasure.forget_searches, NOON + 91 * DAY)) == 1
    assert await kept(archive) == {"srch_useful", "srch_new"}
