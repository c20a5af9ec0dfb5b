"""Trees of an answer's structure: beginnings of calls, and continuations behind each. Grammars and readers use them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.chat.answers.choices import Calls, CustomCalls, Reasoning, Value
from constrain.chat.answers.structure import (
    CONTENT,
    END,
    PREAMBLE,
    REASONING,
    Node,
    SpecialName,
    Variable,
    in_lexemes,
    leading_text,
    path_of,
    structure_parts,
    template_parts,
    tree,
)
from constrain.remembering import remembered

if TYPE_CHECKING:
    from constrain.chat.answers.choices import Choices, FunctionCalls
    from constrain.chat.answers.structure import Path
    from constrain.chat.families.format import ToolFormat

_VALUE = re.compile(r"\$(?:arguments|input|json_input)\b")
_FIRST_WORD = re.compile(rb"\s*\S+")
_QUOTE = b'"'


@dataclass(frozen=True, slots=True)
class AnswerTrees:
    """Beginnings of calls and sections, and continuations behind calls.

    Attributes:
        marks: texts that calls begin with, at least their first words. Free text outside of sections contains none of
            them (or, without ``text_before``, begins with none), for callable tools and others. No text contains a
            special token anyway.
        joined: by mark or special token, the structure between it and a call's value, for calls behind free text.
        first: structure at the beginning of an answer, except free text and values.
        second: structure behind a reasoning section.
        calls: structure behind a preamble.
        after: by tool, the structure behind a call's value.
        id_behind: tools whose structure behind the value contains an id.
        beside_json: beginnings of calls, up to their values, if these begin like the JSON values that content may be.
            An
            answer that begins like this is a call.
    """

    marks: tuple[bytes, ...]
    joined: dict[bytes | SpecialName, Node]
    first: Node
    second: Node
    calls: Node
    after: dict[int, Node]
    id_behind: frozenset[int]
    beside_json: tuple[bytes, ...]

    def stops(self, tool: int) -> list[bytes | SpecialName]:
        """Returns the texts and tokens that may end the value of a tool."""
        steps = [step for step, _ in self.after[tool].onward]
        assert not any(isinstance(step, Variable) for step in steps)
        return [step for step in steps if not isinstance(step, Variable)]


@dataclass(frozen=True, slots=True)
class _Template:
    """A call template, split at its value."""

    head: str
    value: Variable
    tail: str


def value_of(form: ToolFormat, tool: FunctionCalls | CustomCalls) -> Variable:
    """Returns the variable that stands for the value in a tool's call template."""
    return _template(form, tool).value


def steps_behind_name(answer: Choices, tool: int) -> int:
    """Returns the number of bytes, special tokens and ids between the name of a tool and the value of its call."""
    template = _template(answer.format, answer.tools[tool])
    parts = template_parts(template.head)
    behind = "".join(part if isinstance(part, str) else part.value for part in parts[parts.index(Variable.NAME) + 1 :])
    return len(_head(behind, template, "", frozenset(answer.special)))


def beginning_of_call(answer: Choices, tool: int) -> str:
    """Returns the structure that a call begins with, behind ``opening``: up to an id, or to the end of the name."""
    called = answer.tools[tool]
    before = _template(answer.format, called).head.partition(Variable.NAME.value)[0]
    text, mark, _ = before.partition(Variable.ID.value)
    return text if mark else text + called.name


TREE_BYTES = 16 << 20
"""Bytes that the trees of the latest answers may take together: 16 MiB; beyond it, the oldest are dropped."""


def _tree_bytes(answer: Choices) -> int:
    return 10_000 + sum(2_000 + 20 * len(tool.name) for tool in answer.tools)


@remembered(64, TREE_BYTES, _tree_bytes)
def answer_trees(answer: Choices) -> AnswerTrees:
    """Builds the trees of an answer, which nobody may change. Raises ValueError for a malformed form.

    The grammar of an answer and each of its readers ask for them, and most requests of a conversation have one answer.
    """
    form, names = answer.format, frozenset(answer.special)
    callable_tools = answer.callable_tools()
    of_kind = {type(tool): _template(form, tool) for tool in {type(tool): tool for tool in answer.tools}.values()}
    templates = {index: of_kind[type(tool)] for index, tool in enumerate(answer.tools)}
    heads = {
        index: _head(form.opening + templates[index].head, templates[index], tool.name, names)
        for index, tool in enumerate(answer.tools)
    }
    calls = [(heads[index], index) for index in callable_tools]
    marks: dict[int, bytes | SpecialName] = {}
    if form.content is None:
        marks = {index: _mark(form.opening + templates[index].head, heads[index], names) for index in heads}
    plain = _shortest({mark for mark in marks.values() if isinstance(mark, bytes)}, form)
    groups: dict[bytes | SpecialName, list[tuple[Path, int]]] = {}
    if begins_with_text(answer):
        for path, index in calls:
            mark = marks[index]
            begin = mark if isinstance(mark, SpecialName) else next(each for each in plain if mark.startswith(each))
            taken = len(begin) if isinstance(begin, bytes) else 1
            groups.setdefault(begin, []).append((path[taken:], index))
    by_mark = {mark: tree(group) for mark, group in groups.items()}
    reasoning = []
    if answer.reasoning is Reasoning.OPTIONAL and form.thinking is not None:
        reasoning = [(path_of([form.thinking.begin], "", names), REASONING)]
    beside_json: tuple[bytes, ...] = ()
    if _begin_like_values(answer, [path for path, _ in calls]):
        beside_json = tuple(leading_text(path) for path, _ in calls)
        calls = [(in_lexemes(path), index) for path, index in calls]
        reasoning = [(in_lexemes(path), index) for path, index in reasoning]
    if not begins_with_text(answer):
        second = tree([*calls, *_sections(answer)])
        first = tree([*calls, *_sections(answer), *reasoning])
    else:
        # Next to free text, each mark is one lexeme: text that begins like two of them is no mark yet.
        second = Node([] if form.text_before else list(by_mark.items()))
        first = Node([*second.onward, *tree(reasoning).onward])
    after = {tail: _after(answer, tail, templates) for tail in {templates[index].tail for index in callable_tools}}
    return AnswerTrees(
        plain,
        by_mark if form.text_before else {},
        first,
        second,
        tree(calls),
        {index: after[templates[index].tail] for index in callable_tools},
        frozenset(index for index in callable_tools if Variable.ID in template_parts(templates[index].tail)),
        beside_json,
    )


