"""Embeddings by the model of shared memory."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from bus_schema.glm import MAX_EMBEDDED, EmbedTexts
from gateway.backend import BackendDependency

router = APIRouter()

_WITHIN_S = 60.0
Text = Annotated[str, Field(min_length=1, max_length=32_000)]


class EmbeddingRequest(BaseModel):
    """Texts to embed; whatever `model` you ask for, that of this fleet's memory is used."""

    model_config = ConfigDict(extra="allow")
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_EMBEDDED)]
    model: str = ""
    encoding_format: Literal["float", "base64"] = "float"


@router.post("/embeddings")
async def embed(body: EmbeddingRequest, backend: BackendDependency) -> dict[str, Any]:
    """Vectors of the texts, in their order."""
    texts = (body.input,) if isinstance(body.input, str) else tuple(body.input)
    embedded = await backend.bus.request(EmbedTexts(texts=texts), timeout_s=_WITHIN_S)
    is_float = body.encoding_format == "float"
    data = [
        {"object": "embedding", "index": index, "embedding": each.floats.tolist() if is_float else each.data}
        for index, each in enumerate(embedded.items)
    ]
    # Words: the model tells nobody how many tokens it has made of them.
    words = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": words, "total_tokens": words}
    return {"object": "list", "data": data, "model": embedded.items[0].model, "usage": usage}
