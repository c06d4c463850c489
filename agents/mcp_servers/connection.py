"""Connection to one MCP server: opened anew whenever it breaks, with the tools that may be called."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from agents.environment_variables import with_variables
from agents.mcp_servers.files import McpServer
from agents.mcp_servers.results import as_data, result_text
from agents.subagents.loop import ToolFailed
from mindbus.logs import logger
from mindbus.redaction import without_secrets
from mindbus.version import __version__

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool

_CONNECT_S = 30.0
# As often it is asked what tools it has, which also tells whether it is still there.
_LIST_AGAIN_S = 60.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0
_MOST_PAGES = 20
_REASON_CHARS = 300
# As the client itself calls an answer of HTTP with a status of failure.
_HTTP_ERROR = "Server returned an error response"


class ServerConnection:
    """`tools` are those allowed, empty while it is away; `trouble` says why it is, or what failed last."""

    def __init__(self, name: str, server: McpServer) -> None:
        self.name, self.server = name, server
        self.tools: Sequence[Tool] = ()
        self.trouble = "not connected yet"
        self._client: Client | None = None
        self._broken = asyncio.Event()
        self._stderr = _LastLine()

    async def run(self) -> None:
        """Keep connected until cancelled; nothing that the server does ends it."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                async with self._opened() as client:
                    wait_s = _FIRST_WAIT_S
                    await self._serve(client)
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                self._fail("it has broken off")
            except Exception as error:  # noqa: BLE001  # whatever a stranger's server does to its client
                self._fail(_reason(error))
            finally:
                self._client, self.tools = None, ()
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Result of a call as text, cut to its limit. Raises ToolFailed."""
        if (client := self._client) is None:
            raise ToolFailed(f"the server {self.name} is away: {self.trouble}; go on without it")
        try:
            async with asyncio.timeout(self.server.timeout_s):
                result = await client.call_tool(tool, arguments)
        except TimeoutError as error:
            self._fail(f"{tool} took longer than {self.server.timeout_s:g} s")
            raise ToolFailed(f"{self.trouble}; go on without it") from error
        except Exception as error:  # an error of the protocol, of the transport, of the client's reading
            if (refusal := _refusal(error, is_remote=self.server.url is not None)) is not None:
                # The server is well: the model may mend what it has asked.
                raise ToolFailed(as_data(refusal, self.server.max_result_chars)) from error
            self._fail(f"{tool}: {_reason(error)}")
            self._broken.set()
            raise ToolFailed(f"{self.trouble}; go on without it") from error
        self.trouble = ""
        text = result_text(result, self.server.max_result_chars)
        if result.is_error:
            raise ToolFailed(text)
        return text

    async def _serve(self, client: "Client") -> None:
        while not self._broken.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._broken.wait(), _LIST_AGAIN_S)
                return
            self.tools = await self._listed(client)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator["Client"]:
        from mcp import Client
        from mcp.types import Implementation

        self._broken.clear()
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(_CONNECT_S):
                transport = await self._transport(stack)
                about = Implementation(name="mindbus", version=__version__)
                client = await stack.enter_async_context(Client(transport, client_info=about))
                self.tools = await self._listed(client)
            self._client, self.trouble = client, self._missing()
            logger().info("mcp server connected", server=self.name, tools=len(self.tools))
            yield client

    async def _transport(self, stack: AsyncExitStack) -> Any:
        if self.server.url is None:
            from mcp import StdioServerParameters, stdio_client

            command, *arguments = self.server.command
            parameters = StdioServerParameters(command=command, args=arguments, env=with_variables(self.server.env))
            return stdio_client(parameters, errlog=await self._stderr.open(stack))
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = with_variables(self.server.headers)
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=self.server.timeout_s))
        return streamable_http_client(self.server.url, http_client=http)

    async def _listed(self, client: "Client") -> Sequence["Tool"]:
        """The allowed tools. Raises TimeoutError and whatever the client raises."""
        tools: list[Tool] = []
        cursor: str | None = None
        async with asyncio.timeout(_CONNECT_S):
            for _ in range(_MOST_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += [tool for tool in page.tools if self.server.allows(tool.name)]
                if not (cursor := page.next_cursor):
                    break
        return tools

    def _missing(self) -> str:
        """Names in the file that the server does not know, which are most likely mistyped."""
        known = {"*", *(tool.name for tool in self.tools)}
        unknown = [name for name in self.server.tools if name not in known]
        return f"it has no tool {', '.join(unknown)}" if unknown else ""

    def _fail(self, why: str) -> None:
        said = f"{why} ({self._stderr.text})" if self._stderr.text else why
        self.trouble = without_secrets(said)[:_REASON_CHARS]
        logger().warning("mcp server failed", server=self.name, reason=self.trouble)


def _refusal(error: Exception, *, is_remote: bool) -> str | None:
    """Words of a server that has answered with an error of the protocol; None of errors of the connection."""
    from mcp.shared.exceptions import MCPError
    from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, REQUEST_TIMEOUT

    if not isinstance(error, MCPError) or error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
        return None
    # So the client tells a lost session of HTTP, and a status such as 502.
    is_status = error.code == INTERNAL_ERROR and error.message == _HTTP_ERROR
    return None if is_remote and (is_status or error.code == INVALID_REQUEST) else str(error.message)


class _LastLine:
    """The last line that a process has written to its standard error."""

    def __init__(self) -> None:
        self.text = ""

    async def open(self, stack: AsyncExitStack) -> Any:
        """A file for the process to write to."""
        self.text = ""
        reading, writing = os.pipe()
        lines = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(reading, "rb")
        )
        stack.callback(transport.close)
        reader = asyncio.create_task(self._follow(lines))
        stack.callback(reader.cancel)
        return stack.enter_context(os.fdopen(writing, "w"))

    async def _follow(self, lines: asyncio.StreamReader) -> None:
        while chunk := await lines.read(4096):
            if told := chunk.decode(errors="replace").strip().splitlines():
                self.text = told[-1][:_REASON_CHARS]


def _reason(error: BaseException) -> str:
    """The innermost of grouped errors, in its own words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
