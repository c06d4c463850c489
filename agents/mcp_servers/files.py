"""MCP servers of `mcp.yaml`: how each is reached, which of its tools may be used, within which limits."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from agents.configuration.validation import InvalidFile, YamlProblem, read_config_file, read_file

ALL_TOOLS = "*"
ServerName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]


class McpServer(BaseModel):
    """A server: a `command` to run, or the `url` of one that runs. Values of `env` and `headers` may name variables.

    Those in `tools` may be called, no others; `*` is all. The assistant has them where `dialogue` says so, a sub-agent
    where its file names the server. One call may take `timeout_s`; of a result the beginning is shown; an answer may
    call so often.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = Field(default=None, pattern=r"^https?://")
    headers: dict[str, str] = {}
    tools: tuple[str, ...] = Field(min_length=1, max_length=64)
    dialogue: bool = False
    timeout_s: float = Field(default=30, gt=0, le=600)
    max_result_chars: int = Field(default=8000, ge=100, le=60_000)
    max_calls: int = Field(default=8, ge=1, le=100)

    @model_validator(mode="after")
    def _is_reached_one_way(self) -> Self:
        if bool(self.command) == (self.url is not None):
            raise ValueError("needs either a command or a url")
        if (self.env and self.url) or (self.headers and self.command):
            raise ValueError("env belongs to a command, headers to a url")
        return self

    def allows(self, tool: str) -> bool:
        """Whether a tool of the server may be used."""
        return tool in self.tools or ALL_TOOLS in self.tools


class McpServersFile(BaseModel):
    """Servers by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    servers: dict[ServerName, McpServer] = {}


class InvalidMcpServers(InvalidFile):
    """The servers cannot be used; each line says where, what is wrong, what to do."""


def parse_mcp_servers(text: bytes, source: str) -> McpServersFile:
    """Read servers from YAML; errors name it `source`. Raises InvalidMcpServers with every problem."""
    return read_file(text, source, McpServersFile, InvalidMcpServers)


def servers_of_dialogue() -> dict[str, McpServer]:
    """Servers whose tools the assistant has. Raises InvalidFile."""
    return {name: server for name, server in _servers()[1].servers.items() if server.dialogue}


def servers_named(names: tuple[str, ...]) -> dict[str, McpServer]:
    """The servers of these names. Raises InvalidFile where there is no such server."""
    source, file = _servers() if names else ("", McpServersFile())
    missing = [name for name in names if name not in file.servers]
    if missing:
        known = ", ".join(file.servers) or "none"
        raise InvalidMcpServers(
            [YamlProblem(source, None, ("servers",), f"has no {name!r}; there are: {known}") for name in missing]
        )
    return {name: file.servers[name] for name in names}


def _servers() -> tuple[str, McpServersFile]:
    file = read_config_file("", "mcp")
    return file.source, parse_mcp_servers(file.content, file.source)
