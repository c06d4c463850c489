"""Parts of the gateway whose libraries weigh tens of megabytes, imported when they are first asked for."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context
from importlib import import_module
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.backend import Backend
from mindbus.tasks import end

Opening = Callable[..., AbstractAsyncContextManager[ASGIApp]]


class LazyApp:
    """An ASGI application that the function of a module opens, at the first request, for these backends."""

    def __init__(self, module: str, function: str, *backends: Backend) -> None:
        self._module, self._function, self._backends = module, function, backends
        self._opened: asyncio.Future[ASGIApp] | None = None
        self._running: asyncio.Task[None] | None = None
        # Its tasks are those of whoever has made it, not of the request that opens it.
        self._context = copy_context()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = await self.open()
        await app(scope, receive, send)

    async def open(self) -> ASGIApp:
        """The application, opened if need be."""
        if self._opened is None or self._running is None or self._running.done():
            self._opened = asyncio.get_running_loop().create_future()
            # Whatever becomes of the request.
            run, name = self._run(self._opened), f"run {self._module}"
            self._running = asyncio.create_task(run, context=self._context.copy(), name=name)
        return await asyncio.shield(self._opened)

    async def close(self) -> None:
        """End it, if anybody has asked for it."""
        if self._running is not None:
            await end(self._running)

    async def _run(self, opened: "asyncio.Future[ASGIApp]") -> None:
        """Open and close it in one task, as some libraries require."""
        try:
            # In a thread: it takes a second.
            module: Any = await asyncio.to_thread(import_module, self._module)
            opening: Opening = getattr(module, self._function)
            async with opening(*self._backends) as app:
                opened.set_result(app)
                await asyncio.Event().wait()
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(error)
