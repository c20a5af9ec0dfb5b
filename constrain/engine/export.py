"""``export``: a schema or grammar in the notation of other programs, without a vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.arguments import lists_options
from constrain.engine.compiling import grammar_of
from constrain.errors import deep_enough
from constrain.language.policies import DEFAULTS, CompileOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from constrain.exporting.exporter import Target


@lists_options(CompileOptions, DEFAULTS)
def export(
    schema: object,
    to: Target,
    *,
    closed: bool = True,
    repeated_keys: bool = False,
    **options: Unpack[CompileOptions],
) -> str:
    r"""Returns a text with the very language of a schema or grammar, for other programs to read.

    Args:
        schema: a JSON Schema, a type, a ``Regex``, ``Lark``, ``Gbnf``, ``Grammar`` or composition, as for ``compile``.
        to: ``"gbnf"`` (grammars of llama.cpp, for llama-server, Ollama and LM Studio), ``"lark"`` (the dialect of
            llguidance, OpenAI and this package) or ``"regex"`` (a pattern for the whole text, in the syntax that Rust's
            ``regex`` crate and Python's ``re`` share).
        closed: whether objects have only the keys that the schema declares, as in ``generate``; ``False`` for the
            schema's own language, as in ``compile``.
        repeated_keys: whether an object may have an undeclared key more than once, where the schema allows such keys.
            No notation can say that they differ, so without it, objects with any number of such keys are refused.
        options: the policies of ``compile`` for JSON Schemas, and ``registry``.

    GBNF and patterns have no lexemes: every way to divide a text counts. A grammar in which the longest match leaves
    out some of these ways is not exported to them.

    Raises ``ExportError`` if the notation cannot say the language: for keys or items that must differ from each other,
    or for a pattern with recursion; its ``pointer`` names the place. Raises ``LimitError`` if the text would be too
    long, and the errors of ``compile``.

    >>> print(export({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1}, "regex", whitespace="compact"))
    \[(?:"a"|"b")(?:,(?:"a"|"b"))*\]
    """
    from constrain.exporting.exporter import export_grammar

    grammar = grammar_of(schema, close_objects=closed, target=to, **options)
    with deep_enough():
        return export_grammar(grammar, to, repeated_keys=repeated_keys)
