"""Checks of a list of tools without a model: tokens in the prompt, tools that are alike, and schemas that cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations, takewhile
from operator import eq
from typing import TYPE_CHECKING, Any

from constrain.chat.prompt.conversation import conversation_prompt, format_of, function_of
from constrain.chat.tools.checks import checked_before, prefix_error
from constrain.chat.tools.kinds import CustomTool
from constrain.chat.tools.openai import tool_from_json
from constrain.errors import ConstrainError, ToolError
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.lint.findings import Finding
from constrain.json_schema.lint.linter import lint_schema
from constrain.language.schema_text import schema_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from constrain.chat.tools.kinds import Tool
    from constrain.language.grammar import Grammar
    from constrain.vocabulary.tokenizer import Tokenizer

ALIKE_NAMES = 0.6
"""Share of the longer name's characters that the beginnings of two names have in common; from it on, both are alike."""

ALIKE_DESCRIPTIONS = 0.6
"""Jaccard index of the sets of words of two descriptions (shared words / all words); from it on, both are alike."""

LEAST_WORDS = 4
"""Different words that a description has at least to be compared: shorter ones share most words by chance."""

_PROBE = {"name": "probe", "description": "Probe.", "parameters": {"type": "object", "properties": {}}}
"""A tool that is in both prompts whose difference is the tokens of another tool."""

_NAMESPACE = re.compile(r".*(?:__|[./])", re.DOTALL)
"""The part of a name in front of the name that its server gave."""


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """The facts about one tool.

    Attributes:
        name: its name.
        tokens: tokens of its definition in the prompt.
        short_tokens: tokens with its name and a line of its description alone.
        schema_bytes: bytes of its parameters as JSON.
        steps: steps to compile its parameters, out of ``MAX_COMPILE_WORK``; 0 for a custom tool.
        edges: edges of the automata of its parameters or format: their size.
        refused, narrowed, unsatisfiable: findings about its parameters, as in ``Lint``.
        warnings: warnings about its parameters.
    """

    name: str
    tokens: int
    short_tokens: int
    schema_bytes: int
    steps: int
    edges: int
    refused: tuple[Finding, ...] = ()
    narrowed: tuple[Finding, ...] = ()
    unsatisfiable: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alike:
    """Two tools that a model may confuse.

    Attributes:
        names: the names of both.
        shared_tokens: tokens that both names begin with.
        name_share: share of the longer name's characters, without namespaces, that both begin with.
        description_share: Jaccard index of the words of their descriptions.
    """

    names: tuple[str, str]
    shared_tokens: int
    name_share: float
    description_share: float

    @property
    def reasons(self) -> list[str]:
        """Why a model may confuse them."""
        said = []
        if self.name_share >= ALIKE_NAMES:
            said.append(f"names begin alike ({self.name_share:.0%}), with the same {self.shared_tokens} tokens")
        if self.description_share >= ALIKE_DESCRIPTIONS:
            said.append(f"descriptions share {self.description_share:.0%} of their words")
        return said


@dataclass(frozen=True, slots=True)
class ToolsCheck:
    """The result of checking a list of tools.

    Attributes:
        tools: the tools, those with most tokens first.
        tokens: tokens by which all tools make a prompt longer; ``frame`` of them are about none of the tools.
        frame: tokens of the text around the tools.
        short_tokens: tokens of all tools with their names and a line of their descriptions alone.
        alike: pairs that a model may confuse.
        left_out: types of tools that others run, so that no model is shown them.
    """

    tools: tuple[ToolFacts, ...]
    tokens: int
    frame: int
    short_tokens: int
    alike: tuple[Alike, ...]
    left_out: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the parameters of every tool are enforced, and every part of them can be used."""
        return not any(tool.refused or tool.unsatisfiable for tool in self.tools)


def read_tool_list(document: object) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Returns the functions and custom tools of a list as responses have them, and the types of all other tools.

    ``document``: the ``tools`` of a request to OpenAI's or Anthropic's endpoints, the result of MCP's ``tools/list``,
    or an object that has one of them, such as a request. Raises ``ToolError``.

    >>> listed, _ = read_tool_list({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]})
    >>> [one["name"] for one in listed]
    ['add']
    """
    while isinstance(document, Mapping):
        inner = document.get("tools", document.get("result"))
        if inner is None:
            raise ToolError("this object has no list of tools; its member 'tools' must be one")
        document = inner
    if not isinstance(document, list):
        raise ToolError("this is no list of tools, and no object with one")
    found: list[Mapping[str, Any]] = []
    left_out: list[Mapping[str, Any]] = []
    for index, given in enumerate(document):
        if not isinstance(given, Mapping):
            raise ToolError(f"tools[{index}] is not an object")
        for entry in _flat(given):
            (found if entry["type"] in ("function", "custom") else left_out).append(entry)
    return found, [str(entry["type"]) for entry in left_out]


