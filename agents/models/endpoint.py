"""Calls to one endpoint: bounded, chat before background work, which is interrupted for a chat and done again later."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from agents.models.errors import ModelInterrupted
from agents.models.language_model import DEFAULTS, Chunk, Completion, LanguageModel, ModelMessage, ModelParams, Tool
from mindbus.logs import logger
from mindbus.tasks import end

T = TypeVar("T")
_MOST_CHATS = 32
# An interrupted call closes its connection; the endpoint needs no longer to notice.
_INTERRUPTED_WITHIN_S = 0.5


class ModelEndpoint:
    """The calls of this process to one endpoint, which serves `concurrency` of them at once.

    A chat begins at once. Background calls take what chats leave, one less than all, but one where no chat is on. A
    chat that finds no place interrupts the youngest of them; those wait, then begin again. `has_chat` where the
    dialogue is in this process, `is_followed` where somebody counts the chats of another process.
    """

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._chats = 0
        self._elsewhere: dict[str, asyncio.TimerHandle] = {}
        self._chat_places = asyncio.Semaphore(max(_MOST_CHATS, concurrency))
        self._background: dict[asyncio.Future[Any], bool] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self.has_chat = self.is_followed = False

    @asynccontextmanager
    async def chat(self) -> AsyncIterator[None]:
        """A call that somebody waits for."""
        async with self._chat_places:
            self._chats += 1
            try:
                if interrupted := self._interrupt():
                    await asyncio.wait(interrupted, timeout=_INTERRUPTED_WITHIN_S)
                yield
            finally:
                self._chats -= 1
                self._wake()

    def chat_elsewhere(self, name: str, within_s: float) -> None:
        """A chat in another process has begun; it counts until it ends, for these seconds at most."""
        self.chat_ended_elsewhere(name)
        self._elsewhere[name] = asyncio.get_running_loop().call_later(within_s, self.chat_ended_elsewhere, name)
        self._interrupt()

    def chat_ended_elsewhere(self, name: str) -> None:
        """That chat has ended, or takes no longer."""
        if timer := self._elsewhere.pop(name, None):
            timer.cancel()
            self._wake()

    async def background(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a call that can wait; it begins again where a chat has interrupted it."""
        while True:
            await self._room()
            task: asyncio.Future[T] = asyncio.ensure_future(call())
            self._background[task] = False
            try:
                return await task
            except asyncio.CancelledError:
                own = asyncio.current_task()
                if not self._background[task] or (own and own.cancelling()):
                    raise
                logger().info("background call interrupted for a chat")
            finally:
                del self._background[task]
                self._wake()

    async def background_pieces(self, call: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T]:
        """Pieces of a call that can wait, as they come. Raises ModelInterrupted where a chat needs its place."""
        pieces: asyncio.Queue[T | None] = asyncio.Queue()

        async def put_pieces() -> None:
            async for piece in call():
                pieces.put_nowait(piece)

        await self._room()
        task = asyncio.ensure_future(put_pieces())
        self._background[task] = False
        task.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            if task.cancelled() and self._background[task]:
                raise ModelInterrupted
            await task
        finally:
            await end(task)
            del self._background[task]
            self._wake()

    @property
    def chats(self) -> int:
        """Number of chats that are on, here or elsewhere."""
        return self._chats + len(self._elsewhere)

    @property
    def _background_places(self) -> int:
        places = min(self._concurrency - self.chats, max(1, self._concurrency - 1))
        return max(0, places)

    def _interrupt(self) -> Sequence[asyncio.Future[Any]]:
        """Interrupt background calls, the youngest first, until the chats have their places."""
        running = [task for task, is_interrupted in self._background.items() if not is_interrupted]
        excess = running[max(0, self._concurrency - self.chats) :]
        for task in excess:
            self._background[task] = True
            task.cancel()
        return excess

    async def _room(self) -> None:
        while len(self._background) >= self._background_places:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            finally:
                self._waiting.remove(waiting)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)


_endpoints: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, ModelEndpoint]] = WeakKeyDictionary()


def endpoint_at(base_url: str, concurrency: int) -> ModelEndpoint:
    """The endpoint at an address, one for all models of this process; whoever comes first sets its concurrency."""
    endpoints = _endpoints.setdefault(asyncio.get_running_loop(), {})
    return endpoints.setdefault(base_url, ModelEndpoint(concurrency))


class EndpointModel:
    """A model whose calls take their turn at its endpoint, with parameters that come before those of its prompts."""

    def __init__(
        self,
        model: LanguageModel,
        base_url: str,
        concurrency: int = 1,
        *,
        is_chat: bool = False,
        params: ModelParams = DEFAULTS,
    ) -> None:
        self._model, self._base_url, self._concurrency = model, base_url, concurrency
        self._is_chat, self._params = is_chat, params

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def identity(self) -> Hashable:
        """Equal for models whose calls may be made by either."""
        return self._base_url, self.name, self._is_chat, self._params

    @property
    def endpoint(self) -> ModelEndpoint:
        """The endpoint that it shares with the other models of this process."""
        return endpoint_at(self._base_url, self._concurrency)

    async def complete(
        self,
        messages: Sequence[ModelMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        async def call() -> Completion:
            return await self._model.complete(messages, tools=tools, schema=schema, params=self._over(params))

        if not self._is_chat:
            return await self.endpoint.background(call)
        async with self.endpoint.chat():
            return await call()

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        """An answer piece by piece. Raises ModelInterrupted where a chat takes the place of a background call."""

        def call() -> AsyncIterator[Chunk]:
            return self._model.stream(messages, tools=tools, params=self._over(params))

        if not self._is_chat:
            async for chunk in self.endpoint.background_pieces(call):
                yield chunk
            return
        async with self.endpoint.chat():
            async for chunk in call():
                yield chunk

    async def aclose(self) -> None:
        await self._model.aclose()

    def _over(self, params: ModelParams) -> ModelParams:
        return params.model_copy(update=self._params.model_dump(exclude_none=True))
