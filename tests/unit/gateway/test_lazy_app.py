"""What an application that is opened by the first request does by itself belongs to the site that has made it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.types import ASGIApp

from gateway.lazy_app import LazyApp
from mindbus.tasks import kept_running, lasting_tasks
from mindbus.testing.wait import until


@asynccontextmanager
async def open_listening() -> AsyncIterator[ASGIApp]:
    async with kept_running(asyncio.Event().wait, "listening"):
        yield Starlette()


async def test_tasks_of_an_app_are_among_those_of_who_has_made_it() -> None:
    with lasting_tasks() as tasks:
        app = LazyApp(__name__, "open_listening")
    with lasting_tasks() as of_request:
        await app.open()
    await until(lambda: [task.name for task in tasks] == ["listening"])
    assert not of_request
    await app.close()
    assert not tasks
