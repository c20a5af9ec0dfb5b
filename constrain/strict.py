"""OpenAI's strict subset of JSON Schema: checks a schema against it, and rewrites a schema into it."""

from __future__ import annotations

from constrain.json_schema.strict.checks import Violation
from constrain.json_schema.strict.subset import check_strict, strict_schema

__all__ = ["Violation", "check_strict", "strict_schema"]
