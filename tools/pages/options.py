"""Writes docs/reference/options.md: the options of ``generate`` and its relatives."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from constrain.arguments import options_of
from constrain.generation.exclusions import RULES
from constrain.generation.options import (
    MEANINGS,
    OPTION_DEFAULTS,
    ChatOptions,
    Conversation,
    Limits,
    Options,
    Prompting,
    Reports,
    ValueOptions,
)
from constrain.language.policies import ABOUT, CHOICES, CompileOptions, Compiling
from constrain.llama.decoding.sampling import Sampling
from constrain.server.openapi.document import describe
from constrain.server.openapi.operations import OPERATIONS
from tools.pages import policies
from tools.pages.command_line import exclusions, flags_of
from tools.pages.markdown import NOTE, code, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.arguments import Option

_HEADER = f"""# Options

The keyword arguments that `generate`, `complete`, `stream`, `agenerate`, `acomplete`, `astream`, `generate_batch`,
`complete_batch`, `run_tools` and `arun_tools` share. All may be left out. Lines of a `constrain batch` file take all
but `trace` under the same names. An unknown name raises `TypeError`, a value out of range `ValueError`.

In Python, `help(constrain.generate)` shows the same text, and notebooks complete the names. Annotate your own wrappers:
`def ask(prompt: str, **options: Unpack[constrain.options.ChatOptions])`.

{NOTE}"""

_GROUPS = {
    "Beginning, length and end": Limits,
    "Sampling": Sampling,
    "The prompt": Prompting,
    "Probabilities and proofs": Reports,
    "The schema": Compiling,
    "Tools, refusals and reasoning": Conversation,
}

_BODIES = ("ChatRequest", "ResponsesRequest", "CompletionRequest", "MessagesRequest")


def page() -> str:
    """Returns the text of the page."""
    types = _types()
    parts = [_HEADER]
    for title, group in _GROUPS.items():
        parts.append(f"\n## {title}\n")
        for name, option in options_of(group).items():
            facts = [f"`{types[name]}`", f"default `{OPTION_DEFAULTS[name]!r}`", *_givers(name, option)]
            about = ABOUT.get(name) or MEANINGS[name].partition(":")[2]
            parts.append(f"\n### {name}\n\n{', '.join(facts)}\n\n{sentence(about)}\n")
            if name in CHOICES:
                listed = "".join(f'- `"{value}"`: {policies.MEANINGS[name][value]}\n' for value in CHOICES[name])
                parts.append(f"\n{listed}\n[Policies](policies.md#{name}) shows texts that each value accepts.\n")
    return "".join(parts) + exclusions(rule for rule in RULES if rule.python or rule.field)


def _givers(name: str, option: Option) -> Iterator[str]:
    """Yields the ways besides Python to give an option."""
    known = flags_of("generate")
    names = [flag.name or name for flag in option.flags] or [name]
    if spelled := [code(known[each]) for each in names if each in known]:
        yield f"on the command line {' and '.join(spelled)}"
    fields = [each for each in option.fields or (name,) if each.partition(".")[0] in _known_fields()]
    assert not option.fields or len(fields) == len(option.fields), f"no request has all of {option.fields}"
    if fields:
        yield f"in requests {' and '.join(map(code, fields))}"
    if not option.in_batch:
        yield "not in lines of a batch"


@cache
def _known_fields() -> frozenset[str]:
    """Returns the fields of requests for answers."""
    routes: Any = [SimpleNamespace(path_format=one.path, methods=(one.method,)) for one in OPERATIONS]
    schemas = describe(routes, ["small"], has_keys=True)["components"]["schemas"]
    return frozenset(name for body in _BODIES for name in schemas[body]["properties"])


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
