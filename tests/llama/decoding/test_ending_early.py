"""Answers near a limit on tokens: strings end after a whole word, free text is cut, and nothing is glued together."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.composition.source import Composition
from constrain.language import tree
from constrain.language.grammar import Grammar, GrammarBuilder, Kind
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Chain, Sampling
from constrain.llama.decoding.words import find_word_end
from tests.support import each_row, for_each
from tests.support.llama.alone import Alone

WORDS = b'."|.","| dog| was| hap|py|,|"}|","|":"| very|...| wag|ging|call| <'.split(b"|")
TOKENS = [bytes([byte]) for byte in range(256)] + WORDS + [b"", b""]
CALL, END = len(TOKENS) - 2, len(TOKENS) - 1


def first_token(text: bytes) -> int:
    words = [each for each in WORDS if text.startswith(each)]
    return TOKENS.index(max(words, key=len)) if words else text[0]


def encode(text: bytes) -> list[int]:
    found = []
    while text:
        found.append(first_token(text))
        text = text[len(TOKENS[found[-1]]) :]
    return found


VOCABULARY = constrain.Vocabulary.from_tokens(TOKENS, eos=[END], special={CALL: "<call>"}, encode=encode)


class Author(Alone):
    """A model that writes one text; where the answer has left it, it repeats a word without a space."""

    leaves_a_core = False

    def __init__(self, text: bytes) -> None:
        super().__init__(len(TOKENS))
        self.text = text
        self.last = CALL if text.endswith(b"<call>") else END

    @property
    def written(self) -> bytes:
        return b"".join(TOKENS[token] for token in self.evaluated[1:])

    def next_logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        logits = np.zeros(len(TOKENS), np.float32)
        logits[TOKENS.index(b"ging")] = 1  # what follows if nothing better is allowed
        text = self.text.removesuffix(b"<call>")
        if text.startswith(self.written):
            rest = text[len(self.written) :]
            logits[first_token(rest) if rest else self.last] = 9
        return logits


class PrettyAuthor(Author):
    """An author who goes on behind white space that is left out."""

    def next_logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        written = self.written
        dense = b"".join(written.split())
        n_read = next((n for n in range(len(self.text)) if b"".join(self.text[:n].split()) == dense), 0)
        rest = (self.text[len(written) :] if self.text.startswith(written) else self.text[n_read:]).lstrip()
        logits = super().next_logits()
        logits[first_token(rest) if rest else self.last] += 5
        return logits


def write(
    text: bytes,
    language: Any,
    max_tokens: int,
    *,
    author: type[Author] = Author,
    whitespace: str = "compact",
    **limits: int,
) -> Answer:
    is_schema = not isinstance(language, (Grammar, constrain.Lark, constrain.parts.StructuralTag, Composition))
    policies: Any = {"whitespace": whitespace} if is_schema else {}
    constraint = constrain.compile(language, VOCABULARY, **policies)
    answer = Answer(
        [0],
        Chain(Sampling(temperature=0), len(TOKENS), 400),
        lambda budget: constraint.matcher(budget, **limits),
        eos=VOCABULARY.eos,
        encode=encode,
        token_bytes=VOCABULARY.token_bytes,
        max_tokens=max_tokens,
    )
    assert list(Decoding(author(text), answer).steps()) == answer.tokens
    assert len(answer.tokens) <= max_tokens
    return answer


def text_of(answer: Answer) -> bytes:
    return b"".join(TOKENS[token] for token in answer.tokens)


STORY = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
TWO = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 60}, "b": {"type": "string"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@for_each(
    "schema, text",
    (STORY, "Max was very happy, wagging, his dog... was very big and was happy."),
    (STORY, 'a "quoted" word,\nlines and \\ more \u00e9t\u00e9 words\tand\u2003tabs'),
    (STORY, "犬はとても幸せでした。 and then"),
    (STORY, "disestablishment"),
    (TWO, "Max was very happy, wagging"),
)
def test_a_string_is_closed_behind_a_whole_word(schema: Any, text: str) -> None:
    value = {"a": text} if schema is STORY else {"a": text, "b": text}
    whole = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    n_whole = len(write(whole, schema, 300).tokens)
    seen = set()
    for max_tokens in range(10, n_whole + 3, 1 if n_whole < 40 else 3):
        answer = write(whole, schema, max_tokens)
        found = json.loads(text_of(answer))["a"]
        seen.add(found)
        assert text.startswith(found)
        behind = text[len(found) :]
        assert not behind or not found or behind[0] in ' \n\t\u2003,."。\\' or found[-1] > "\u3000", (found, behind)
        assert found == found.rstrip(" ,.\n。") or found == text
        is_cut = text_of(answer) != whole
        assert (answer.finish_reason == "length") == is_cut
        assert bool(answer.ended_early) == is_cut
        for token, offset in answer.ended_early:
            assert b"".join(TOKENS[each] for each in answer.tokens[token:])[offset:].startswith(b'"')
    assert len(seen) > 1


def test_a_string_at_its_own_limit_finishes_its_word() -> None:
    whole = b'{"a":"Max was very happy, wagging"}'
    ends = {}
    for limit in range(1, 14):
        answer = write(whole, STORY, 200, max_string_tokens=limit)
        ends[limit] = json.loads(text_of(answer))["a"]
        assert answer.finish_reason == "stop", "the limit of a string does not end the answer"
        assert answer.n_shortened == bool(answer.ended_early) == (ends[limit] != "Max was very happy, wagging")
    assert ends[4] == "Max"  # the quote and three letters
    assert ends[6] == "Max was very"
    assert ends[7] == "Max was very happy", "not cut within the word"


def test_a_string_that_must_be_longer_and_one_with_a_pattern_end_as_they_must() -> None:
    for schema, text in (
        ({"type": "string", "minLength": 20}, b'"Max was very happy, wagging, his dog"'),
        ({"type": "string", "pattern": "^[A-Z][a-z ]+[.]$"}, b'"Max was very happy and wagging his dog."'),
        ({"enum": ["New", "New York was very happy"]}, b'"New York was very happy"'),
    ):
        constraint = constrain.compile(schema, VOCABULARY)
        least = constraint.matcher().min_tokens_left
        for max_tokens in range(least, least + 30):
            assert constraint.accepts(text_of(write(text, schema, max_tokens))), max_tokens


def prose(end: bytes = b"", kind: Kind = Kind.PROSE) -> Grammar:
    """Free text without ``<``, and then perhaps a call, or ``end``."""
    builder = GrammarBuilder()
    text = tree.Repetition(tree.ByteClass(((0, 59), (61, 127))), 1, None)
    words = builder.terminal("text", text, kind=kind)
    call = builder.terminal("call", tree.Literal(b"<call was very happy>"))
    start = builder.rule("start")
    builder.define(start, [[words, call], [words, builder.terminal("end", tree.Literal(end))] if end else [words]])
    return builder.build()


TAG = {"begin": "<", "content": {"type": "const_string", "value": "call was very happy"}, "end": ">"}
TRIGGERED = {"type": "triggered_tags", "triggers": ["<"], "tags": [TAG]}
FREE = {
    "a grammar": prose(),
    "triggered": constrain.parts.StructuralTag({"type": "structural_tag", "format": TRIGGERED}),
    "any text": constrain.parts.StructuralTag({"type": "structural_tag", "format": {"type": "any_text"}}),
}


@pytest.mark.parametrize("language", FREE.values(), ids=FREE)
def test_free_text_is_cut_at_the_limit(language: Any) -> None:
    text = b"Max was very happy, wagging, his dog... was very big"
    whole = encode(text)
    for max_tokens in range(1, len(whole) + 2):
        answer = write(text, language, max_tokens)
        assert answer.tokens == whole[:max_tokens]
        assert answer.finish_reason == ("length" if max_tokens <= len(whole) else "stop")
        assert not answer.ended_early


@pytest.mark.parametrize("language", [prose(b"<>"), constrain.parts.sequence(constrain.parts.text(until="<>"), "<>")])
def test_text_with_an_end_of_its_own_is_cut_and_ended(language: Any) -> None:
    text = b"Max was very happy, wagging<>"
    for max_tokens in range(5, 12):
        found = text_of(write(text, language, max_tokens))
        assert found.endswith(b"<>")
        assert text.startswith(found[:-2])


def test_free_text_ends_where_the_model_wants_a_call_that_does_not_fit() -> None:
    text = b"Max was very<call was very happy>"
    whole = encode(text)
    for max_tokens in range(1, len(whole)):
        answer = write(text, prose(), max_tokens)
        assert answer.tokens == whole[: min(max_tokens, 5)]
        assert answer.finish_reason == "length"
    assert write(text, prose(), len(whole)).finish_reason == "stop"


def test_reasoning_that_has_reached_its_limit_is_cut_and_ended() -> None:
    class Leaning(Author):
        def next_logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
            logits = super().next_logits()
            logits[TOKENS.index(b" <")] += 2
            return logits

    text = b"Max was very happy, wagging<>"
    for limit in range(1, 6):
        answer = write(text, prose(b"<>", Kind.REASONING), 100, author=Leaning, max_reasoning_tokens=limit)
        assert answer.tokens == [*encode(text)[:limit], *encode(b"<>")]


def special_call() -> Grammar:
    """Free text, and then perhaps a call that begins with a special token."""
    builder = GrammarBuilder()
    words = builder.terminal("text", tree.Repetition(tree.ByteClass(((0, 127),)), 1, None), kind=Kind.PROSE)
    mark = builder.terminal("mark", tree.Literal(VOCABULARY.marked_bytes(CALL)))
    call = builder.terminal("call", tree.Literal(b"was very happy"))
    start = builder.rule("start")
    builder.define(start, [[words, mark, call], [words]])
    return builder.build()


def test_free_text_ends_where_the_model_wants_a_special_token_that_does_not_fit() -> None:
    for max_tokens in (5, 6, 8):
        answer = write(b"Max was very<call>", special_call(), max_tokens)
        assert text_of(answer) == b"Max was very"
        assert answer.finish_reason == "length"


def test_what_stands_before_the_quote_in_a_refused_token_is_kept() -> None:
    whole = b'{"a":"Max was very.","b":"very"}'
    n_whole = len(write(whole, TWO, 300).tokens)
    for max_tokens in range(10, n_whole + 1):
        answer = write(whole, TWO, max_tokens)
        first = json.loads(text_of(answer))["a"]
        assert first == "Max was very." or answer.finish_reason == "length"
        assert "Max was very.".startswith(first)
    assert json.loads(text_of(write(whole, TWO, n_whole)))["a"] == "Max was very."


def test_the_limit_of_a_string_is_its_own_where_a_pattern_is_read_beside_it() -> None:
    schema = {"anyOf": [{"type": "string", "pattern": "^[A-Za-z ,]*$"}, {"type": "string", "maxLength": 500}]}
    text = b'"Max was very happy, wagging his very very dog"'
    found = json.loads(text_of(write(text, schema, 300, max_string_tokens=12)))
    assert found.startswith("Max was very happy, wagging")


@for_each(
    "schema, text",
    ({"type": "object"}, b'{\n  "a": 12\n}'),
    ({"type": "object"}, b"{\n}"),
    ({"type": "array"}, b"[\n 1,\n [\n 2 ]\n]"),
    ({"type": "array", "items": {"type": "string", "pattern": "^[a-z ]*$"}}, b'[ "max was",\n"very"\n]'),
)
def test_white_space_that_does_not_fit_is_left_out_and_what_stands_behind_it_counts(schema: Any, text: bytes) -> None:
    options: Any = {"author": PrettyAuthor, "whitespace": "flexible"}
    whole = write(text, schema, 300, **options)
    assert text_of(whole) == text
    for max_tokens in range(2, len(whole.tokens) + 1):
        answer = write(text, schema, max_tokens, **options)
        is_same = json.loads(text_of(answer)) == json.loads(text)
        assert (answer.finish_reason == "stop") == is_same, (max_tokens, text_of(answer))


class TerseAuthor(Author):
    """An author whose second choice is a full stop."""

    def next_logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        logits = super().next_logits()
        logits[TOKENS.index(b".")] += 5
        return logits


def test_white_space_inside_a_lexeme_is_not_left_out() -> None:
    text, language = b"the small dog sat.", constrain.Lark('start: /[a-z ]{5,60}/ "."')
    whole = write(text, language, 100, author=TerseAuthor)
    for max_tokens in range(8, len(whole.tokens) + 1):
        answer = write(text, language, max_tokens, author=TerseAuthor)
        assert (answer.finish_reason == "stop") == (text_of(answer) == text), (max_tokens, text_of(answer))


@each_row(
    "style, opening",
    ("qwen_xml", b"<parameter=a>"),
    ("glm_xml", b"<arg_key>a</arg_key><arg_value>"),
    ("kimi_k3_xml", b'<|open|>argument key="a" type="string"<|sep|>'),
)
def test_strings_between_marks_are_closed_by_them(style: str, opening: bytes) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    content = {"type": "json_schema", "json_schema": schema, "style": style}
    tag = constrain.parts.StructuralTag({"type": "structural_tag", "format": content})
    constraint = constrain.compile(tag, VOCABULARY)
    least = constraint.matcher().min_tokens_left
    text = b"Max was very happy, wagging his very very dog and was happy"
    for max_tokens in range(least, least + 24):
        found = text_of(write(opening + text, tag, max_tokens))
        assert constraint.accepts(found)
        value = found.removeprefix(opening).partition(b"<")[0].rstrip(b"\n")
        assert text.startswith(value)
        assert text[len(value) : len(value) + 1] in (b" ", b",") or not value


@for_each(
    "text, is_json, found",
    (b"", True, (0, False)),
    (b"Max", True, (0, False)),
    (b"Max was", True, (3, False)),
    (b"Max, ", True, (3, False)),
    (b"Max was ...", True, (7, False)),
    (b'Max"', True, (3, True)),
    (b'Max\\" a', True, (3, False)),
    (b'Max "', False, (3, False)),
    (b"eared-to-ear, don't 5% C++ ", True, (26, False)),
    (rb"Max\nwas", True, (3, False)),
    (rb"Max\u0020was", True, (3, False)),
    (rb"Max\nwas", False, (0, False)),
    (b"Max\\", True, (0, False)),
    ("犬は".encode(), True, (6, False)),
    ("犬は。".encode(), True, (6, False)),
    ("Max 犬".encode()[:-1], True, (3, False)),
    ("हिन्दी शब्द".encode(), True, (18, False)),
)
def test_words_end_before_white_space_and_at_wide_characters(
    text: bytes, is_json: bool, found: tuple[int, bool]
) -> None:
    assert find_word_end(text, is_json=is_json) == found
