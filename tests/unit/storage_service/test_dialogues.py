"""What was said is kept in order; a fragment ends one buffer and begins the next."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import pytest

from bus_schema.conversations import (
    GetAllActiveDialogues,
    GetDialogueFragment,
    GetMessage,
    GetMessages,
    ListDialogues,
    RateAnswer,
    Saved,
)
from bus_schema.dialogue import DialogueFragment, DialogueMessage, MessageKind
from bus_schema.message_parts import Rating
from mindbus.sql.database import Database
from retrieval.cursors import InvalidCursor
from storage_service.dialogues import Dialogues
from storage_service.errors import FragmentMismatch, MessageIdTaken, NoSuchFragment, NoSuchMessage, NotAnAnswer
from tests.clocks import NOON
from tests.storage_kit import OpenDepot

T = TypeVar("T")


class Book:
    """Messages and fragments on one database, each call a transaction as a message at hand has it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.dialogues = Dialogues(database)

    async def at_hand(self, work: Callable[[], Awaitable[T]]) -> T:
        async with self.database.at_hand():
            return await work()

    async def say(self, user: str, number: int, **changes: Any) -> bool:
        message = a_message(user, number, **changes)
        return (await self.at_hand(lambda: self.dialogues.save_message(message))).is_new

    async def fragment(self, user: str, *numbers: int, fragment_id: str | None = None) -> bool:
        fragment = a_fragment(user, *numbers, fragment_id=fragment_id)
        return await self.at_hand(lambda: self.dialogues.save_fragment(fragment))

    async def numbers(self, user: str, **options: Any) -> list[int]:
        page = await self.dialogues.messages(GetMessages(user_id=user, **options))
        return [number_of(message) for message in page.items]

    async def buffers(self, **options: Any) -> dict[str, list[int]]:
        found = await self.dialogues.active(GetAllActiveDialogues(**options))
        return {state.user_id: list(map(number_of, state.buffer)) for state in found.items}


async def test_an_answer_is_kept_with_what_it_was_made_with(book: Book) -> None:
    answer = {"role": "assistant", "kem_ids": ("kem_1", "kem_2")}
    await book.say("anna", 1, **answer)

    assert not await book.say("anna", 1, **answer)
    with pytest.raises(MessageIdTaken):
        await book.say("anna", 1, role="assistant", kem_ids=("kem_3",))

    stored = await book.dialogues.message(GetMessage(user_id="anna", message_id=a_message("anna", 1).message_id))
    assert stored.kem_ids == ("kem_1", "kem_2")


async def test_whole_answers_are_rated_and_nothing_else(book: Book) -> None:
    answer = {"role": "assistant", "episodes": ({"episode_id": "ep_1", "time": NOON, "used": ("raw_1",)},)}
    answer["search_id"] = "srch_1"
    await book.say("anna", 1)
    await book.say("anna", 2, **answer)
    await book.say("anna", 3, role="assistant", kind=MessageKind.NOTIFICATION)
    await book.say("anna", 4, role="assistant", content="Это ещё не… [ответ оборван]")

    async def rate(number: int, rating: Rating | None, user: str = "anna") -> DialogueMessage | None:
        command = RateAnswer(user_id=user, message_id=f"msg_anna-{number}", rating=rating)
        return await book.at_hand(lambda: book.dialogues.rate(command))

    rated = await rate(2, "unhelpful")
    assert rated is not None
    assert (rated.rating, rated.search_id, rated.episodes[0].used) == ("unhelpful", "srch_1", ("raw_1",))
    assert await rate(2, "unhelpful") is None, "nothing has changed"
    assert not await book.say("anna", 2, **answer), "an answer that is stored again is the same, though it was rated"
    assert (await book.dialogues.message(GetMessage(user_id="anna", message_id="msg_anna-2"))).rating == "unhelpful"
    withdrawn = await rate(2, None)
    assert withdrawn is not None
    assert withdrawn.rating is None
    for number in (1, 3, 4):
        with pytest.raises(NotAnAnswer):
            await rate(number, "helpful")
    with pytest.raises(NoSuchMessage):
        await rate(2, "helpful", user="ivan")


