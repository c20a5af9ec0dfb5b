"""What results look like in a notebook: one line, or HTML in which no text is markup."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import constrain
from constrain import Completion, Lark, Regex, grammars
from constrain.certificates.certificate import certify, chain
from constrain.notebooks import LINE_CHARACTERS
from constrain.parts import StructuralTag, choice, repeat, sequence, text
from constrain.results import (
    Captures,
    Chosen,
    FieldConfidence,
    LikelyToken,
    Report,
    Timings,
    TokenLogprob,
    TokenTrace,
    Usage,
)
from constrain.tools import CustomCall, CustomTool
from tests.support import for_each

MARKUP = "<b>&\"'"
ESCAPED = "&lt;b&gt;&amp;"


def completion(value: Any, **facts: Any) -> Completion:
    spent = Usage(20, 0, 3), Timings(0, 0, 0.25, 0.5)
    return Completion(value, "", (1, 2, 3), *spent, "stop", None, captures=Captures(), **facts)


def compiled(schema: Any) -> constrain.Constraint:
    tokens = [*(bytes([byte]) for byte in range(256)), b"", b""]
    vocabulary = constrain.Vocabulary.from_tokens(tokens, eos=[256], special={257: "<|call|>"})
    return constrain.compile(schema, vocabulary, cache=False)


COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "unknown": 1}
CALLED = Lark('start: <|call|> "x"')
REPORTED = (
    "Report(warnings=('w',), split=(), min_tokens=1, rules=2, states=3, terminals=4, memory_bytes=5, limited_masks=0)"
)
FIELD = FieldConfidence(3, 5, 6, range(2, 3), -0.5, 0.0, 0.0, 1)


@for_each(
    "shown, expected",
    (lambda: completion({"n": 3}), "Completion(value={'n': 3}, finish_reason='stop', 3 tokens in 0.8 s)"),
    (
        lambda: completion("a", ended_early=(("n",),)),
        "Completion(value='a', finish_reason='stop', 3 tokens in 0.8 s, early=['/n'])",
    ),
    (
        lambda: compiled(COUNT),
        """Constraint(shortest='{"n":0}', min_tokens=7, rules=2, terminals=15, n_vocab=258, warnings=1)""",
    ),
    (
        lambda: compiled(COUNT).matcher(),
        "Matcher(n_accepted=0, min_tokens_left=7, is_accepting=False, is_finished=False)",
    ),
    (
        lambda: compiled(CALLED),
        "Constraint(shortest='<|call|>x', min_tokens=2, rules=1, terminals=2, n_vocab=258, warnings=0)",
    ),
    (CALLED.grammar, "Grammar(start='start', rules=1, terminals=2)"),
    (
        lambda: constrain.explain({"enum": ["red", "green"]}, '"rot"'),
        """TextExplanation(matches=False, line=1, column=3, next='e', completion=b'ed"')""",
    ),
    (
        lambda: constrain.explain({"enum": ["red", "green"]}, '"red"'),
        "TextExplanation(matches=True, line=1, column=6)",
    ),
    (lambda: FIELD, "FieldConfidence(value=3, probability=1.0000, mass=1.0000)"),
    (lambda: Regex("[0-9]+"), "Regex(pattern='[0-9]+')"),
    (lambda: Lark('start: "a"', description="An a."), """Lark(text='start: "a"', description='An a.')"""),
    (
        lambda: sequence("a", choice(Regex("b"), int), repeat("c", 1, separator=","), text(until="d")),
        "sequence('a', choice(Regex('b'), int), repeat('c', 1, None, separator=','), text(until='d'))",
    ),
    (lambda: Report({"numbers": "any"}, {}, ("w",), (), 1, 2, 3, 4, 5, 0), REPORTED),
)
def test_a_result_is_one_line(shown: Any, expected: str) -> None:
    assert repr(shown()) == expected


def test_a_certificate_is_one_line_that_names_its_answer() -> None:
    certificate = certify(compiled({"const": 7}), b"7")
    assert repr(certificate) == f"Certificate(text='7', tokens=1, sha256={certificate['sha256']!r})"
    assert json.loads(json.dumps(certificate)) == certificate
    assert repr(chain(certificate, "before")).startswith("Certificate(text='7', ")


LONG = "a" * 10_000
TOKEN = TokenLogprob(1, "a", b"a", -0.5, (TokenLogprob(2, LONG, b"", -1.0),))
TRACED = TokenTrace(1, "a", b"a", "chosen", -0.5, 9, 0.5, (LikelyToken(1, LONG, -0.5, is_allowed=True),), (), 9, 9, ())
NOTE = CustomTool("note", "Notes.")


@for_each(
    "shown",
    [
        lambda: completion(LONG, ended_early=((LONG,),)),
        lambda: compiled({"const": LONG}),
        lambda: compiled({"const": 1, LONG: 1}).report,
        lambda: constrain.explain({"const": LONG}, ""),
        lambda: constrain.explain({"enum": [chr(code) for code in range(100, 300, 2)]}, '"'),
        lambda: constrain.results.LogitsProcessor(compiled({"const": LONG})),
        lambda: compiled({"const": LONG}).grammar.terminals[0],
        lambda: compiled({"enum": [{LONG: 1}, 2]}).grammar.rules[0],
        lambda: grammars.load("sql_select"),
        lambda: Lark(LONG, start=LONG, description=LONG, grammars={LONG: LONG}),
        lambda: constrain.Gbnf(LONG, description=LONG),
        lambda: Regex(LONG),
        lambda: StructuralTag({"format": {"type": "const_string", "value": LONG}}, description=LONG),
        lambda: sequence(LONG, Regex(LONG), repeat(LONG, separator=LONG), {"const": LONG}),
        lambda: replace(FIELD, value=LONG),
        lambda: constrain.results.Alternative(LONG, 0.5),
        lambda: Chosen(LONG, 0.5, {LONG: 0.5}, -1.0, 0.5),
        lambda: constrain.tools.Arguments(LONG, {"a": LONG}, (LONG,), {"a": LONG}),
        lambda: CustomCall("1", NOTE, LONG),
        lambda: constrain.tools.ToolRun(constrain.tools.Reply((CustomCall("1", NOTE, LONG),), LONG, LONG), [], ()),
        lambda: constrain.results.Refusal(LONG),
        lambda: constrain.events.FieldEvent("complete", (LONG,), LONG, LONG, LONG),
        lambda: constrain.Finished(completion(LONG)),
        lambda: constrain.events.ReasoningDelta(LONG),
        lambda: constrain.events.RefusalDelta(LONG),
        lambda: constrain.events.ArgumentsDelta(0, LONG),
        lambda: constrain.TextDelta(LONG, (TOKEN,)),
        lambda: constrain.events.TraceDelta((TRACED,)),
        lambda: TRACED,
        lambda: TOKEN,
        lambda: constrain.strict.Violation(LONG, (LONG,), LONG, LONG),
    ],
)
def test_long_values_are_cut(shown: Any) -> None:
    assert len(repr(shown())) < LINE_CHARACTERS + 30


@for_each(
    "shown, words",
    (lambda: completion(MARKUP, fields={("n",): FIELD}), ["finish_reason", "stop", "/n", "probability"]),
    (lambda: compiled({"const": MARKUP, MARKUP: 1}), ["policies", "flexible", "min_tokens"]),
    (lambda: constrain.explain({"const": MARKUP}, MARKUP), ["stops matching at line 1"]),
    (lambda: Lark(f"start: /{MARKUP}/"), ["start: /"]),
    (lambda: constrain.Gbnf(f"root ::= [{MARKUP}]"), ["root ::="]),
    (lambda: Chosen(MARKUP, 0.7, {"a": 0.3, MARKUP: 0.7}, -1.0, 0.5), ["0.7000", "mass"]),
    (lambda: Report({}, {}, (MARKUP,), (), 1, 1, 1, 1, 1, 0), ["memory_bytes"]),
)
def test_markup_in_a_result_is_escaped(shown: Any, words: list[str]) -> None:
    html = shown()._repr_html_()
    assert ESCAPED in html
    assert MARKUP not in html
    assert all(word in html for word in words)
