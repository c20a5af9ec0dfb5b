"""Results of calls, compared with the ``output_schema`` of their tools: a wrong one is named in a warning.

This compiles the schemas, so a request that has any is read in the sandbox each time (``reading_key``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.engine.compiling import compile as compile_schema
from constrain.errors import ConstrainError
from constrain.server.http.account import warn
from constrain.server.requests.tools import name_in
from constrain.vocabulary.vocabulary import byte_vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.server.responses.input import Item


def warn_of_results(items: Sequence[Item], schemas: Mapping[str, Any]) -> None:
    """Warns of results that do not match. ``schemas``: those of results, by the name that the model calls."""
    calls = [each for each in items if each["type"] == "function_call"]
    called = {each["call_id"]: name_in(each.get("namespace"), each["name"]) for each in calls}
    for item in items:
        name = called.get(item.get("call_id"), "")
        if item["type"] == "function_call_output" and name in schemas and isinstance(item["output"], str):
            what = f"The result of the call '{item['call_id']:.80}' of '{name:.128}'"
            try:
                if not _is_value(schemas[name], item["output"]):
                    warn(f"{what} does not match the tool's 'output_schema'.")
            except ConstrainError as error:
                warn(f"{what} is not compared with the tool's 'output_schema': {error}")


def _is_value(schema: object, written: str) -> bool:
    """Returns whether a JSON text is a value of a schema, in any spelling. Raises the errors of schemas."""
    constraint = compile_schema(
        schema,
        byte_vocabulary(),
        cache=False,
        whitespace="any",
        property_order="any",
        numbers="any",
        escapes="any",
        formats="annotation",
    )
    return constraint.accepts(written.strip())