async def test_of_many_messages_one_with_other_words_keeps_no_other_from_it(book: Book) -> None:
    await book.say("anna", 1)
    other_words = a_message("anna", 1, content="Другое")
    messages = [a_message("anna", 2), other_words, a_message("ivan", 1), a_message("anna", 3), a_message("anna", 1)]

    outcomes = await book.at_hand(lambda: book.dialogues.save_messages(messages))

    assert isinstance(outcomes[1], MessageIdTaken)
    saved = [each for each in outcomes if isinstance(each, Saved)]
    assert [(each.message_id, each.position, each.is_new) for each in saved] == [
        ("msg_anna-2", 2, True),
        ("msg_ivan-1", 1, True),
        ("msg_anna-3", 3, True),
        ("msg_anna-1", 1, False),
    ]
    assert await book.numbers("anna") == [1, 2, 3]
    assert await book.numbers("ivan") == [1]


def a_message(user: str, number: int, **changes: Any) -> DialogueMessage:
    fields: dict[str, Any] = {
        "message_id": f"msg_{user}-{number}",
        "user_id": user,
        "role": "user",
        "content": f"Это сообщение номер {number}",
        "time": NOON + timedelta(minutes=number),
    }
    return DialogueMessage.model_validate(fields | changes)


def a_fragment(user: str, *numbers: int, fragment_id: str | None = None) -> DialogueFragment:
    messages = tuple(a_message(user, number) for number in numbers)
    return DialogueFragment(
        fragment_id=fragment_id or f"frag_{user}-{numbers[0]}",
        user_id=user,
        message_ids=tuple(message.message_id for message in messages),
        messages=messages,
        started_at=messages[0].time,
        ended_at=messages[-1].time,
        reason="ended",
    )


def number_of(message: DialogueMessage) -> int:
    return int(message.message_id.rsplit("-", 1)[-1])


@pytest.fixture
def book(open_depot: OpenDepot) -> Book:
    return Book(open_depot().database)


async def test_messages_are_read_as_they_were_said(book: Book) -> None:
    hidden = {"kind": MessageKind.HIDDEN, "content": "[hidden instruction] напомни об отчёте"}
    assert await book.say("anna", 1)
    assert await book.say("anna", 2, role="assistant")
    assert await book.say("anna", 3, **hidden)
    assert await book.say("boris", 1)

    page = await book.dialogues.messages(GetMessages(user_id="anna"))

    assert page.items == (a_message("anna", 1), a_message("anna", 2, role="assistant"), a_message("anna", 3, **hidden))
    assert page.next_cursor is None


async def test_a_message_that_comes_again_is_kept_once(book: Book) -> None:
    assert await book.say("anna", 1)
    assert not await book.say("anna", 1)
    assert not await book.say("anna", 1, time=NOON + timedelta(days=1))
    assert await book.numbers("anna") == [1]


@pytest.mark.parametrize("changes", [{"content": "другое"}, {"role": "assistant"}, {"kind": MessageKind.RESPONSE}])
async def test_other_words_under_the_same_id_are_a_conflict(book: Book, changes: dict[str, Any]) -> None:
    await book.say("anna", 1)
    with pytest.raises(MessageIdTaken):
        await book.say("anna", 1, **changes)
    with pytest.raises(MessageIdTaken):
        await book.say("boris", 1, message_id="msg_anna-1")
    assert await book.numbers("anna") == [1]
    assert await book.numbers("boris") == []


async def test_pages_go_forward_from_the_beginning_and_backward_from_the_end(book: Book) -> None:
    for number in range(7):
        await book.say("anna", number)

    forward = await book.dialogues.messages(GetMessages(user_id="anna", limit=3))
    backward = await book.dialogues.messages(GetMessages(user_id="anna", limit=3, order="newest"))

    assert await book.numbers("anna", limit=3, cursor=forward.next_cursor) == [3, 4, 5]
    assert [number_of(message) for message in backward.items] == [6, 5, 4]
    assert await book.numbers("anna", limit=3, order="newest", cursor=backward.next_cursor) == [3, 2, 1]
    assert await book.numbers("anna", since=NOON + timedelta(minutes=5)) == [5, 6]
    with pytest.raises(InvalidCursor):
        await book.numbers("anna", cursor="nonsense")


async def test_one_message_is_found_by_its_id_in_its_own_dialogue_alone(book: Book) -> None:
    await book.say("anna", 1)
    assert await book.dialogues.message(GetMessage(user_id="anna", message_id="msg_anna-1")) == a_message("anna", 1)
    with pytest.raises(NoSuchMessage):
        await book.dialogues.message(GetMessage(user_id="boris", message_id="msg_anna-1"))


