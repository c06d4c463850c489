"""Models that run in this process: each is loaded once, however many use it."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from memory.embedding.local import LocalEmbedder, Model, one_thread


@dataclass
class _Held:
    thread: ThreadPoolExecutor
    loading: "Future[Model]"
    users: int = 0


_held: dict[tuple[str, int], _Held] = {}
# Users may have event loops of their own.
_turn = threading.Lock()


async def shared_embedder(name: str, threads: int, load: Callable[[], Model]) -> LocalEmbedder:
    """Over the model that others may use already; it goes with the last of them. Raises what `load` does."""
    key = name, threads
    held = _taken(key, load)
    try:
        # Whoever does not wait for it any longer leaves it to the others.
        model = await asyncio.shield(asyncio.wrap_future(held.loading))
    except BaseException:
        _let_go(key, held)
        raise
    return LocalEmbedder(model, held.thread, lambda: _let_go(key, held))


def _taken(key: tuple[str, int], load: Callable[[], Model]) -> _Held:
    with _turn:
        if key not in _held:
            thread = one_thread()
            _held[key] = _Held(thread, thread.submit(load))
        _held[key].users += 1
        return _held[key]


def _let_go(key: tuple[str, int], held: _Held) -> None:
    with _turn:
        held.users -= 1
        if held.users:
            return
        del _held[key]
    held.thread.shutdown(wait=False, cancel_futures=True)
