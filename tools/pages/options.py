"""Writes docs/reference/options.md: the options of ``generate`` and its relatives."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING

from docstring_parser import parse

from constrain.generation.exclusions import RULES
from constrain.generation.options import OPTION_DEFAULTS, ChatOptions, Options, ValueOptions
from constrain.language.policies import ABOUT, CHOICES, CompileOptions
from constrain.llama.decoding.sampling import LISTS, OPTIONS
from tools.pages.command_line import exclusions, flags_of
from tools.pages.markdown import NOTE, sentence
from tools.pages.policies import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = f"""# Options

The keyword arguments that `generate`, `complete`, `stream`, `agenerate`, `acomplete`, `astream`, `generate_batch`,
`complete_batch`, `run_tools` and `arun_tools` share. All may be left out. Lines of a `constrain batch` file take all
but `trace` under the same names. An unknown name raises `TypeError`, a value out of range `ValueError`.

In Python, `help(constrain.generate)` shows the same text, and notebooks complete the names. Annotate your own wrappers:
`def ask(prompt: str, **options: Unpack[constrain.ChatOptions])`.

{NOTE}"""

_GROUPS = {
    "Beginning, length and end": (
        "prefix",
        "max_tokens",
        "max_string_tokens",
        "max_number_tokens",
        "stop",
        "timeout",
    ),
    "Sampling": (
        "temperature",
        *(name for name in OPTIONS if name != "temperature"),
        "logit_bias",
        *LISTS,
    ),
    "The prompt": ("show_schema", "cache_prompt"),
    "Probabilities": ("logprobs", "top_logprobs", "confidence", "trace", "certificate", "unbias"),
    "The schema": (*CHOICES, "strict", "registry", "sources"),
    "Tools, refusals and thinking": (
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "tool_format",
        "allow_refusal",
        "draft",
        "thinking",
        "max_reasoning_tokens",
        "reasoning_effort",
        "template_variables",
    ),
}

_OF_COMPILE = {
    "strict": "whether the schema must keep the structural rules of OpenAI's strict mode; a ``SchemaError`` lists all "
    "that it breaks. ``strict_schema`` makes a schema keep them.",
    "registry": "a mapping from URIs to schemas, such as a ``referencing.Registry``, for references that leave the "
    "schema and for metaschemas of your own. Nothing is ever fetched.",
}


def page() -> str:
    """Returns the text of the page."""
    types, meanings, flags = _types(), _meanings(), flags_of("generate")
    grouped = [name for names in _GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(types), f"in no group, or no options: {set(grouped) ^ set(types)}"
    parts = [_HEADER]
    for group, names in _GROUPS.items():
        parts.append(f"\n## {group}\n")
        for name in names:
            facts = [f"`{types[name]}`", f"default `{OPTION_DEFAULTS[name]!r}`"]
            facts += [f"on the command line `{flags[name]}`"] if name in flags else []
            parts.append(f"\n### {name}\n\n{', '.join(facts)}\n\n{sentence(meanings[name])}\n")
            if name in CHOICES:
                listed = "".join(f'- `"{value}"`: {MEANINGS[name][value]}\n' for value in CHOICES[name])
                parts.append(f"\n{listed}\n[Policies](policies.md#{name}) shows texts that each value accepts.\n")
    return "".join(parts) + exclusions(rule for rule in RULES if rule.python or rule.field)


def _types() -> dict[str, str]:
    """Returns the annotation of each option as its source has it."""
    return {
        name: ast.unparse(annotation)
        for of in (CompileOptions, Options, ValueOptions, ChatOptions)
        for name, annotation in _annotations(of)
    }


def _annotations(of: type) -> Iterator[tuple[str, ast.expr]]:
    (definition,) = ast.parse(inspect.getsource(of)).body
    assert isinstance(definition, ast.ClassDef)
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.annotation


def _meanings() -> dict[str, str]:
    """Returns what the docstrings say about each option."""
    found = {
        param.arg_name: param.description or ""
        for of in (Options, ChatOptions)
        for param in parse(of.__doc__ or "").params
    }
    return found | ABOUT | _OF_COMPILE