async def test_whoever_says_something_hears_how_much_no_fragment_has_taken(book: Book) -> None:
    said = [await book.at_hand(partial(book.dialogues.save_message, a_message("anna", number))) for number in (1, 2, 3)]
    assert [saved.buffered for saved in said] == [1, 2, 3]
    await book.fragment("anna", 1, 2)
    again = await book.at_hand(lambda: book.dialogues.save_message(a_message("anna", 3)))
    assert (again.is_new, again.buffered) == (False, 1)


async def test_a_fragment_is_read_as_it_was_saved(book: Book) -> None:
    for number in range(3):
        await book.say("anna", number)
    await book.fragment("anna", 0, 1)
    found = await book.dialogues.fragment(GetDialogueFragment(fragment_id="frag_anna-0"))
    assert found == a_fragment("anna", 0, 1)
    with pytest.raises(NoSuchFragment):
        await book.dialogues.fragment(GetDialogueFragment(fragment_id="frag_nobody"))


async def test_the_buffer_is_what_no_fragment_has_taken(book: Book) -> None:
    for number in range(4):
        await book.say("anna", number)
    await book.say("boris", 0)

    assert await book.fragment("anna", 0, 1, 2)

    assert await book.buffers(user_id="nobody") == {}
    assert await book.buffers() == {"anna": [3], "boris": [0]}
    assert await book.fragment("anna", 3)
    assert await book.buffers() == {"boris": [0]}


async def test_a_fragment_that_comes_again_changes_nothing(book: Book) -> None:
    for number in range(3):
        await book.say("anna", number)
    assert await book.fragment("anna", 0, 1)
    assert not await book.fragment("anna", 0, 1)
    assert await book.buffers() == {"anna": [2]}


@pytest.mark.parametrize("numbers", [(1,), (1, 0), (0, 2), (0, 1, 2, 3), (7,)])
async def test_a_fragment_is_the_beginning_of_the_buffer_or_nothing(book: Book, numbers: tuple[int, ...]) -> None:
    for number in range(3):
        await book.say("anna", number)
    with pytest.raises(FragmentMismatch):
        await book.fragment("anna", *numbers)
    with pytest.raises(FragmentMismatch):
        await book.fragment("nobody", 0)
    assert await book.buffers() == {"anna": [0, 1, 2]}


async def test_a_message_belongs_to_one_fragment(book: Book) -> None:
    await book.say("anna", 0)
    await book.fragment("anna", 0)
    with pytest.raises(FragmentMismatch):
        await book.fragment("anna", 0, fragment_id="frag_another")


async def test_silent_dialogues_are_found_by_their_last_word(book: Book) -> None:
    await book.say("anna", 0)
    await book.say("boris", 30)
    assert await book.buffers(silent_since=NOON + timedelta(minutes=10)) == {"anna": [0]}


async def test_active_dialogues_come_in_pages(book: Book) -> None:
    for user in ("anna", "boris", "vera"):
        await book.say(user, 0)
    first = await book.dialogues.active(GetAllActiveDialogues(limit=2))
    assert [state.user_id for state in first.items] == ["anna", "boris"]
    assert await book.buffers(limit=2, cursor=first.next_cursor) == {"vera": [0]}


async def test_all_dialogues_are_listed_the_latest_first_in_pages(book: Book) -> None:
    for user, last in (("anna", 3), ("boris", 1), ("vera", 3), ("gleb", 2)):
        for number in range(last + 1):
            await book.say(user, number)
    await book.fragment("vera", 0, 1, 2, 3)

    first = await book.dialogues.page(ListDialogues(limit=3))
    rest = await book.dialogues.page(ListDialogues(limit=3, cursor=first.next_cursor))

    found = [(each.user_id, each.messages, each.is_active) for each in (*first.items, *rest.items)]
    assert found == [("vera", 4, False), ("anna", 4, True), ("gleb", 3, True), ("boris", 2, True)]
    assert first.items[0].last_activity == NOON + timedelta(minutes=3)
    assert rest.next_cursor is None


@pytest.mark.parametrize("cursor", ["x", "2026-03-10T08:59:00 anna", "2026-03-10T08:59:00+00:00", ""])
async def test_a_cursor_of_dialogues_that_is_none_is_refused(book: Book, cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        await book.dialogues.page(ListDialogues(cursor=cursor))
