"""The field ``metadata``: facts that a client attaches to what it asks for, and gets back as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import mapping, wrong_type
from constrain.server.http.errors import ApiError
from constrain.server.requests.limits import MAX_METADATA, MAX_METADATA_KEY, MAX_METADATA_VALUE

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_metadata(body: Mapping[str, Any]) -> dict[str, str] | None:
    """Reads ``metadata``; ``None`` if it is null or missing. Raises ``FieldError`` and ``ApiError``."""
    given = body.get("metadata")
    if given is None:
        return None
    metadata = mapping(given, "metadata")
    if len(metadata) > MAX_METADATA:
        raise ApiError(
            f"Invalid 'metadata': too many properties. Expected at most {MAX_METADATA}, but got {len(metadata)}.",
            param="metadata",
            code="object_above_max_properties",
        )
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise wrong_type(f"metadata.{key:.64}", "a string", value)
        if len(key) > MAX_METADATA_KEY or len(value) > MAX_METADATA_VALUE:
            raise ApiError(
                f"Invalid 'metadata': a key may have {MAX_METADATA_KEY} characters, and a value {MAX_METADATA_VALUE}.",
                param=f"metadata.{key:.64}",
                code="string_above_max_length",
            )
    return metadata
