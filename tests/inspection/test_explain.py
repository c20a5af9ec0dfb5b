"""Where texts stop matching, and what is said of that place."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import constrain
from constrain.inspection.characters import CharacterRange, in_words
from constrain.language.tree import Literal
from tests.support import (
    LONG,
    Tokens,
    Walker,
    allowed,
    byte_vocabulary,
    demo_model,
    for_each,
    maskbench_that_compiles,
    small_vocabulary,
)

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
    "required": ["name"],
    "additionalProperties": False,
}
LIST = constrain.Lark('start: "a" NAME ("," NAME)* ";"?\nNAME: /[b-c]+/\n%ignore " "')
PLATE = constrain.Regex("[A-Z]{2}-[0-9]+")

PLACES: dict[str, tuple[Any, str, int, int, int, bool, int]] = {
    # language, text, byte offset, line, column, whether what stands before is whole, bytes of a shortest completion
    "the first character": (PLATE, "x", 0, 1, 1, False, 4),
    "the middle of a lexeme": (PLATE, "ABC", 2, 1, 3, False, 2),
    "after a whole text": (PLATE, "AB-1x", 4, 1, 5, True, 0),
    "the end": (PLATE, "AB-", 3, 1, 4, False, 1),
    "an empty text": (PLATE, "", 0, 1, 1, False, 4),
    "nothing is wrong": (PLATE, "AB-1", 4, 1, 5, True, 0),
    "a line end too many": (PLATE, "AB-1\n", 4, 1, 5, True, 0),
    "a value": (PERSON, '{"name": "A", "age": x', 21, 1, 22, False, 2),
    "a number that is too great": (PERSON, '{"name": "A", "age": 121', 23, 1, 24, False, 1),
    "a later line": (PERSON, '{\n  "name": "é",\n  "age": -1\n}', 27, 3, 10, False, 2),
    "a key that is not declared": (PERSON, '{"nam": 1}', 5, 1, 6, False, 6),
    "a terminal": (LIST, "a b d", 4, 1, 5, False, 1),
    "inside a character, of two bytes": (constrain.Regex("[éö]+"), "éè", 2, 1, 2, True, 0),
    "inside a character, of four bytes": (constrain.Regex("x😀"), "x😁", 1, 1, 2, False, 4),
    "columns are characters": (constrain.Regex("(?s).*!"), "é\n😀ö", 9, 2, 3, False, 1),
}


@for_each("case", PLACES)
def test_the_place_where_a_text_stops_is_named(case: str) -> None:
    language, text, offset, line, column, whole, missing = PLACES[case]
    found = constrain.explain(language, text)
    assert (found.offset, found.line, found.column) == (offset, line, column)
    assert (found.is_complete, len(found.completion)) == (whole, missing)
    assert constrain.explain(language, found.accepted + found.completion).matches
    assert found.accepted == text.encode()[:offset]
    assert found.matches == (whole and offset == len(text.encode()))


def test_a_text_stops_at_a_lone_surrogate() -> None:
    found = constrain.explain({"type": "string"}, '"a\ud800"')
    assert (found.matches, found.accepted, found.line, found.column) == (False, b'"a', 1, 3)
    assert found.completion == b'"'


@pytest.mark.parametrize("schema", [{"type": "string"}, constrain.Regex("a")])
def test_an_unknown_policy_is_named(schema: Any) -> None:
    with pytest.raises(TypeError, match=r"unknown options: numbrs \(did you mean numbers\?\)$"):
        constrain.explain(schema, "a", numbrs="any")


EXPECTED: dict[str, tuple[Any, str, list[tuple[str, str]]]] = {
    "a JSON Pointer": (PERSON, '{"name": "A", "age": ', [("integer", "/properties/age")]),
    "what goes on, and what may follow it": (
        PERSON,
        '{"name": "A", "age": 1',
        [("}", ""), ("integer", "/properties/age")],
    ),
    "not the string that has ended": (PERSON, '{"name": "A"', [(",", ""), ("}", "")]),
    "a key": (PERSON, '{"na', [("key name", "")]),
    "lines and columns": (
        LIST,
        "a b",
        [("NAME (line 2, column 1)", ""), ('"," (line 1, column 18)', ""), ('";" (line 1, column 29)', "")],
    ),
    "nothing but the end": (PERSON, '{"name": "A"}x', []),
}


@for_each("case", EXPECTED)
def test_the_expected_terminals_are_named_with_their_places(case: str) -> None:
    language, text, terminals = EXPECTED[case]
    assert list(constrain.explain(language, text).expected) == terminals


NEXT = {
    "a class": ("[0-9a]x", "", [("0", "9"), ("a", "a")]),
    "characters of two bytes": ("[é-öx]", "", [("x", "x"), ("é", "ö")]),
    "neighbours of unlike length": ("[\\x{7f}-\\x{800}]", "", [("\x7f", "\u0800")]),
    "everything": ("(?s).", "", [("\0", "\ud7ff"), ("\ue000", "\U0010ffff")]),
    "beside the surrogates": ("[\\x{d7ff}\\x{e000}]", "", [("\ud7ff", "\ud7ff"), ("\ue000", "\ue000")]),
    "the greatest": ("[^\\x{0}-\\x{10fffe}]", "", [("\U0010ffff", "\U0010ffff")]),
    "after a text": ("ab|ac", "a", [("b", "c")]),
    "none": ("ab", "ab", []),
}


@for_each("case", NEXT)
def test_the_next_characters_are_given_as_ranges(case: str) -> None:
    pattern, text, ranges = NEXT[case]
    assert list(constrain.explain(constrain.Regex(pattern), text).next_characters) == ranges


WORDS = {
    "'a'": ["aa"],
    "'a', 'b'": ["ab"],
    "'a' to 'c', 'x'": ["ac", "xx"],
    "any character": ["\0\ud7ff", "\ue000\U0010ffff"],
    "any character but '\\n'": ["\0\t", "\x0b\ud7ff", "\ue000\U0010ffff"],
    "any character but '\\x00' to '\\x1f', '\"'": [" !", "#\ud7ff", "\ue000\U0010ffff"],
    "'!', '#', '%', \"'\", ')', '+', '-', '/', '1', '3', '5', '7', and 4 more": [
        *(chr(code) * 2 for code in range(0x21, 0x39, 2)),
        "AD",
    ],
}


@for_each("words", WORDS)
def test_characters_are_put_into_words(words: str) -> None:
    assert in_words([CharacterRange(*pair) for pair in WORDS[words]]) == words


def test_bytes_that_are_no_characters_are_named_as_bytes() -> None:
    builder = constrain.grammars.GrammarBuilder()
    start = builder.rule("start")
    builder.define(start, [[builder.terminal("BYTES", Literal(b"\xc0\x80"))]])
    found = constrain.explain(builder.build(), b"\xc0\x81")
    assert (found.offset, found.next_bytes, found.next_characters) == (1, b"\x80", ())
    assert "byte 0x80" in str(found)
    assert constrain.explain(builder.build(), b"\xc0\x80").matches


@for_each("text", [b"\xc3", b"\xc3\xc3", b"\xff", b"\x80"])
def test_text_that_is_no_utf8_stops_at_its_beginning(text: bytes) -> None:
    found = constrain.explain(constrain.Regex("aé"), b"a" + text)
    assert (found.offset, found.column, found.completion) == (1, 2, "é".encode())
    assert not found.matches


def test_a_text_that_stops_is_explained_in_words() -> None:
    assert str(constrain.explain(PERSON, '{\n"name": "A", "age": 121}')).splitlines() == [
        *("the text stops matching at line 2, column 23 (byte 24)", '    "name": "A", "age": 121}'),
        *("                          ^", "expected one of:", "    }", "    integer (from /properties/age)"),
        *("next may come: '\\n', ' ', '0', '}'", "a shortest way to finish from here: '}'"),
    ]


def test_a_text_that_ends_too_early_is_explained_in_words() -> None:
    assert str(constrain.explain(constrain.Regex("[A-Z]{2}-[0-9]*!"), "AB-")).splitlines() == [
        *("the text is incomplete: it ends at line 1, column 4 (byte 3)", "    AB-", "       ^", "expected: pattern"),
        *("next may come: '!', '0' to '9'", "a shortest way to finish from here: '!'"),
    ]


def test_texts_that_match_or_go_too_far_are_explained_in_words() -> None:
    assert str(constrain.explain(constrain.Regex("ab?"), "a")) == "the text matches\nit may go on with: 'b'"
    assert str(constrain.explain(constrain.Regex("ab?"), "ab")) == "the text matches"
    assert str(constrain.explain(constrain.Regex("ab?"), "abb")).splitlines()[3:] == [
        "expected: the end of the text",
        "the text before this place is complete",
    ]


def test_long_lists_are_cut_in_words_only() -> None:
    words = [f"{chr(0x61 + i // 26)}{chr(0x61 + i % 26)}" for i in range(60)]
    grammar = constrain.Lark("start: " + "|".join(f'"{word}"' for word in words) + "| " + '"!' + "x" * 300 + '"')
    found = constrain.explain(grammar, "?")
    assert len(found.expected) == 61
    assert "    41 more" in str(found)
    assert f"{'x' * 200}' and 100 characters more" in str(constrain.explain(grammar, "!?"))


def test_policies_and_closing_are_those_of_compile() -> None:
    spaced = '{"name" :  "A"}'
    assert not constrain.explain(PERSON, spaced).matches
    assert constrain.explain(PERSON, spaced, whitespace="any").matches
    opened = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert constrain.explain(opened, '{"b": 1}').matches
    assert constrain.explain(opened, '{"b": 1}', closed=True).offset == 2
    reference = {"$ref": "urn:colour"}
    assert constrain.explain(reference, '"red"', registry={"urn:colour": {"const": "red"}}).matches


def test_options_about_schemas_are_refused_for_other_languages() -> None:
    with pytest.raises(ValueError, match="whitespace applies to JSON Schemas only"):
        constrain.explain(PLATE, "", whitespace="any")
    with pytest.raises(ValueError, match="closed applies to JSON Schemas only, but this is a Regex"):
        constrain.explain(PLATE, "", closed=True)


def longest_first(seed: int = 0) -> constrain.Vocabulary:
    """A vocabulary whose tokenizer takes the longest token that fits."""
    vocabulary = small_vocabulary(seed)
    tokens = Tokens(vocabulary)
    vocabulary.encode = lambda text: list(tokens.split(text))
    return vocabulary


def test_steps_count_what_was_allowed() -> None:
    vocabulary = longest_first()
    constraint = constrain.compile(PERSON, vocabulary)
    row, matcher = constraint.allocate_bitmask()[0], constraint.matcher()
    found = constrain.explain(PERSON, '{"name": "A", "age": 12x}', vocabulary)
    *before, last = found.steps
    for step in found.steps:
        assert step.n_allowed == len(allowed(matcher, row))
        assert step.min_tokens_left == matcher.min_tokens_left
        assert step.text == vocabulary.token_bytes(step.token)
        assert found.text[step.offset :].startswith(step.text)
        assert matcher.accept(step.token) == step.is_allowed
    assert all(step.is_allowed for step in before)
    assert not last.is_allowed
    assert last.offset <= found.offset < last.offset + len(last.text)


def test_the_last_step_is_the_end_of_generation() -> None:
    vocabulary = longest_first()
    for text, whole in (("12", True), ("-", False)):
        last = constrain.explain({"type": "integer"}, text, vocabulary).steps[-1]
        assert (last.token, last.text, last.offset, last.is_allowed) == (vocabulary.eos[0], b"", len(text), whole)


@pytest.mark.slow
def test_steps_are_the_tokens_of_the_model() -> None:
    from constrain.llama.loading import load_vocabulary

    vocabulary = load_vocabulary(demo_model())
    text = '{"name": "Zoë", "age": 36}'
    found = constrain.explain(PERSON, text, vocabulary)
    assert found.matches
    assert vocabulary.encode is not None
    assert [step.token for step in found.steps] == [*vocabulary.encode(text.encode()), vocabulary.eos[0]]


def test_steps_need_a_tokenizer() -> None:
    with pytest.raises(ValueError, match="no encode"):
        constrain.explain(PLATE, "AB-1", byte_vocabulary())


@pytest.mark.slow
def test_changed_texts_are_explained_as_the_constraint_has_it() -> None:
    vocabulary, rng = byte_vocabulary(), Random(5)
    tokens = Tokens(vocabulary)
    for entry, constraint in maskbench_that_compiles(vocabulary, seed=3, count=60 if LONG else 6):
        text = Walker(constraint, vocabulary).text(rng, tokens, 60)
        for _ in range(6):
            at = rng.randrange(len(text) + 1)
            changed = text[:at] + rng.choice([b"", b"x", b"1", b"}", '"é'.encode()]) + text[at + rng.randrange(3) :]
            found = constrain.explain(entry["schema"], changed)
            assert found.matches == constraint.accepts(changed)
            assert constraint.accepts(found.accepted) == found.is_complete
            assert constraint.accepts(found.accepted + found.completion), (found.accepted, found.completion)
            matcher = constraint.matcher()
            assert matcher.accept_many(list(found.accepted)) == found.offset
            nexts = bytes(byte for byte in range(256) if matcher.fork().accept(byte))
            assert found.next_bytes == nexts
            if found.offset < len(changed) and changed[found.offset] < 0x80:
                assert changed[found.offset] not in nexts
            assert bool(found.expected) == bool(nexts)


@pytest.mark.slow
@pytest.mark.parametrize("name", constrain.grammars.names() if LONG else ["dot", "semver", "sql_select", "toml"])
def test_beginnings_of_examples_are_completed(name: str) -> None:
    grammar, text = constrain.grammars.load(name), constrain.grammars.describe(name).example
    assert constrain.explain(grammar, text).matches
    for at in range(0, len(text), max(1, len(text) // 5)):
        found = constrain.explain(grammar, text[:at])
        assert found.accepted.decode() == text[:at]
        assert any(first <= text[at] <= last for first, last in found.next_characters)
        assert constrain.explain(grammar, found.accepted + found.completion).matches
