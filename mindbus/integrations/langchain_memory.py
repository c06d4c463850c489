"""LangChain's retriever and tools over memory: shared memory, and long-term memory of the person whose bus it is."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.tools.base import BaseToolkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bus_schema.envelope import explain
from bus_schema.glm import MAX_PAGE, FoundKem, KemPage, RetrieveKems, StoreKem
from bus_schema.identities import user_of
from bus_schema.kem import Kem, KemDraft, KemVisibility
from bus_schema.kem_query import AllOf, NoneOf
from bus_schema.lsm_search import MAX_QUERY_CHARS, FoundEpisodes, SearchEpisodes
from mindbus.errors import MindBusError, ReplyError
from mindbus.integrations.bus_thread import BusThread
from mindbus.integrations.own_units import OWNER
from mindbus.redaction import without_secrets
from mindbus.sdk.kem_filters import query_from

_QUESTION_CHARS = 2000
# Fields that a model is shown.
_UNITS: Any = {
    "items": {"__all__": {"score": True, "kem": {"id", "content", "ref", "metadata", "owner", "updated_at"}}},
    "is_degraded": True,
}
_PASSAGES: Any = {
    "episodes": {"__all__": {"episode_id", "headline", "started_at", "turns"}},
    "confidence": True,
    "is_degraded": True,
}

ArgsT = TypeVar("ArgsT", bound=BaseModel)


class MindBusRetriever(BaseRetriever):
    """Units of shared memory that the identity of the bus may read, nearest first, as at most `k` documents.

    `filter` is a condition such as `metadata.project_id=apollo`; both may be given to `invoke` instead. A question is
    cut to 2000 characters, an empty one finds nothing. Superseded units are not found, nor the records that stores,
    histories and sessions keep there. Raises MalformedFilter, UnsupportedQuery, ReplyError, NoReply, ValidationError.
    """

    bus: BusThread = Field(repr=False, exclude=True)
    k: int = Field(default=4, ge=1, le=MAX_PAGE)
    filter: str = ""

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: str | None = None,
    ) -> list[Document]:
        return self.bus.call(self._documents(query, k, filter))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: str | None = None,
    ) -> list[Document]:
        return await self.bus.acall(self._documents(query, k, filter))

    async def _documents(self, query: str, k: int | None, filter: str | None) -> list[Document]:
        text = query.strip()[:_QUESTION_CHARS]
        if not text:
            return []
        page = await _nearest(self.bus, text, self.filter if filter is None else filter, self.k if k is None else k)
        return [_document_of(item) for item in page.items]


class MemorySearchArgs(BaseModel):
    """Arguments of `memory_search`."""

    query: str = Field(min_length=1, max_length=_QUESTION_CHARS, description="Words or a question.")
    filter: str = Field(default="", max_length=1000, description="`metadata.KEY=VALUE`, joined by AND, OR.")
    limit: int = Field(default=8, ge=1, le=50)


class MemoryAddArgs(BaseModel):
    """Arguments of `memory_add`."""

    text: str = Field(min_length=1, description="What is to be known, in a sentence or a passage.")
    metadata: dict[str, Any] = Field(default={}, description='What it is about, such as {"project_id": "apollo"}.')
    visibility: KemVisibility = Field(
        default="private", description="`private`: only you; `public`: everybody in this fleet."
    )


class ConversationSearchArgs(BaseModel):
    """Arguments of `conversation_search`."""

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS, description="What to look for.")
    words: int = Field(default=800, ge=50, le=4000, description="Words of the answer, at most.")
    newest_first: bool = Field(default=False, description="For what may have changed: the latest word first.")


class MindBusToolkit(BaseToolkit):
    """Tools of a model: `memory_search`, `memory_add` and, where the bus is a person's, `conversation_search`.

    Failures are results that the model can read and act on. The artifact of a result is what was found or stored.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    bus: BusThread = Field(repr=False, exclude=True)

    def get_tools(self) -> list[BaseTool]:
        """Tools with the names that they have over MCP. Raises RuntimeError where the bus is not connected."""
        tools = [
            self._tool("memory_search", MemorySearchArgs, self._search),
            self._tool("memory_add", MemoryAddArgs, self._add),
        ]
        if user_of(self.bus.client.owner) is not None:
            tools.append(self._tool("conversation_search", ConversationSearchArgs, self._search_conversations))
        return tools

    def _tool(self, name: str, schema: type[ArgsT], work: Callable[[ArgsT], Awaitable[tuple[str, Any]]]) -> BaseTool:
        async def told(given: dict[str, Any]) -> tuple[str, Any]:
            try:
                return await work(schema.model_validate(given))
            except MindBusError as error:
                text = error.message if isinstance(error, ReplyError) else str(error)
                raise ToolException(without_secrets(text)) from error

        def run(**given: Any) -> tuple[str, Any]:
            return self.bus.call(told(given))

        async def arun(**given: Any) -> tuple[str, Any]:
            return await self.bus.acall(told(given))

        return StructuredTool(
            name=name,
            description=work.__doc__ or name,
            args_schema=schema,
            func=run,
            coroutine=arun,
            response_format="content_and_artifact",
            handle_tool_error=True,
            handle_validation_error=_explained,
        )

    async def _search(self, args: MemorySearchArgs) -> tuple[str, list[Document]]:
        """Search shared memory by meaning and by words, among what you may read."""
        page = await _nearest(self.bus, args.query, args.filter, args.limit)
        return page.model_dump_json(include=_UNITS, exclude_none=True), [_document_of(item) for item in page.items]

    async def _add(self, args: MemoryAddArgs) -> tuple[str, Kem]:
        """Remember something in shared memory, so that it can be found by meaning later, here and by the agents."""
        draft = KemDraft(content=args.text, metadata=args.metadata, visibility=args.visibility)
        kem = await self.bus.client.request(StoreKem(kem=draft))
        return f"{kem.id} is stored, {kem.visibility}", kem

    async def _search_conversations(self, args: ConversationSearchArgs) -> tuple[str, FoundEpisodes]:
        """Look in your long-term memory for what was said before, in the words in which it was said."""
        search = SearchEpisodes(
            query=args.query,
            chat_id=self.bus.client.owner.removeprefix("user."),
            budget_words=args.words,
            depth="raw",
            touch=False,
            newest_first=args.newest_first,
        )
        found = await self.bus.client.request(search)
        return found.model_dump_json(include=_PASSAGES, exclude_none=True), found


async def _nearest(bus: BusThread, text: str, filter: str, limit: int) -> KemPage:
    wanted = query_from(filter, text_query=text)
    unwanted = [NoneOf(NOT={"status": "superseded"}), NoneOf(NOT={OWNER: bus.client.owner})]
    conditions = (wanted.metadata_filters, *unwanted) if wanted.metadata_filters else tuple(unwanted)
    query = wanted.model_copy(update={"metadata_filters": AllOf(AND=conditions)})
    return await bus.client.request(RetrieveKems(query=query, page_size=limit))


def _document_of(found: FoundKem) -> Document:
    """A unit as a document; one that is an artifact has no text, its id is in the metadata."""
    kem = found.kem
    about = {
        "kem_owner": kem.owner,
        "kem_updated_at": kem.updated_at.isoformat(),
        "kem_score": found.score,
        **({} if kem.ref is None else {"kem_artifact_id": kem.ref.artifact_id}),
    }
    return Document(id=kem.id, page_content=kem.content or "", metadata={**kem.metadata, **about})


def _explained(invalid: Any) -> str:
    return explain(invalid) if isinstance(invalid, ValidationError) else str(invalid)
