"""Results of tools of MCP servers as text for a model."""

import json
from typing import TYPE_CHECKING

from agents.models.conversation import without_tags
from bus_schema.history import sanitise_text
from mindbus.redaction import without_secrets

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

_CUT = "… [cut off; {n} characters in all]"


def result_text(result: "CallToolResult", most_chars: int) -> str:
    """The texts of a result as data; of files what they are."""
    blocks = [_block(block) for block in result.content]
    if not any(text.strip() for text in blocks) and result.structured_content is not None:
        blocks = [json.dumps(result.structured_content, ensure_ascii=False)]
    return as_data("\n".join(blocks), most_chars)


def as_data(said: str, most_chars: int) -> str:
    """Words of a server without secrets and tags of a prompt, at most so long."""
    text = without_tags(without_secrets(sanitise_text(said))).strip()
    if not text:
        return "(nothing)"
    return text if len(text) <= most_chars else text[:most_chars] + _CUT.format(n=len(text))


def _block(block: "ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "resource":
            return getattr(block.resource, "text", None) or f"[file {block.resource.uri}]"
        case "resource_link":
            return f"[file {block.uri}]"
        case kind:
            return f"[{kind}, {getattr(block, 'mime_type', None) or 'of an unknown type'}]"