def _flat(given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the tools that an entry of a list stands for, in one form: a type, and the other members next to it."""
    kind = given.get("type")
    if kind == "namespace":
        for inner in given.get("tools") or ():
            for entry in _flat(inner):
                yield {**entry, "name": f"{given.get('name')}.{entry.get('name')}"}
        return
    schema = given.get("input_schema", given.get("inputSchema"))
    if schema is not None or (kind is None and "name" in given):  # Anthropic's or MCP's
        shown = {key: given.get(key) for key in ("name", "description", "strict")}
        yield {"type": "function", **shown, "parameters": schema}
        return
    inner = given.get(kind) if isinstance(kind, str) else None
    yield {**inner, "type": kind} if isinstance(inner, Mapping) else dict(given)


def check_tools(document: object, tokenizer: Tokenizer, template: str) -> ToolsCheck:
    """Checks a list of tools, as ``read_tool_list`` takes it, for the tokenizer and chat template of a model.

    Raises the errors of ``tool_from_json`` for an entry that is no tool, and ``ModelError`` if the template fails.
    """
    listed, left_out = read_tool_list(document)
    made = [_make(entry, index) for index, entry in enumerate(listed)]
    form = format_of(tokenizer, template)

    def count(*functions: Mapping[str, Any], by_name: bool = False) -> int:
        tools = [{"type": "function", "function": each} for each in functions]
        prompt = conversation_prompt(tokenizer, template, "Hello", tools=tools, form=form, by_name=by_name)
        return len(prompt.tokens)

    functions = [function_of(tool) for tool in made]
    without, probe, short_probe = count(), count(_PROBE), count(_PROBE, by_name=True)
    facts = [
        _facts(tool, count(_PROBE, function) - probe, count(_PROBE, function, by_name=True) - short_probe)
        for tool, function in zip(made, functions, strict=True)
    ]
    total, short_total = count(*functions) - without, count(*functions, by_name=True) - without
    return ToolsCheck(
        tuple(sorted(facts, key=lambda each: -each.tokens)),
        total,
        total - sum(each.tokens for each in facts),
        short_total,
        tuple(_find_alike(functions, tokenizer)),
        tuple(left_out),
    )


def _make(entry: Mapping[str, Any], index: int) -> Tool:
    """Makes a tool, whose parameters or format need not be enforceable."""
    try:
        with checked_before():
            return tool_from_json(entry)
    except ConstrainError as error:
        raise prefix_error(error, f"tools[{index}]") from error


def _facts(tool: Tool, tokens: int, short_tokens: int) -> ToolFacts:
    if isinstance(tool, CustomTool):
        refused: tuple[Finding, ...] = ()
        try:
            grammar = None if tool.format is None else tool.format.grammar()
        except ConstrainError as error:
            refused, grammar = (Finding("refused", "", error.message),), None
        return ToolFacts(tool.name, tokens, short_tokens, 0, 0, _edges(grammar), refused)
    lint = lint_schema(tool.schema)
    facts = ToolFacts(tool.name, tokens, short_tokens, len(schema_text(tool.parameters)), 0, 0, lint.refused)
    facts = replace(facts, narrowed=lint.narrowed, unsatisfiable=lint.unsatisfiable)
    if not lint.exact:
        return facts
    compiled = compile_schema(tool.schema, close_objects=True, keys_apart=True)
    return replace(facts, steps=compiled.steps, edges=_edges(compiled.grammar), warnings=compiled.warnings)


def _edges(grammar: Grammar | None) -> int:
    return 0 if grammar is None else sum(len(rule.edges) for rule in grammar.rules)


def _find_alike(functions: Sequence[Mapping[str, Any]], tokenizer: Tokenizer) -> Iterator[Alike]:
    """Yields the pairs that a model may confuse."""
    facts = []
    for function in functions:
        inner = _NAMESPACE.sub("", function["name"]).casefold().replace("-", "").replace("_", "")
        words = frozenset(re.findall(r"\w+", function["description"].casefold()))
        facts.append((function["name"], inner, words, tokenizer.tokenize(function["name"])))
    for (one, inner, words, tokens), (two, inner_two, words_two, tokens_two) in combinations(facts, 2):
        longest = max(len(inner), len(inner_two))
        by_name = _shared(inner, inner_two) / longest if longest else 0.0
        is_short = min(len(words), len(words_two)) < LEAST_WORDS
        by_words = 0.0 if is_short else len(words & words_two) / len(words | words_two)
        found = Alike((one, two), _shared(tokens, tokens_two), by_name, by_words)
        if found.reasons:
            yield found


def _shared(one: Sequence[object], two: Sequence[object]) -> int:
    """Returns how many items both begin with."""
    return sum(takewhile(bool, map(eq, one, two)))
