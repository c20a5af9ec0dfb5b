"""Grammars as documented for OpenAI's custom tools: what a real model writes is accepted by an independent matcher."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from lark import Lark as LarkParser

import constrain
from tests.support import LONG, data_folder

if TYPE_CHECKING:
    from collections.abc import Callable

TEXTS = 20 if LONG else 4
MAX_TOKENS = 48

PATCH = """\
start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
hunk: add | delete | update
add: "*** Add File: " filename LF add_line+
delete: "*** Delete File: " filename LF
update: "*** Update File: " filename LF change+
filename: /(.+)/
add_line: "+" /(.*)/ LF
change: ("+" | "-" | " ") /(.*)/ LF
%import common.LF
"""
_PATCH_TEXT = re.compile(
    r"\*\*\* Begin Patch\n"
    r"(?:\*\*\* Add File: [^\n]+\n(?:\+[^\n]*\n)+|\*\*\* Delete File: [^\n]+\n|"
    r"\*\*\* Update File: [^\n]+\n(?:[+ -][^\n]*\n)+)+"
    r"\*\*\* End Patch\n?"
)


REFUSED_BY_LARK = {"math_exp": "[0-9]+(?: [+*] [0-9]+)*"}
"""What such grammars mean: Lark takes an alternative with an alias and the same one without for a mistake."""


def documented() -> dict[str, dict[str, str]]:
    examples: dict[str, Any] = json.loads((data_folder() / "openai-examples.json").read_text(encoding="utf-8"))
    return {name: tool["format"] for name, tool in examples["custom_tools"].items() if "format" in tool}


def matcher(syntax: str, definition: str) -> Callable[[str], object]:
    """Lark's own parser, or Python's ``re``; raises or returns something false for what does not match."""
    if syntax == "lark":
        return LarkParser(definition, parser="earley", lexer="dynamic_complete").parse
    return re.compile(definition).fullmatch


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arithmetic", "math_exp", "sentence", "timestamp"])
def test_documented_grammars(name: str, model: constrain.Model) -> None:
    form = documented()[name]
    source = constrain.Lark(form["definition"]) if form["syntax"] == "lark" else constrain.Regex(form["definition"])
    plain = REFUSED_BY_LARK.get(name)
    matches = matcher("regex", plain) if plain else matcher(form["syntax"], form["definition"])
    for text in written(model, f"Use the tool {name}.", source):
        assert matches(text), text


@pytest.mark.slow
def test_a_patch_grammar_with_a_nullable_terminal(model: constrain.Model) -> None:
    for text in written(model, "Fix the typo in README.md.", constrain.Lark(PATCH)):
        assert _PATCH_TEXT.fullmatch(text), text


@pytest.mark.slow
def test_a_patch_as_the_input_of_a_tool(model: constrain.Model) -> None:
    tool = constrain.CustomTool("apply_patch", "Applies a patch.", constrain.Lark(PATCH))
    for seed in range(TEXTS):
        completion = constrain.complete(
            model, "Fix the typo in README.md.", tools=[tool], tool_choice="required", parallel_tool_calls=False,
            temperature=1, seed=seed, max_tokens=MAX_TOKENS,
        )  # fmt: skip
        [call] = completion.value.calls
        assert _PATCH_TEXT.fullmatch(call.text), call.text


def written(model: constrain.Model, prompt: str, source: object) -> list[str]:
    """Texts at temperature 1, from the whole distribution, none of more than ``MAX_TOKENS`` tokens."""
    found = []
    for seed in range(TEXTS):
        completion = constrain.complete(
            model, prompt, schema=source, temperature=1, top_k=0, top_p=1, min_p=0, seed=seed, max_tokens=MAX_TOKENS
        )
        assert len(completion.tokens) <= MAX_TOKENS
        found.append(completion.text)
    return found
