"""What a call of an MCP tool returns, as the text that a model reads."""

from __future__ import annotations

import json
from typing import Any

import mcp_types


class CallError(Exception):
    """A call of an MCP tool failed: the tool reports an error, the server does not answer, or it has gone."""


def result_text(result: mcp_types.CallToolResult) -> str:
    """Returns the result of a call as text.

    Texts stand one below the other. A structured result is added as JSON, unless the texts say the same. What a model
    cannot read, such as an image, is named. Raises ``CallError`` with the same text if the tool reports an error.
    """
    parts = [_shown(block) for block in result.content]
    structured = result.structured_content
    if structured is not None and not _says(result.content, structured):
        parts.append(json.dumps(structured, ensure_ascii=False))
    text = "\n".join(parts)
    if result.is_error:
        raise CallError(text or "the tool reports an error, without a message")
    return text


def _says(content: list[mcp_types.ContentBlock], structured: Any) -> bool:
    """Whether the texts hold a structured result: as JSON, or as the value or the items of its member ``result``."""
    texts = [block.text for block in content if isinstance(block, mcp_types.TextContent)]
    if not texts:
        return False
    is_wrapped = isinstance(structured, dict) and structured.keys() == {"result"}
    meant = {_key(value) for value in ([structured, structured["result"]] if is_wrapped else [structured])}
    values = list(map(_value, texts))
    return any(_key(value) in meant for value in (texts, values, *texts, *values))


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown(block: mcp_types.ContentBlock) -> str:
    match block:
        case mcp_types.TextContent():
            return block.text
        case mcp_types.ImageContent() | mcp_types.AudioContent():
            return f"[{block.type} ({block.mime_type}), not shown: only text can be read here]"
        case mcp_types.ResourceLink():
            about = ": ".join(part for part in (block.title or block.name, block.description) if part)
            return f"[{about}]({block.uri})"
        case mcp_types.EmbeddedResource():
            resource = block.resource
            if isinstance(resource, mcp_types.TextResourceContents):
                return f"{resource.uri}:\n{resource.text}"
            return f"[{resource.uri} ({resource.mime_type or 'binary data'}), not shown: only text can be read here]"
