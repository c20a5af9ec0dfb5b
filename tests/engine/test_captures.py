"""Captures: the texts of named rules and groups, their spans, and which of several readings counts."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from random import Random
from typing import Any

import pytest

import constrain
from constrain import Lark, Regex, engine
from constrain.engine import captures as capturing
from constrain.engine.captures import Captures, captures_object
from tests.support import LONG, byte_vocabulary, for_each
from tests.support.oracles.lark.generator import make_case


def compiled(grammar: str) -> constrain.Constraint:
    return constrain.compile(Lark(grammar), byte_vocabulary(), cache=False)


def captures(grammar: str, text: str) -> Captures:
    found = compiled(grammar).captures(text)
    for name, spans in found.spans.items():
        texts = [text[start:end] for start, end in spans]
        assert found[name] == (texts[0] if len(texts) == 1 else texts)
    return found


@for_each(
    "grammar, text, expected",
    [
        ('start: name ("," name)*\nname[capture]: /[a-z]+/', "ada", {"name": "ada"}),
        ('start: name ("," name)*\nname[capture]: /[a-z]+/', "ada,bo", {"name": ["ada", "bo"]}),
        ('start: a b?\na[capture="x"]: "é"\nb[capture="y"]: "b"', "é", {"x": "é"}),
        ('start: a b\na[capture="x"]: "é"\nb[capture="x"]: "b"', "éb", {"x": ["é", "b"]}),
        ('start[capture]: "(" start? ")" | "x"', "((x))", {"start": ["((x))", "(x)", "x"]}),
        ('start: s "x"?\ns[capture, suffix="<end>", stop_capture="e"]: /.*/', "a<end>x", {"s": "a", "e": "<end>"}),
        ('start: s\ns[capture, suffix=/ab|b/, stop_capture="e"]: /.*/', "xab", {"s": "xa", "e": "b"}),
        ('start[capture]: s "<end>"\ns[capture, stop="<end>"]: /.*/', "a<end>", {"start": "a<end>", "s": "a"}),
        ('start: s\ns[capture, stop="\\n"]: /.*/', "abc", {"s": "abc"}),
        ('start: s\ns[capture, lazy, stop_capture="e"]: /a*b/', "aab", {"s": "aab", "e": ""}),
        ('start: x "." y\nx[capture]: /a+/\ny[capture]: /b+/\n%ignore " "', "aa  .   bb", {"x": "aa", "y": "bb"}),
        ('start: x ";" \nx[capture]: / ?a/+\n%ignore " "', " a  a;"[1:], {"x": "a  a"}),
        ('start: x y\nx[capture]: "c"{70,80}\ny[capture]: "c"{70,80}', "c" * 145, {"x": "c" * 75, "y": "c" * 70}),
        ('start: j ";"\nj[capture]: %json {"type": "array"}', '[1,{"a":[]}];', {"j": '[1,{"a":[]}]'}),
        ("start: /(?P<x>a+)/", "aa", {}),
    ],
)
def test_captures_of_rules(grammar: str, text: str, expected: dict[str, Any]) -> None:
    assert captures(grammar, text) == expected


@for_each(
    "grammar, text, expected",
    [
        ('start: x y\nx[capture]: ("a" | "aa")*\ny[capture]: "a"*', "aaa", {"x": "aaa", "y": ""}),
        ("start: x y\nx[capture]: /[ab]*/\ny[capture]: /b+/", "abbb", {"x": "abb", "y": "b"}),
        ('start: e\ne[capture]: e "+" e | /[0-9]/', "1+2+3", {"e": ["1+2+3", "1+2", "1", "2", "3"]}),
        ('start: a\na[capture]: a | b\nb[capture]: a | "x"', "x", {"a": "x", "b": "x"}),
        ('start: a | b\na[capture]: "x"\nb[capture]: /[xy]/', "x", {"a": "x"}),
        ('start: b | a\na[capture]: "x"\nb[capture]: /[xy]/', "x", {"b": "x"}),
        ('start: "x" | a\na[capture]: "x"', "x", {}),
        ("start: a*\na[capture]: b?\nb[capture]: /x/", "xx", {"a": ["x", "x"], "b": ["x", "x"]}),
    ],
)
def test_of_several_readings_the_first_parts_are_as_long_as_possible(
    grammar: str, text: str, expected: dict[str, Any]
) -> None:
    assert captures(grammar, text) == expected


def test_groups_of_a_pattern_are_captures() -> None:
    constraint = constrain.compile(Regex(r"(?P<key>.*?): (?P<value>.*)"), byte_vocabulary(), cache=False)
    found = constraint.captures("é: b: c")
    assert found == {"key": "é", "value": "b: c"}
    assert found.spans == {"key": [(0, 1)], "value": [(3, 7)]}


def test_a_text_that_does_not_match_has_no_captures() -> None:
    with pytest.raises(ValueError, match="it does not match"):
        compiled('start: a\na[capture]: "x"').captures("y")


def test_special_tokens_are_not_part_of_the_text() -> None:
    vocabulary = constrain.Vocabulary.from_tokens(
        [bytes([byte]) for byte in range(256)] + [b"", b""], eos=[256], special={257: "<|call|>"}
    )
    constraint = constrain.compile(Lark('start: <|call|> a <|call|> b\na[capture]: "é"\nb[capture]: /b+/'), vocabulary)
    text = b"".join([vocabulary.marked_bytes(257), "é".encode(), vocabulary.marked_bytes(257), b"bb"])
    found = constraint.captures(text)
    assert found == {"a": "é", "b": "bb"}
    assert found.spans == {"a": [(0, 1)], "b": [(1, 3)]}


def test_a_long_second_reading_meets_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capturing, "MAX_CAPTURE_WORK", 1_000)
    constraint = compiled('start: e\ne[capture]: e e | "x"')
    assert len(constraint.captures("x" * 5)["e"]) == 9
    with pytest.raises(constrain.LimitError, match="MAX_CAPTURE_WORK"):
        constraint.captures("x" * 100)


def test_the_search_for_ignored_text_meets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = compiled('start: "x" a\na[capture]: /[ab ]+b/\n%ignore " "')
    assert constraint.captures("x" + " " * 40 + "b")["a"] == " " * 40 + "b"
    monkeypatch.setattr(capturing, "MAX_CAPTURE_WORK", 1_000)
    other = compiled('start: "x" a\na[capture]: /b+/\n%ignore " "')
    assert other.captures("x" + " " * 10 + "b")["a"] == "b"
    with pytest.raises(constrain.LimitError, match="MAX_CAPTURE_WORK"):
        other.captures("x" + " " * 100 + "b")


def test_a_long_list_is_read_again_in_linear_time() -> None:
    constraint = compiled('start: l\nl: l "," a | a\na[capture]: /[a-z]+/')
    assert len(constraint.captures(",".join(["word"] * 3_000))["a"]) == 3_000


def test_captures_are_copied_with_their_spans() -> None:
    found = captures("start: a a\na[capture]: /[xy]/", "xy")
    for twin in (copy.deepcopy(found), copy.copy(found), pickle.loads(pickle.dumps(found))):
        assert (twin, twin.spans) == (found, found.spans)
        assert isinstance(twin, Captures)


def test_captures_as_json() -> None:
    found = captures('start: a b b\na[capture]: "a"\nb[capture]: "b"', "abb")
    spans = {"a": (0, 1), "b": [(1, 2), (2, 3)]}
    assert captures_object(found) == {"captures": {"a": "a", "b": ["b", "b"]}, "capture_spans": spans}
    assert captures_object(Captures()) == captures_object(None) == {}


@pytest.mark.slow
@pytest.mark.parametrize("lazy", [False, True])
def test_captures_of_random_grammars_are_texts_of_their_rules(lazy: bool) -> None:
    """Every rule is captured; each captured text is a text of the grammar that begins with its rule."""
    checked = 0
    for seed in range(150 if LONG else 30):
        case = make_case(seed, lazy=lazy)
        if case.grammar.ignored:  # a captured text is without the ignored text in front of it
            continue
        text = with_captures(case.text)
        try:
            constraint = compiled(text)
        except (constrain.GrammarError, constrain.LimitError):
            continue
        rng = Random(seed)
        for _ in range(10):
            written = random_text(rng, constraint, case.alphabet)
            found = constraint.captures(written)
            start = found["start"]
            assert written in ([start] if isinstance(start, str) else start), (case.text, written)
            checked += check_parts(case.text, found)
    assert checked > 100


def check_parts(grammar: str, found: Captures) -> int:
    for name, texts in found.items():
        if f"{name}[suffix" in grammar:  # captured without its suffix
            continue
        inner = constrain.compile(Lark(grammar, start=name), byte_vocabulary(), cache=False)
        for text in [texts] if isinstance(texts, str) else texts:
            assert inner.accepts(text), f"{name}: {text!r}\n{grammar}"
    return sum(1 if isinstance(texts, str) else len(texts) for texts in found.values())


def with_captures(grammar: str) -> str:
    lines = []
    for line in grammar.split("\n"):
        head, colon, body = line.partition(":")
        name = head.lstrip("?!")
        if colon and name.isidentifier() and name.islower():
            head += "[capture]"
        elif colon and name.endswith("]") and not name.startswith("%"):
            head = head[:-1] + ", capture]"
        lines.append(head + colon + body)
    return "\n".join(lines)


def random_text(rng: Random, constraint: constrain.Constraint, alphabet: bytes) -> str:
    matcher = constraint.matcher()
    text = b""
    for _ in range(rng.randint(0, 12)):
        choices = [byte for byte in alphabet if matcher.fork().accept(byte)]
        if not choices:
            break
        byte = rng.choice(choices)
        assert matcher.accept(byte)
        text += bytes([byte])
    return (text + matcher.shortest_completion()).decode()


END, THINK, DONE, THE, THEN, NAMELESS = range(256, 262)


def vocabulary_with_names() -> constrain.Vocabulary:
    return constrain.Vocabulary.from_tokens(
        [*(bytes([byte]) for byte in range(256)), b"", b"", b"", b"the", b"then", b""],
        eos=[END],
        special={END: "<|end|>", THINK: "<think>", DONE: "</think>"},
    )


def beside_tokens(grammar: str) -> constrain.Constraint:
    return constrain.compile(Lark(grammar), vocabulary_with_names(), cache=False)


@for_each(
    "grammar, tokens, expected, spans",
    [
        ("start: a <[259]>\na[capture]: /[a-d]+/", [*b"abc", THE], {"a": "abc"}, {"a": [(0, 3)]}),
        ("start: a b\na[capture]: <[259]>\nb[capture]: /[a-z]+/", [THE, *b"n"], {"a": "the", "b": "n"}, None),
        ('start: "é" a\na[capture]: <[259,260]>*', [*"é".encode(), THE, THEN], {"a": "thethen"}, {"a": [(1, 8)]}),
        ("start: t*\nt[capture]: <[*]>", [THE, 97, THINK], {"t": ["the", "a", ""]}, {"t": [(0, 3), (3, 4), (4, 4)]}),
        (
            "start: a b\na[capture]: <[^258]>*\nb[capture]: </think> /[a-z]/",
            [THE, DONE, 97],
            {"a": "the", "b": "a"},
            None,
        ),
        ("start: <think> a </think>\na[capture]: <[^258]>*", [THINK, 97, THE, DONE], {"a": "athe"}, {"a": [(0, 4)]}),
        ("start: a b\na[capture]: <[261]>\nb[capture]: /x/", [NAMELESS, *b"x"], {"a": "", "b": "x"}, None),
        ("start: a <|end|>\na[capture]: /[a-z]+/", [*b"abc"], {"a": "abc"}, None),
        (
            'start: a ";" b\na[capture]: <[259]>\nb[capture]: <think> "x"\n%ignore " "',
            [THE, *b" ; ", THINK, *b" x"],
            None,
            None,
        ),
    ],
)
def test_captures_beside_tokens_by_id(
    grammar: str, tokens: list[int], expected: dict[str, Any] | None, spans: dict[str, list[tuple[int, int]]] | None
) -> None:
    constraint = beside_tokens(grammar)
    matcher = constraint.matcher()
    assert matcher.accept_many(tokens) == len(tokens)
    found = constraint._captures_of_tokens(tokens)
    assert found is not None
    if expected is None:  # ignored text in front of a capture is not in it, also in front of a token
        expected, spans = {"a": "the", "b": " x"}, {"a": [(0, 3)], "b": [(6, 8)]}
    assert found == expected
    assert spans is None or found.spans == spans


def test_the_same_text_has_other_captures_with_other_tokens() -> None:
    constraint = beside_tokens("start: a b\na[capture]: <[259]>*\nb[capture]: /[a-z]*/")
    assert constraint._captures_of_tokens([THE, THE]) == {"a": "thethe", "b": ""}
    assert constraint._captures_of_tokens([THE, *b"the"]) == {"a": "the", "b": "the"}
    assert constraint._captures_of_tokens([*b"the", THE]) == {"a": "", "b": "thethe"}
    assert constraint._captures_of_tokens([THINK]) is None


def test_captures_of_a_text_have_the_longest_parts_of_all_ways_to_divide_it_into_tokens() -> None:
    constraint = beside_tokens("start: a b\na[capture]: <[259,260]>*\nb[capture]: /[a-z]*/")
    assert constraint.captures("thethen") == {"a": "thethen", "b": ""}
    assert constraint.captures("thethex") == {"a": "thethe", "b": "x"}
    assert constraint.captures("xthe") == {"a": "", "b": "xthe"}
    with pytest.raises(ValueError, match="it does not match"):
        constraint.captures(b"\xff<think>\xfe")


def test_a_kept_constraint_has_the_captures_beside_tokens(tmp_path: Path) -> None:
    grammar, vocabulary = Lark("start: a b\na[capture]: <[259]>*\nb[capture]: /[a-z]*/"), vocabulary_with_names()
    assert constrain.compile(grammar, vocabulary, cache=tmp_path).precompute().file is not None
    engine.remembered.remembered_constraints.forget(vocabulary)
    kept = constrain.compile(grammar, vocabulary, cache=tmp_path)
    assert kept._captures_of_tokens([THE, *b"the"]) == {"a": "the", "b": "the"}


def test_many_ways_to_divide_a_text_meet_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capturing, "MAX_CAPTURE_WORK", 500)
    constraint = beside_tokens("start: t*\nt[capture]: <[*]>")
    assert len(constraint.captures("the")["t"]) == 3  # a list of single tokens, or one text
    with pytest.raises(constrain.LimitError, match="MAX_CAPTURE_WORK"):
        constraint.captures("the" * 100)
