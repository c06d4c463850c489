"""The bounded cache with its index (spec 000 §3.6)."""

from concurrent.futures import ThreadPoolExecutor

from mindbus.sdk.local_memory import IndexedLRUCache, Policy


def a_cache(policy: Policy = "lru") -> IndexedLRUCache[str]:
    return IndexedLRUCache(30, ("topic",), policy)


def put(cache: IndexedLRUCache[str], key: str, topic: str = "ai", size: int = 10, priority: float = 0) -> list[str]:
    return cache.put(key, key.upper(), [("topic", topic), ("source", "doc")], size, priority)


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = a_cache()
    for key in "abc":
        put(cache, key)
    cache.get("a")

    assert put(cache, "d") == ["b"]
    assert sorted(cache.keys()) == ["a", "c", "d"]


def test_with_lfu_what_was_used_least_often_goes_first() -> None:
    cache = a_cache("lfu")
    for key in "abc":
        put(cache, key)
    for key in "aabbc":
        cache.get(key)

    assert put(cache, "d") == ["c"]
    assert put(cache, "e") == ["d"]


def test_to_be_looked_at_is_not_to_be_used() -> None:
    cache = a_cache()
    for key in "abc":
        put(cache, key)
    cache.peek("a")

    assert put(cache, "d") == ["a"]


def test_the_unimportant_goes_before_the_old() -> None:
    cache = a_cache()
    put(cache, "a", priority=5)
    put(cache, "b", priority=0)
    put(cache, "c", priority=5)

    assert put(cache, "d", priority=1) == ["b"]
    assert put(cache, "e", priority=9) == ["d"]
    assert put(cache, "f", priority=1) == ["f"]


def test_something_large_takes_the_place_of_several() -> None:
    cache = a_cache()
    for key in "abc":
        put(cache, key)

    assert put(cache, "d", size=20) == ["a", "b"]
    assert cache.size == 30


def test_what_is_too_large_for_all_of_it_does_not_stay() -> None:
    cache = a_cache()

    assert put(cache, "a", size=31) == ["a"]
    assert (len(cache), cache.size) == (0, 0)


def test_what_is_put_again_is_found_by_what_it_is_now() -> None:
    cache = a_cache()
    put(cache, "a", topic="ai")
    put(cache, "a", topic="law", size=3, priority=2)

    assert cache.with_facets("topic", ["ai"]) == set()
    assert cache.with_facets("topic", ["law", "ai"]) == {"a"}
    assert cache.size == 3


def test_what_has_gone_is_not_found() -> None:
    cache = a_cache()
    for key in "abcd":
        put(cache, key)
    cache.pop("b")

    assert cache.with_facets("topic", ["ai"]) == {"c", "d"}
    assert cache.pop("b") is None
    assert cache.clear() == 2
    assert cache.with_facets("topic", ["ai"]) == set()


def test_only_the_keys_that_were_named_are_indexed() -> None:
    cache = a_cache()
    put(cache, "a")

    assert cache.with_facets("source", ["doc"]) == set()


def test_many_threads_leave_it_whole() -> None:
    cache: IndexedLRUCache[str] = IndexedLRUCache(500, ("topic",))

    def work(number: int) -> None:
        for step in range(300):
            key = f"{number}-{step % 30}"
            put(cache, key, topic=str(step % 3), priority=step % 2)
            cache.get(f"{(number + 1) % 4}-{step % 30}")
            if step % 7 == 0:
                cache.pop(key)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))

    assert cache.size == 10 * len(cache) <= 500
    assert cache.with_facets("topic", ["0", "1", "2"]) == set(cache.keys())
