"""The tools of a coding agent, as such agents describe them: long descriptions, deep schemas, many options."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_PATH: Schema = {"type": "string", "description": "The absolute path of the file.", "minLength": 1}
_LINES: Schema = {"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None, **keywords: Any) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
        **keywords,
    }


def _inner(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {name: value for name, value in _object(required, optional).items() if name != "$schema"}


def _list(item: Schema, least: int | None = None, most: int | None = None) -> Schema:
    limits = {"minItems": least, "maxItems": most}
    return {"type": "array", "items": item, **{name: value for name, value in limits.items() if value is not None}}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _tool(name: str, description: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": schema}


_EDIT = {"old_string": _TEXT, "new_string": _TEXT}
_REPLACE_ALL = {"replace_all": {"type": "boolean", "default": False}}
_TODO = _inner(
    {
        "content": {"type": "string", "minLength": 1},
        "status": _one_of("pending", "in_progress", "completed"),
        "active_form": {"type": "string", "minLength": 1},
    },
    {"priority": _one_of("high", "medium", "low"), "blocked_by": _list({"type": "string", "pattern": "^todo-[0-9]+$"})},
)
_POSITION = _inner({"line": {"type": "integer", "minimum": 0}, "character": {"type": "integer", "minimum": 0}})
_QUESTION = _inner(
    {
        "question": {"type": "string", "minLength": 1},
        "header": {"type": "string", "maxLength": 12},
        "options": _list(_inner({"label": _TEXT, "description": _TEXT}), 2, 4),
        "multi_select": {"type": "boolean", "default": False},
    }
)
_CELL_EDIT: Schema = {
    "oneOf": [
        _inner({"mode": {"const": "replace"}, "cell_id": _TEXT, "source": _TEXT}),
        _inner({"mode": {"const": "insert"}, "cell_type": _one_of("code", "markdown"), "source": _TEXT}),
        _inner({"mode": {"const": "delete"}, "cell_id": _TEXT}),
    ]
}
_NODE: Schema = {
    "type": "object",
    "properties": {"title": _TEXT, "done": _FLAG, "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}}},
    "required": ["title", "done"],
    "additionalProperties": False,
}

CODING_TOOLS: list[dict[str, Any]] = [
    _tool("Read", "Reads a file.", _object({"file_path": _PATH}, {"offset": _LINES, "limit": _LINES})),
    _tool("Write", "Writes a file; an existing one is replaced.", _object({"file_path": _PATH, "content": _TEXT})),
    _tool("Edit", "Replaces a text in a file.", _object({"file_path": _PATH, **_EDIT}, _REPLACE_ALL)),
    _tool(
        "MultiEdit",
        "Makes several edits of one file, one after the other.",
        _object({"file_path": _PATH, "edits": _list(_inner(_EDIT, _REPLACE_ALL), 1)}),
    ),
    _tool(
        "Bash",
        "Runs a command in a shell that stays open.",
        _object(
            {"command": _TEXT},
            {
                "timeout": {"type": "number", "maximum": 600000},
                "description": {"type": "string", "description": "Five to ten words on what the command does."},
                "run_in_background": _FLAG,
                "environment": {"type": "object", "additionalProperties": _TEXT, "propertyNames": {"maxLength": 40}},
            },
        ),
    ),
    _tool("BashOutput", "Returns new output of a shell.", _object({"bash_id": _TEXT}, {"filter": _TEXT})),
    _tool("KillShell", "Ends a shell.", _object({"shell_id": _TEXT})),
    _tool("Glob", "Finds files by a pattern.", _object({"pattern": _TEXT}, {"path": _TEXT})),
    _tool(
        "Grep",
        "Searches files by a regular expression.",
        _object(
            {"pattern": _TEXT},
            {
                "path": _TEXT,
                "glob": _TEXT,
                "output_mode": _one_of("content", "files_with_matches", "count"),
                **{name: {"type": "number"} for name in ("-A", "-B", "-C")},
                **dict.fromkeys(("-n", "-i", "multiline"), _FLAG),
                "type": _TEXT,
                "head_limit": {"type": "integer", "minimum": 0},
            },
        ),
    ),
    _tool("LS", "Lists a folder.", _object({"path": _TEXT}, {"ignore": _list(_TEXT)})),
    _tool("TodoRead", "Returns the list of tasks.", {"type": "object", "properties": {}}),
    _tool("TodoWrite", "Replaces the list of tasks.", _object({"todos": _list(_TODO, 1, 50)})),
    _tool(
        "WebFetch",
        "Fetches a page and answers a question about it.",
        _object({"url": {"type": "string", "format": "uri"}, "prompt": _TEXT}),
    ),
    _tool(
        "WebSearch",
        "Searches the web.",
        _object(
            {"query": {"type": "string", "minLength": 2}},
            {"allowed_domains": _list(_TEXT), "blocked_domains": _list(_TEXT)},
        ),
    ),
    _tool("NotebookRead", "Reads a notebook.", _object({"notebook_path": _PATH}, {"cell_id": _TEXT})),
    _tool("NotebookEdit", "Edits the cells of a notebook.", _object({"notebook_path": _PATH, "edit": _CELL_EDIT})),
    _tool(
        "Task",
        "Starts an agent for a task of several steps.",
        _object(
            {
                "description": {"type": "string", "maxLength": 60},
                "prompt": _TEXT,
                "subagent_type": _one_of("general", "explorer", "reviewer"),
            },
            {"model": {"anyOf": [_one_of("small", "large"), {"type": "null"}]}, "files": _list(_PATH)},
        ),
    ),
    _tool("AskUser", "Asks the user up to four questions.", _object({"questions": _list(_QUESTION, 1, 4)})),
    _tool(
        "Plan",
        "Shows the user a plan as a tree of steps.",
        _object({"plan": {"$ref": "#/$defs/step"}}, **{"$defs": {"step": _NODE}}),
    ),
    _tool(
        "Symbols",
        "Asks a language server.",
        _object(
            {
                "operation": _one_of("definition", "references", "hover", "rename"),
                "file_path": _PATH,
                "position": _POSITION,
            },
            {
                "new_name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                "range": _inner({"start": _POSITION, "end": _POSITION}),
            },
        ),
    ),
    _tool(
        "Commit",
        "Commits changes.",
        _object(
            {"message": {"type": "string", "minLength": 1, "maxLength": 200}},
            {
                "files": {**_list(_PATH, 1), "uniqueItems": True},
                "author": _inner({"name": _TEXT, "email": {"type": "string", "format": "email"}}),
                "trailers": {"type": "object", "patternProperties": {"^[A-Z][A-Za-z-]*$": _TEXT},
                             "additionalProperties": False},
            },
        ),
    ),
]  # fmt: skip
