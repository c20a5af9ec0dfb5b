"""The request and responses of each path and method for files and batches, for the OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.batches.files import INPUT, MONTH, OUTPUT
from constrain.server.openapi.operation import Operation, in_path, in_query, object_schema
from constrain.server.openapi.shapes import WrittenShape
from constrain.server.requests.limits import MAX_FILE_NAME, MAX_FILES_PAGE, MAX_METADATA, MAX_PAGE, SHORTEST_KEEPING

if TYPE_CHECKING:
    from constrain.server.openapi.shapes import Schema

_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "integer", "minimum": 0}
_TIME_OR_NULL: Schema = {"type": ["integer", "null"]}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_SECONDS: Schema = {"type": "integer", "minimum": SHORTEST_KEEPING, "maximum": MONTH}

_FILE = object_schema(
    id=_TEXT,
    object={"const": "file"},
    bytes=_TIME,
    created_at=_TIME,
    expires_at=_TIME,
    filename=_TEXT,
    purpose={"enum": [INPUT, OUTPUT]},
    status={"const": "processed"},
)

_UPLOAD = WrittenShape(
    "FileUpload",
    {
        "FileUpload": {
            "type": "object",
            "properties": {
                "file": {"type": "string", "contentMediaType": "application/octet-stream"},
                "purpose": {"const": INPUT},
                "expires_after[anchor]": {"const": "created_at"},
                "expires_after[seconds]": _SECONDS,
            },
            "required": ["file", "purpose"],
        }
    },
)

_ENDPOINTS = ["/v1/chat/completions", "/v1/responses", "/v1/completions", "/v1/embeddings"]

_METADATA: Schema = {"type": ["object", "null"], "maxProperties": MAX_METADATA, "additionalProperties": _TEXT}

_BATCH_REQUEST = WrittenShape(
    "BatchRequest",
    {
        "BatchRequest": {
            "type": "object",
            "properties": {
                "input_file_id": _TEXT,
                "endpoint": {"enum": _ENDPOINTS},
                "completion_window": {"type": "string", "pattern": "^([1-9]|1[0-9]|2[0-4])h$"},
                "metadata": _METADATA,
                "output_expires_after": {
                    "type": "object",
                    "properties": {"anchor": {"const": "created_at"}, "seconds": _SECONDS},
                    "required": ["anchor", "seconds"],
                },
            },
            "required": ["input_file_id", "endpoint", "completion_window"],
        }
    },
)

_STATUSES = ["validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"]

_ERROR = object_schema(code=_TEXT, line=_TIME_OR_NULL, message=_TEXT, param=_TEXT_OR_NULL)

_BATCH = object_schema(
    id=_TEXT,
    object={"const": "batch"},
    endpoint={"enum": _ENDPOINTS},
    model=_TEXT_OR_NULL,
    input_file_id=_TEXT,
    completion_window=_TEXT,
    status={"enum": _STATUSES},
    errors={
        "anyOf": [
            object_schema(object={"const": "list"}, data={"type": "array", "items": _ERROR}),
            {"type": "null"},
        ]
    },
    output_file_id=_TEXT_OR_NULL,
    error_file_id=_TEXT_OR_NULL,
    created_at=_TIME,
    expires_at=_TIME,
    in_progress_at=_TIME_OR_NULL,
    finalizing_at=_TIME_OR_NULL,
    completed_at=_TIME_OR_NULL,
    failed_at=_TIME_OR_NULL,
    expired_at=_TIME_OR_NULL,
    cancelling_at=_TIME_OR_NULL,
    cancelled_at=_TIME_OR_NULL,
    request_counts=object_schema(total=_TIME, completed=_TIME, failed=_TIME),
    usage={"type": ["object", "null"]},
    metadata={"type": ["object", "null"]},
)

_FILE_ID = in_path("id", "Of a file that was made with the same key.", _TEXT)
_BATCH_ID = in_path("id", "Of a batch that was made with the same key.", _TEXT)
_AFTER = in_query("after", "The id of the one before the first.", _TEXT)
_ORDER = in_query("order", "By the time they came.", {"type": "string", "enum": ["asc", "desc"]})

_UNAVAILABLE = (404, 503)
"""Statuses of errors of every operation: there is no such thing, no batches are run, or they cannot be kept."""

_TAKING = (400, 404, 408, 413, 415, 503)
"""Statuses of errors of an operation that takes a body."""


def _list(item: Schema) -> Schema:
    return object_schema(
        object={"const": "list"},
        data={"type": "array", "items": item},
        first_id=_TEXT,
        last_id=_TEXT,
        has_more={"type": "boolean"},
    )


def _limit(most: int, default: int) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default}


BATCH_OPERATIONS = (
    Operation(
        "POST",
        "/v1/files",
        "createFile",
        f"Takes a file of requests for a batch, one per line; its name has at most {MAX_FILE_NAME} characters.",
        _FILE,
        _TAKING,
        _UPLOAD,
        request_type="multipart/form-data",
    ),
    Operation(
        "GET",
        "/v1/files",
        "listFiles",
        "Lists the files.",
        _list(_FILE),
        (400, *_UNAVAILABLE),
        parameters=(
            in_query("limit", "The most files.", _limit(MAX_FILES_PAGE, MAX_FILES_PAGE)),
            in_query("purpose", "Only files with this purpose.", _TEXT),
            _ORDER,
            _AFTER,
        ),
    ),
    Operation("GET", "/v1/files/{id}", "getFile", "Describes a file.", _FILE, _UNAVAILABLE, parameters=(_FILE_ID,)),
    Operation(
        "DELETE",
        "/v1/files/{id}",
        "deleteFile",
        "Deletes a file. A batch made from it goes on.",
        object_schema(id=_TEXT, object={"const": "file"}, deleted={"const": True}),
        _UNAVAILABLE,
        parameters=(_FILE_ID,),
    ),
    Operation(
        "GET",
        "/v1/files/{id}/content",
        "getFileContent",
        "Returns the content of a file.",
        _TEXT,
        _UNAVAILABLE,
        parameters=(_FILE_ID,),
        media_type="application/octet-stream",
    ),
    Operation(
        "POST",
        "/v1/batches",
        "createBatch",
        "Answers the requests in a file, in the background.",
        _BATCH,
        (*_TAKING, 429),
        _BATCH_REQUEST,
    ),
    Operation(
        "GET",
        "/v1/batches",
        "listBatches",
        "Lists the batches.",
        _list(_BATCH),
        (400, *_UNAVAILABLE),
        parameters=(in_query("limit", "The most batches.", _limit(MAX_PAGE, 20)), _ORDER, _AFTER),
    ),
    Operation(
        "GET", "/v1/batches/{id}", "getBatch", "Describes a batch.", _BATCH, _UNAVAILABLE, parameters=(_BATCH_ID,)
    ),
    Operation(
        "POST",
        "/v1/batches/{id}/cancel",
        "cancelBatch",
        "Ends a batch early; what was answered is kept.",
        _BATCH,
        (400, *_UNAVAILABLE),
        parameters=(_BATCH_ID,),
    ),
)
