"""Checks and explanations of a schema or grammar, in the processes of the sandbox; their results are plain JSON.

Both take text from a person who is still typing: any error in it is part of the result.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from constrain.engine.compiling import compile_any
from constrain.errors import ConstrainError, SchemaError, pointer_to
from constrain.given import needs_given, without_given
from constrain.inspection.characters import in_words
from constrain.inspection.check import check_schema, typical_tokens
from constrain.inspection.explanation import explain, token_steps
from constrain.language.schema_text import parse_schema, plain_schema
from constrain.partial.scanner import Scanner
from constrain.server.playground.language import wrong_language

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.engine.report import Report
    from constrain.server.playground.language import LanguageText
    from constrain.vocabulary.vocabulary import Vocabulary

_NOTHING: dict[str, Any] = {
    "ok": False, "errors": [], "findings": [], "schema": None, "least_tokens": None, "typical_tokens": None, "facts": []
}  # fmt: skip

_TOO_DEEP = "nested too deeply to be read; make it flatter"


def check_here(language: LanguageText, fingerprint: bytes) -> dict[str, Any]:
    """Checks a schema or grammar in the sandbox. Raises ``LimitError`` if it is nested too deeply."""
    try:
        return check(language, _vocabulary_of(fingerprint))
    except RecursionError:
        return refused(f"this is {_TOO_DEEP}")


def explain_here(language: LanguageText, text: str, tokens: Sequence[int], fingerprint: bytes) -> dict[str, Any]:
    """Explains a text in the sandbox. Raises ``FieldError`` for a language that cannot be used.

    ``tokens``: those of the text, since the sandbox has no tokenizer.
    """
    try:
        return explain_text(language, text, tokens, _vocabulary_of(fingerprint))
    except (ConstrainError, RecursionError) as error:
        raise wrong_language(_TOO_DEEP if isinstance(error, RecursionError) else error) from error


def _vocabulary_of(fingerprint: bytes) -> Vocabulary:
    from constrain.server.sandbox.worker import vocabulary_of

    return vocabulary_of(fingerprint)


def check(language: LanguageText, vocabulary: Vocabulary) -> dict[str, Any]:
    """Returns errors, findings, numbers of tokens and facts of a schema or grammar."""
    try:
        return _check_json(language, vocabulary) if language.is_json else _check_grammar(language, vocabulary)
    except ConstrainError as error:
        lines = _Lines(language.text) if language.kind == "json_schema" else None
        return refused(error.message, error, lines)


def _check_json(language: LanguageText, vocabulary: Vocabulary) -> dict[str, Any]:
    """Checks a JSON Schema."""
    given = language.schema()
    document = _read_document(given)
    found = check_schema(document, vocabulary, **language.policies)
    lines = _Lines(language.text) if isinstance(given, str) else None
    errors = [_finding("refused", each, lines) for each in found.lint.refused]
    errors += [_finding("unsatisfiable", each, lines) for each in found.lint.unsatisfiable]
    return {
        "ok": not errors,
        "errors": errors,
        "findings": [_finding("advice", each, lines) for each in found.lint.advice],
        "schema": None if isinstance(given, str) else plain_schema(given),
        "least_tokens": None if found.report is None else found.report.min_tokens,
        "typical_tokens": found.typical_tokens,
        "facts": _facts(found.report),
    }


def _read_document(given: Any) -> Any:
    """Returns a parsed schema. Quotes from sources that it does not have itself are any strings: an answer has them.

    Raises ``SchemaError``.
    """
    document = parse_schema(given) if isinstance(given, str) else given
    if not isinstance(given, str) or not needs_given(given):
        return document
    try:
        return without_given(document)
    except (TypeError, ValueError) as error:
        raise SchemaError(str(error), pointer="") from error


def _check_grammar(language: LanguageText, vocabulary: Vocabulary) -> dict[str, Any]:
    """Checks a grammar or pattern."""
    constraint = compile_any(language.schema(), vocabulary, close_objects=True)
    report = constraint.report
    return {
        **_NOTHING,
        "ok": True,
        "least_tokens": report.min_tokens,
        "typical_tokens": typical_tokens(constraint),
        "facts": _facts(report),
    }


def free_text() -> dict[str, Any]:
    """Returns the check of an answer without a schema or grammar."""
    return {**_NOTHING, "ok": True, "least_tokens": 0}


def refused(message: str, error: ConstrainError | None = None, lines: _Lines | None = None) -> dict[str, Any]:
    """Returns the check of a language that cannot be used, with the place of the error."""
    return {**_NOTHING, "errors": [_error(message, error, lines)]}


def _error(message: str, error: ConstrainError | None, lines: _Lines | None) -> dict[str, Any]:
    line = column = pointer = None
    if error is not None:
        line, column, pointer = error.line, error.column, error.pointer
        if error.line is None and column is not None:  # a pattern is one line
            line = 1
    if line is None and pointer is not None and lines is not None:
        line, column = lines.place(pointer)
    return {"kind": "error", "message": message, "line": line, "column": column, "pointer": pointer}


def _finding(kind: str, finding: Any, lines: _Lines | None) -> dict[str, Any]:
    line, column = (None, None) if lines is None else lines.place(finding.pointer)
    place = {"line": line, "column": column, "pointer": finding.pointer}
    return {"kind": kind, "rule": finding.rule, "message": finding.message, **place}


def _facts(report: Report | None) -> list[list[str]]:
    """Returns policies, sizes and warnings in words."""
    if report is None:
        return []
    facts = [[name.replace("_", " "), str(value)] for name, value in report.policies.items()]
    facts += [["rules", f"{report.rules:,}"], ["states", f"{report.states:,}"], ["terminals", f"{report.terminals:,}"]]
    facts += [["memory", f"{report.memory_bytes / 1024:,.0f} KiB"]]
    facts += [["read in every way", name] for name in report.split]
    return [*facts, *(["note", warning] for warning in report.warnings)]


class _Lines:
    """The lines and columns of the values of a JSON text, by JSON Pointer; they are found when they are asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _begins(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with suppress(ValueError):  # behind the place that is not JSON, no place is known
            found |= {pointer_to(each.path): each.begin for each in Scanner().feed(self._text) if each.kind == "begin"}
        return found

    def place(self, pointer: str) -> tuple[int | None, int | None]:
        """Returns line and column, from 1, of a value or the nearest one around it."""
        while pointer not in self._begins and pointer:
            pointer = pointer.rpartition("/")[0]
        if pointer not in self._begins:
            return None, None
        before = self._text[: self._begins[pointer]]
        return before.count("\n") + 1, len(before) - before.rfind("\n")


def explain_text(language: LanguageText, text: str, tokens: Sequence[int], vocabulary: Vocabulary) -> dict[str, Any]:
    """Returns how far a text matches, and what could follow. Raises ``ConstrainError``."""
    given = language.schema()
    schema = _read_document(given) if language.is_json else given
    found = explain(schema, text, closed=language.is_json, **language.policies)
    constraint = compile_any(schema, vocabulary, close_objects=True, **language.policies)
    spelled = [(token, vocabulary.token_bytes(token)) for token in tokens]
    following = in_words(found.next_characters)
    return {
        "matches": found.matches,
        "is_complete": found.is_complete,
        "offset": found.offset,
        "accepted": found.accepted.decode(errors="replace"),
        "rest": found.text[found.offset :].decode(errors="replace"),
        "line": found.line,
        "column": found.column,
        "expected": [each._asdict() for each in found.expected],
        "next": following if found.next_characters else ", ".join(f"byte {byte:#04x}" for byte in found.next_bytes),
        "completion": found.completion.decode(errors="replace"),
        "summary": str(found),
        "steps": [
            {
                "token": step.token,
                "text": step.text.decode(errors="backslashreplace"),
                "offset": step.offset,
                "allowed": step.n_allowed,
                "is_allowed": step.is_allowed,
                "least_tokens": step.min_tokens_left,
            }
            for step in token_steps(constraint, spelled)
            if step.token not in vocabulary.eos
        ],
    }