def begins_with_text(answer: Choices) -> bool:
    """Returns whether an answer may begin with free text outside of a section."""
    return answer.content is None and answer.format.content is None and answer.calls is not Calls.REQUIRED


def _begin_like_values(answer: Choices, paths: list[Path]) -> bool:
    """Returns whether calls may begin like the JSON objects that content may be."""
    return (
        isinstance(answer.content, Value)
        and answer.format.content is None
        and answer.calls is Calls.AUTO
        and any(leading_text(path).startswith(b"{") for path in paths)
    )


def has_preamble(answer: Choices) -> bool:
    """Returns whether a section of text may stand before calls."""
    form = answer.format
    return (
        form.preamble is not None
        and form.text_before
        and answer.content is None
        and answer.calls is Calls.AUTO
        and bool(answer.callable_tools())
    )


def _sections(answer: Choices) -> list[tuple[Path, int]]:
    """Returns the paths to content and to text before calls, if the form has sections for them."""
    form, names = answer.format, frozenset(answer.special)
    if form.content is None or answer.calls is Calls.REQUIRED:
        return []
    paths = [(path_of([form.content.begin], "", names), CONTENT)]
    if form.preamble is not None and form.preamble.begin != form.content.begin and has_preamble(answer):
        paths.append((path_of([form.preamble.begin], "", names), PREAMBLE))
    return paths


def _shortest(marks: set[bytes], form: ToolFormat) -> tuple[bytes, ...]:
    """Returns the marks that do not begin with another mark."""
    kept = {mark for mark in marks if not any(mark != other and mark.startswith(other) for other in marks)}
    if any(mark != other and mark in other for mark in kept for other in kept):
        raise ValueError(f"in the form {form.name}, the beginning of one call contains the beginning of another")
    return tuple(sorted(kept))


def _after(answer: Choices, tail: str, templates: dict[int, _Template]) -> Node:
    """Returns what may follow a tool call's arguments: the end of the answer, or another call."""
    form, names = answer.format, frozenset(answer.special)
    paths = [(path_of(template_parts(tail + form.closing), "", names), END)]
    if answer.parallel and form.parallel:
        for index in answer.callable_tools():
            head = tail + form.between + templates[index].head
            paths.append((_head(head, templates[index], answer.tools[index].name, names), index))
    node = tree(paths)
    if any(isinstance(step, Variable) for step, _ in node.onward):
        raise ValueError(f"the form {form.name} has an id directly behind the value of a call")
    return node


def _head(text: str, template: _Template, tool: str, names: frozenset[str]) -> Path:
    path = path_of(template_parts(text), tool, names)
    return path + tuple(_QUOTE) if template.value is Variable.JSON_INPUT else path


def _mark(text: str, path: Path, names: frozenset[str]) -> bytes | SpecialName:
    """Returns the mark of a call: its first special token, or the first word in front of the tool's name."""
    parts = template_parts(text)
    fixed = parts[0] if parts and isinstance(parts[0], str) else ""
    first = next(iter(structure_parts(fixed, names)), "")
    if isinstance(first, SpecialName):
        return first
    word = _FIRST_WORD.match(first.encode() or leading_text(path))
    if word is None:
        raise ValueError("a call must begin with a text, a special token or the name of its tool")
    return word.group()


def _template(form: ToolFormat, tool: FunctionCalls | CustomCalls) -> _Template:
    custom = isinstance(tool, CustomCalls)
    text, attribute = (form.custom_call, "custom_call") if custom else (form.call, "call")
    values = list(_VALUE.finditer(text))
    wanted = {"$input", "$json_input"} if custom else {"$arguments"}
    if len(values) != 1 or values[0].group() not in wanted:
        raise ValueError(f"{attribute} of the form {form.name} must have {' or '.join(sorted(wanted))} once: {text!r}")
    (value,) = values
    head, tail = text[: value.start()], text[value.end() :]
    if template_parts(head).count(Variable.NAME) != 1 or Variable.NAME in template_parts(tail):
        raise ValueError(f"{attribute} of the form {form.name} must have $name once, in front of the value: {text!r}")
    if template_parts(text).count(Variable.ID) > 1 or (Variable.ID in template_parts(text)) > bool(form.id_pattern):
        raise ValueError(f"{attribute} of the form {form.name} has $id twice, or without id_pattern: {text!r}")
    return _Template(head, Variable(value.group()), tail)
