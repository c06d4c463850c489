"""Memories of other frameworks over shared memory: each does as the framework's own in-memory class does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory, InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from mindbus.errors import ReplyError
from mindbus.integrations.bus_thread import BusThread
from mindbus.integrations.langchain_history import MindBusChatMessageHistory
from mindbus.integrations.langgraph_store import MindBusStore
from mindbus.integrations.openai_session import MindBusSession
from tests.fleets import bus_thread, fleet_of, settings_for
from tests.installed import FLEET

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(120)]

ANNA, BORIS = ("users", "anna"), ("users", "boris")
LONG = tuple(f"label{number:03}" for number in range(60))


@pytest.fixture
async def bus(vhost_url: str, migrated_folder: Path) -> AsyncIterator[BusThread]:
    settings = settings_for(vhost_url, migrated_folder)
    async with fleet_of(FLEET["glm"], settings=settings), bus_thread("user.anna", settings) as thread:
        yield thread


def shown(items: list[Any]) -> list[tuple[Any, ...]]:
    """Items in an order of their own: that of a search without words is nobody's promise."""
    return sorted((item.namespace, item.key, str(item.value)) for item in items)


async def put_some(store: BaseStore) -> None:
    await store.aput(ANNA, "food", {"text": "I like pizza", "rank": 1, "of": {"kind": "taste"}})
    await store.aput(ANNA, "drink", {"text": "Tea, never coffee", "rank": 2, "of": {"kind": "taste"}})
    await store.aput(BORIS, "food", {"text": "Plov", "rank": 3, "tags": ["hot", "rice"]})
    await store.aput(("users",), "count", {"n": 2})
    await store.aput(("usersother",), "x", {"n": 5, "rank": 9})


async def get_and_miss(store: BaseStore) -> Any:
    await put_some(store)
    found, missing = await store.aget(ANNA, "food"), await store.aget(ANNA, "absent")
    return found and (found.namespace, found.key, found.value), missing


async def put_again(store: BaseStore) -> Any:
    await put_some(store)
    before = await store.aget(ANNA, "food")
    await store.aput(ANNA, "food", {"text": "Soup"})
    after = await store.aget(ANNA, "food")
    assert before is not None
    assert after is not None
    return after.value, after.updated_at >= before.updated_at, after.created_at <= after.updated_at


async def delete(store: BaseStore) -> Any:
    await put_some(store)
    await store.adelete(ANNA, "food")
    await store.adelete(ANNA, "food")
    return await store.aget(ANNA, "food"), shown(await store.asearch(ANNA))


async def prefixes(store: BaseStore) -> Any:
    await put_some(store)
    await store.aput(LONG, "deep", {"n": 1})
    searched = [await store.asearch(prefix) for prefix in (("users",), ANNA, (), ("nobody",), LONG[:50])]
    return [shown(items) for items in searched]


async def filters(store: BaseStore) -> Any:
    await put_some(store)
    wanted: list[dict[str, Any]] = [
        {"rank": 2},
        {"of": {"kind": "taste"}},
        {"tags": ["hot", "rice"]},
        {"tags": ["hot"]},
        {"text": {"$ne": "Plov"}},
        {"absent": None},
    ]
    numbers = [{"rank": {"$gt": 1}}, {"rank": {"$gte": 1, "$lt": 2}}, {"rank": {"$lte": 2}}, {"rank": {"$eq": 1}}]
    return [shown(await store.asearch(("users",), filter=each)) for each in wanted] + [
        shown(await store.asearch(ANNA, filter=each)) for each in numbers
    ]


async def bad_operator(store: BaseStore) -> Any:
    await put_some(store)
    with pytest.raises(ValueError, match="Unsupported operator") as error:
        await store.asearch(ANNA, filter={"rank": {"$near": 1}})
    return str(error.value)


async def pages(store: BaseStore) -> Any:
    for number in range(25):
        await store.aput(("many",), f"{number:02}", {"n": number})
    parts = [await store.asearch(("many",), limit=10, offset=offset) for offset in (0, 10, 20, 30)]
    return [len(part) for part in parts], shown([item for part in parts for item in part])


async def namespaces(store: BaseStore) -> Any:
    await put_some(store)
    return [
        await store.alist_namespaces(),
        await store.alist_namespaces(prefix=("users",)),
        await store.alist_namespaces(suffix=("anna",)),
        await store.alist_namespaces(prefix=("*", "boris")),
        await store.alist_namespaces(max_depth=1),
        await store.alist_namespaces(limit=2, offset=1),
    ]


async def batches(store: BaseStore) -> Any:
    await put_some(store)
    results = await store.abatch(
        [
            PutOp(ANNA, "food", {"text": "late"}),
            GetOp(ANNA, "food"),
            PutOp(ANNA, "food", {"text": "last"}),
            SearchOp(BORIS),
            PutOp(BORIS, "food", None),
        ]
    )
    first, read, second, searched, third = results
    after = await store.aget(ANNA, "food")
    return first, read.value, second, shown(searched), third, after and after.value, shown(await store.asearch(BORIS))  # type: ignore[union-attr,arg-type]


async def bad_namespaces(store: BaseStore) -> Any:
    refused = []
    for namespace in ((), ("a.b",), ("",), ("langgraph", "x")):
        try:
            await store.aput(namespace, "key", {"n": 1})
        except InvalidNamespaceError as error:
            refused.append(str(error))
    return refused


