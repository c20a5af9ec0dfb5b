"""The structure of answers: templates of calls, what may stand next, and special tokens in it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import constrain
from constrain.chat.answers.choices import Calls, CustomCalls, Reasoning
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.answers.structure import END, SpecialName, Variable, path_of, structure_parts, template_parts, tree
from constrain.chat.answers.trees import answer_trees
from constrain.chat.families.format import ToolFormat
from constrain.chat.reading.reader import Reader
from tests.support import allowed, for_each, small_vocabulary
from tests.support.chat.forms import CHANNELS, FENCES, LIST, TAGS
from tests.support.chat.parsed import gathered, read_answer
from tests.support.chat.walks import TOOLS


@for_each(
    "text, names, parts",
    ("", {"<a>"}, []),
    ("x<a>y", set(), ["x<a>y"]),
    ("x<a>y", {"<a>"}, ["x", SpecialName("<a>"), "y"]),
    ("<a><a>", {"<a>"}, [SpecialName("<a>"), SpecialName("<a>")]),
    ("<a>>b", {"<a>", "<a>>"}, [SpecialName("<a>>"), "b"]),
    ("abc", {"bc", "ab"}, [SpecialName("ab"), "c"]),
    ("a.b|", {".", "|"}, ["a", SpecialName("."), "b", SpecialName("|")]),
    ("abc", {""}, ["abc"]),
)
def test_the_leftmost_and_longest_name_is_a_token(text: str, names: set[str], parts: list[object]) -> None:
    assert structure_parts(text, frozenset(names)) == parts


def test_templates_are_split_at_their_variables() -> None:
    parts = template_parts("<$name>$arguments$id$names$")
    assert parts == ["<", Variable.NAME, ">", Variable.ARGUMENTS, Variable.ID, "$names$"]


def test_names_of_tools_hold_no_special_tokens() -> None:
    path = path_of(["<", Variable.NAME, "ab"], "ab", frozenset({"ab"}))
    assert path == (*b"<ab", SpecialName("ab"))


def test_a_tree_says_what_may_stand_next() -> None:
    names = frozenset({"|"})
    paths = [(path_of([text], "", names), index) for index, text in enumerate(["get(", "get_it(", "get|", "x"])]
    node = tree([*paths, ((), END)])
    assert node.reached == END
    assert [step for step, _ in node.onward] == [b"get", b"x"]
    (_, inner), _ = node.onward
    assert [(step, each.reached) for step, each in inner.onward] == [(b"(", 0), (b"_it(", 1), (SpecialName("|"), 2)]


def test_two_calls_that_are_written_alike_are_refused() -> None:
    with pytest.raises(ValueError, match="same spelling"):
        tree([((1, 2), 0), ((1, 2), 1)])


@for_each(
    "change, message",
    ({"call": "<$name>"}, "must have .arguments once"),
    ({"call": "$arguments$name"}, "in front of the value"),
    ({"custom_call": "<$name>$arguments"}, "custom_call of the form tags"),
    ({"call": "<$name $id>$arguments"}, "without id_pattern"),
    ({"call": "<$name>$arguments$id", "id_pattern": "a"}, "directly behind the value"),
    ({"call": "x<b>$name $arguments", "custom_call": "<b>$name $input "}, "contains the beginning of another"),
)
def test_forms_that_cannot_be_read_are_refused(change: dict[str, str], message: str) -> None:
    from constrain.chat.answers.choices import FunctionCalls

    with pytest.raises(ValueError, match=message):
        answer_trees(AnswerLanguage(replace(TAGS, **change), tools=(FunctionCalls("f", "{}"), CustomCalls("g"))))


def test_ids_must_end_where_what_follows_begins() -> None:
    answer = AnswerLanguage(replace(FENCES, id_pattern="[a-z:]+"), tools=(CustomCalls("g"),))
    with pytest.raises(ValueError, match="may contain the text that follows"):
        answer.grammar()


SPECIAL = ("<tool_call>", "</tool_call>", "<think>", "</think>")


def test_special_tokens_are_told_from_the_text_of_their_names() -> None:
    answer = AnswerLanguage(TAGS, special=SPECIAL, tools=(CustomCalls("note"),), reasoning=Reasoning.OPTIONAL)
    reader = Reader(answer)
    written = (
        b"\xff<think>\xfe\nno </think> yet\xff</think>\xfe\n\nsee <tool_call>\n"
        b'\xff<tool_call>\xfe\n{"name": "note", "input": "\\"</tool_call>"}\n\xff</tool_call>\xfe'
    )
    parsed = gathered([*(event for byte in written for event in reader.feed(bytes([byte]))), *reader.finish()], answer)
    assert parsed.reasoning == "no </think> yet"
    assert parsed.content == "see <tool_call>\n"
    assert [(call.name, call.input) for call in parsed.calls] == [("note", '"</tool_call>')]


def test_grammars_name_the_special_tokens_that_structure_holds() -> None:
    answer = AnswerLanguage(
        replace(CHANNELS, thinking=None), special=("<|channel|>", "<|message|>"), tools=(CustomCalls("note"),)
    )
    texts = {getattr(terminal.expression, "text", b"") for terminal in answer.grammar().terminals}
    assert {b"\xff<|channel|>\xfe", b"\xff<|message|>\xfe", b"final", b"commentary"} <= texts


def test_ids_behind_values_come_with_the_end_of_a_call() -> None:
    answer = AnswerLanguage(LIST, tools=(CustomCalls("note"),), calls=Calls.REQUIRED)
    text = b'[TOOL_CALLS][{"name": "note", "input": "a", "id": "x7y"}, {"name": "note", "input": "", "id": "abc"}]'
    reader = Reader(answer)
    events = [*reader.feed(text), *reader.finish()]
    assert [(call.id, call.input) for call in gathered(events, answer).calls] == [("x7y", "a"), ("abc", "")]


NAMES = ("<tool_call>", "</tool_call>", "<think>", "</think>", "[TOOL_CALLS]", "<|channel|>", "<|message|>", "<|end|>")
TEXTS = list(map(small_vocabulary(2).token_bytes, range(256 + 400)))
FIRST = len(TEXTS)
VOCABULARY = constrain.Vocabulary.from_tokens(
    [*TEXTS, *(b"" for _ in NAMES), b""],
    eos=[FIRST + len(NAMES)],
    special={FIRST + index: name for index, name in enumerate(NAMES)},
)
NO_MORE = VOCABULARY.eos[0]


def tokens(structure: str) -> list[int]:
    """The tokens of a structure text."""
    found: list[int] = []
    for part in structure_parts(structure, frozenset(NAMES)):
        found += part.encode() if isinstance(part, str) else [FIRST + NAMES.index(part.name)]
    return found


def written(token: int) -> bytes:
    """A token as readers have it."""
    return TEXTS[token] if token < FIRST else b"\xff%b\xfe" % NAMES[token - FIRST].encode()


def test_only_the_token_is_a_mark() -> None:
    constraint = constrain.compile(AnswerLanguage(TAGS, special=NAMES, tools=TOOLS), VOCABULARY)
    matcher = constraint.matcher()
    assert matcher.accept_many(list(b"<tool_call>\n{}")) == len(b"<tool_call>\n{}")
    assert matcher.is_accepting
    assert matcher.accept_many(tokens("<tool_call>\n{")) == 3
    assert not matcher.accept(ord("}"))
    none = constrain.compile(AnswerLanguage(TAGS, special=NAMES, tools=TOOLS, calls=Calls.NONE), VOCABULARY).matcher()
    assert not none.accept(FIRST)


@pytest.mark.slow(
    but=("Reasoning.OPENED-tokens-channels", "Reasoning.OPTIONAL-tokens-channels", "Reasoning.OPENED-texts-channels")
)
@pytest.mark.parametrize("form", [TAGS, CHANNELS], ids=lambda form: form.name)
@pytest.mark.parametrize("special", [NAMES, ()], ids=["tokens", "texts"])
@pytest.mark.parametrize("reasoning", [Reasoning.OPENED, Reasoning.OPTIONAL])
def test_reasoning_has_a_limit_of_its_own(form: ToolFormat, special: tuple[str, ...], reasoning: Reasoning) -> None:
    answer = AnswerLanguage(form, special=special, tools=TOOLS, calls=Calls.REQUIRED, reasoning=reasoning)
    constraint = constrain.compile(answer, VOCABULARY, cache=False)
    assert form.thinking is not None
    begin = "" if reasoning is Reasoning.OPENED else form.thinking.begin
    lead = tokens(begin) if special else list(begin.encode())
    for seed in range(5):
        rng = Random(seed)
        matcher, row = constraint.matcher(max_reasoning_tokens=10), constraint.allocate_bitmask()[0]
        assert matcher.accept_many(lead) == len(lead)
        text = b"".join(map(written, lead))
        while len(text) < 4000:
            token = int(rng.choice(allowed(matcher, row)))
            assert matcher.accept(token)
            if token == NO_MORE:
                break
            text += written(token)
            if read_answer(answer, text).calls:
                break
        thought = read_answer(answer, text)
        assert thought.calls, text
        assert len(thought.reasoning) < 200
