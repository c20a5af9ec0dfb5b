"""No recursion is as deep as the input is long: deep input works on a small stack, or meets a limit by its name."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator

import pytest

from tests.support.apart import Apart

_BEGIN = """
import re, threading
resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
from constrain import Lark, Regex
VOCABULARY = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])

def compiled(schema, **policies):
    return constrain.compile(schema, VOCABULARY, cache=False, **policies)

def nested(around, inner, times):
    for _ in range(times):
        inner = around(inner)
    return inner

def chain(schema, last, links=1500):
    definitions = {f"d{i}": schema({"$ref": f"#/$defs/d{i + 1}"}) for i in range(links)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{links}": last}}
"""

WORKS = {
    "links beside a star": """
        pattern = "^([ab]*|" + "a*b" * 20_000 + ")$"
        constraint = compiled({"type": "string", "pattern": pattern})
        assert constraint.accepts('"ab"')
        assert len(constraint._packed().tables) > 0""",
    "links": """
        constraint = compiled(Regex("ab*" * 20_000))
        matcher = constraint.matcher()
        assert matcher.min_tokens_left == 20_000
        matcher.fill_bitmask(constraint.allocate_bitmask()[0])
        assert constraint.accepts("a" * 20_000)""",
    "words of a star, each within the next": """
        words = "|".join("a" * length + "b" for length in range(1, 300))
        assert compiled(Regex(f"({words})*")).accepts("ab")""",
    "groups": """
        assert compiled(Regex("(a" * 99 + ")?" * 99)).accepts("aa")
        assert compiled(Regex("(" * 99 + "a*b" + ")*c" * 99)).accepts("c")""",
    "expressions that share their parts": """
        terminals = [f'T{i}: T{i + 1} "x" | "z" T{i + 1}' for i in range(40)]
        assert compiled(Lark("\\n".join(["start: T0", *terminals, 'T40: "q"']))).accepts("q" + "x" * 40)""",
    "expressions that share their first parts": """
        terminals = [f'T{i}: T{i + 1} "x" | T{i + 1} "z"' for i in range(40)]
        assert compiled(Lark("\\n".join(["start: T0", *terminals, 'T40: "q"']))).accepts("q" + "xz" * 20)""",
    "deep expressions": """
        words = " ".join(f"w{i}" for i in range(900))
        constraint = compiled(Lark('start: %regex {"substring_words": "' + words + '"}'))
        assert constraint.accepts("w1")
        constraint.matcher().fill_bitmask(constraint.allocate_bitmask()[0])""",
    "rules": """
        rules = [f'r{i}: "a" r{i + 1} "b"' for i in range(5000)]
        assert compiled(Lark("\\n".join(["start: r0", *rules, 'r5000: "c"']))).matcher().min_tokens_left == 10_001
        rules = [f'r{i}: r{(i + 1) % 1000} "a" | "b"' for i in range(1000)]
        assert compiled(Lark("\\n".join(["start: r0", *rules]))).accepts("ba")""",
    "values": """
        lists = {"type": "array", "items": {"$ref": "#/$defs/a"}, "uniqueItems": True}
        assert compiled({"$ref": "#/$defs/a", "$defs": {"a": lists}}).accepts("[" * 100_000 + "]" * 100_000)
        deep = "[" * 3000 + "]" * 3000
        assert compiled({"type": "array", "uniqueItems": True}).accepts("[" + deep + "," + deep[1:-1] + "]")""",
    "schemas": """
        compiled(nested(lambda inner: {"type": "array", "items": inner}, {}, 490))
        compiled(nested(lambda inner: {"not": {"items": inner}}, {"type": "string"}, 240))
        compiled(chain(lambda inner: {"not": {"type": "array", "items": inner}}, {"type": "integer"}))
        compiled(chain(lambda inner: {"type": "array", "contains": inner}, {"type": "integer"}))""",
    "a long token": """
        tokens = [*(bytes([byte]) for byte in range(256)), b"", b"a" * 100_000]
        vocabulary = constrain.Vocabulary.from_tokens(tokens, eos=[256])
        matcher = constrain.compile(Regex("a*"), vocabulary, cache=False).matcher()
        assert matcher.accept(97)
        matcher.forced_bytes()""",
    "repetitions": """
        constraint = compiled(Lark('start: ("a" "b")~100000'))
        assert constraint.matcher().min_tokens_left == 200_000
        assert constraint.accepts("ab" * 100_000)""",
}

REFUSED = {
    "MAX_PATH_STATES": """compiled(Lark('start: ("a" "b")~200000'))""",
    "rule r.*MAX_PATH_STATES": """compiled(Lark('start: "x" | r\\nr: ("a" "b")~200000'))""",
    "MAX_SHORTEST_MATCH": """compiled(Lark('start: y~200\\ny: x~200\\nx: ("a" "b")~500'))""",
    "MAX_IN_PLACE_DEPTH": 'compiled(chain(lambda inner: {"allOf": [inner]}, {"type": "integer"}))',
    "MAX_EXPRESSION_DEPTH": """
        from constrain import kernel
        from constrain.language.tree import Alternation, Concatenation, Literal
        a, b = Literal(b"a"), Literal(b"b")
        kernel.is_empty(nested(lambda part: Concatenation((Alternation((part, b)), a)), a, 20_000))""",
    "unknown how many different items there are": """
        unique = lambda inner: {"type": "array", "uniqueItems": True, "minItems": 2, "items": inner}
        compiled(chain(unique, {"enum": [1, 2, 3]}))""",
    "nested too deeply": "compiled(nested(lambda kind: list[kind], int, 450))",
    "the schema is nested too deeply": """compiled('{"items":' * 30_000 + "true" + "}" * 30_000)""",
}


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    """A program with a small stack."""
    with Apart(_BEGIN, stack=1024) as program:
        yield program


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the size of the stack is set as Unix does")
@pytest.mark.parametrize("name", WORKS)
def test_deep_input_needs_no_deep_stack(name: str, apart: Apart) -> None:
    outcome = apart.run(textwrap.dedent(WORKS[name]))
    assert outcome.error == "works", outcome


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the size of the stack is set as Unix does")
@pytest.mark.parametrize("limit", REFUSED)
def test_input_beyond_a_limit_is_refused_by_its_name(limit: str, apart: Apart) -> None:
    outcome = apart.run(textwrap.dedent(REFUSED[limit]))
    assert outcome.ours, outcome
    assert re.search(limit, outcome.message), outcome