async def strange_texts(store: BaseStore) -> Any:
    texts: dict[str, Any] = {"text": 'Привет "мир" \\ 🍕\n', "": [None, True, 1.5, {"ключ": []}]}
    await store.aput(("ключи", "пробел и %"), "k/1 ?", texts)
    found = await store.aget(("ключи", "пробел и %"), "k/1 ?")
    return found and found.value, await store.alist_namespaces(prefix=("ключи",))


@pytest.mark.parametrize(
    "story",
    [
        get_and_miss,
        put_again,
        delete,
        prefixes,
        filters,
        bad_operator,
        pages,
        namespaces,
        batches,
        bad_namespaces,
        strange_texts,
    ],
)
async def test_the_store_does_as_langgraphs_own_does(
    story: Callable[[BaseStore], Awaitable[Any]], bus: BusThread
) -> None:
    assert await story(MindBusStore(bus)) == await story(InMemoryStore())


async def test_the_store_works_without_an_event_loop_and_finds_by_meaning(bus: BusThread) -> None:
    def work() -> tuple[Any, Any]:
        store = MindBusStore(bus)
        store.put(ANNA, "food", {"text": "I like pizza"})
        store.put(ANNA, "work", {"text": "The report is due on Friday"})
        store.put(ANNA, "dark", {"text": "The report is a secret"}, index=False)
        found = store.search(ANNA, query="When must the report be ready?" + " " * 3000, limit=1)
        assert store.search(ANNA, query="report " * 500)
        assert len(store.search(ANNA, query="qwerty zxcv")) == 2
        return [(item.key, item.score is not None) for item in found], store.search(BORIS, query="report")

    assert await asyncio.to_thread(work) == ([("work", True)], [])


async def test_what_has_expired_is_neither_found_nor_kept(bus: BusThread) -> None:
    store = MindBusStore(bus, ttl={"default_ttl": 60, "refresh_on_read": True})
    await store.aput(ANNA, "lasting", {"n": 1}, ttl=None)
    await store.aput(ANNA, "default", {"n": 2})
    for key in ("read", "searched", "swept"):
        await store.aput(ANNA, key, {"n": 3}, ttl=-1)

    assert await store.aget(ANNA, "read") is None
    assert sorted(item.key for item in await store.asearch(ANNA)) == ["default", "lasting"]
    await store.aput(ANNA, "swept", {"n": 3}, ttl=-1)
    assert (await store.asweep_ttl(), await store.asweep_ttl()) == (1, 0)


async def test_nobody_else_sees_the_items(bus: BusThread, vhost_url: str, tmp_path: Path) -> None:
    await MindBusStore(bus).aput(ANNA, "food", {"text": "pizza"})
    other = BusThread("user.boris", settings=settings_for(vhost_url, tmp_path))
    await asyncio.to_thread(other.__enter__)
    try:
        store = MindBusStore(other)
        assert await store.aget(ANNA, "food") is None
        assert await store.asearch(()) == []
    finally:
        await asyncio.to_thread(other.__exit__, None, None, None)


async def test_a_value_that_is_too_large_is_refused_and_says_so(bus: BusThread) -> None:
    with pytest.raises((ReplyError, ValueError), match="65536 at most"):
        await MindBusStore(bus).aput(ANNA, "big", {"text": "x" * 70_000})


async def chat(history: BaseChatMessageHistory) -> Any:
    call = {"name": "search", "args": {"q": "пицца"}, "id": "call_1", "type": "tool_call"}
    said = [
        SystemMessage("Be brief."),
        HumanMessage("Hello", id="m1", name="anna"),
        AIMessage("", tool_calls=[call], response_metadata={"model": "small"}),
        ToolMessage("found", tool_call_id="call_1", artifact={"n": 1}),
        AIMessage([{"type": "text", "text": "Here"}], additional_kwargs={"x": [1]}),
    ]
    await history.aadd_messages(said)
    await history.aadd_messages([])
    await history.aadd_messages([HumanMessage("And now?")])
    first = [*await history.aget_messages()]
    await history.aclear()
    after = [*await history.aget_messages()]
    await history.aadd_messages([HumanMessage("anew")])
    return [repr(message) for message in first], after, [repr(each) for each in await history.aget_messages()]


@pytest.mark.filterwarnings("ignore:The class `InMemoryChatMessageHistory` was deprecated")
async def test_the_chat_history_does_as_langchains_own_does(bus: BusThread) -> None:
    ours, theirs = MindBusChatMessageHistory(bus, "s1"), InMemoryChatMessageHistory()

    assert await chat(ours) == await chat(theirs)
    assert await MindBusChatMessageHistory(bus, "s2").aget_messages() == []
    await asyncio.to_thread(ours.add_user_message, "by a thread")
    assert [each.text for each in await asyncio.to_thread(lambda: ours.messages)] == ["anew", "by a thread"]


async def test_a_session_keeps_items_in_their_order(bus: BusThread) -> None:
    session, other = MindBusSession(bus, "s1"), MindBusSession(bus, "s2")
    await session.add_items([{"role": "user", "content": str(number)} for number in range(5)])
    await session.add_items([])

    assert [item["content"] for item in await session.get_items()] == list("01234")
    assert [item["content"] for item in await session.get_items(2)] == list("34")
    assert await session.pop_item() == {"role": "user", "content": "4"}
    assert (await other.pop_item(), await other.get_items()) == (None, [])
    await session.clear_session()
    assert await session.get_items() == []
