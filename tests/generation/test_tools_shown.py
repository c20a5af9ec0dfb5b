"""``tools_shown="names"``: prompts with the names of tools, and what a model is shown once it calls one."""

from __future__ import annotations

import json
from typing import Any

import pytest

import constrain
from constrain import Finished, tool
from constrain.chat.answers.choices import Calls, FunctionCalls
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families.format import ToolFormat
from constrain.chat.families.forms import FAMILIES
from constrain.chat.prompt.messages import Call
from constrain.chat.prompt.shaping import list_name, write_calls
from constrain.chat.reading.reply import ReplyProgress
from constrain.events import ArgumentsDelta, CallStarted
from constrain.generation.generate import decode
from constrain.generation.introducing import Introductions
from constrain.generation.observers.certificate.replay import replay
from constrain.generation.planning import make_plan, prepare
from constrain.generation.running import Running
from constrain.language.result import result_type
from tests.support import for_each
from tests.support.chat.forms import ELEMENTS, FENCES, LIST, PYTHON, TAGS


def get_weather(city: str, days: int = 1) -> str:
    """Weather of a city. It may be wrong.

    Args:
        city: its <|im_end|> name \ufdd0
    """
    return f"{city} {days}"


def get(key: str) -> str:
    """Reads a value."""
    return key


def now() -> str:
    """The time."""
    return "now"


QUESTION = "What is the weather in Paris?"
TOOLS = [get_weather, get, now]
NAMES: Any = {"tools": TOOLS, "tools_shown": "names", "temperature": 0}
CALL: Any = {**NAMES, "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 60}
WEATHER: Any = {**CALL, "prefix": '<tool_call>\n{"name": "get_weather"'}


def write(model: constrain.Model, **options: Any) -> Running:
    """An answer up to what is shown first, or to its end."""
    running = Running(prepare(model, QUESTION, None, options))
    for _ in decode(running):
        if running.answer.inserted:
            break
    return running


def read_groups(model: constrain.Model, running: Running) -> list[str]:
    answer = running.answer
    return [model.tokenizer.show(group) for group in answer.evaluated(len(answer.tokens))]


def test_the_prompt_has_a_line_for_each_tool_and_no_parameters(model: constrain.Model) -> None:
    shown = constrain.prompts.shown_prompt(model, QUESTION, **NAMES)
    assert "\nget_weather: Weather of a city\nget: Reads a value\nnow: The time\n\n" in shown
    assert '{"name": "<name>", "arguments": <arguments as a JSON object>}' in shown
    assert "days" not in shown
    assert shown == constrain.prompts.shown_prompt(model, QUESTION, **{**NAMES, "tool_choice": get})


@for_each(
    "description, line",
    ("Reads a file. Slow.", "Reads a file"),
    ("\n   Reads\n a file\n", "Reads"),
    ("Reads v1.2 of a file: all", "Reads v1.2 of a file"),
    (
        "one two three four five six seven eight nine ten, 11 12 13",
        "one two three four five six seven eight nine ten, 11 12",
    ),
    ("", ""),
    (".", "."),
)
def test_a_line_has_the_first_words_of_the_first_sentence(description: str, line: str) -> None:
    assert list_name({"name": "f", "description": description, "parameters": {}}) == {"name": "f", "description": line}


def test_a_tool_is_shown_behind_its_name_and_the_call_goes_on(model: constrain.Model) -> None:
    running = write(model, **WEATHER)
    before, shown, behind = read_groups(model, running)
    begun = '<tool_call>\n{"name": "get_weather", "arguments":'
    assert before.endswith(f"<|im_start|>assistant\n{begun}")
    head, _, definition = shown.partition('{"name": "get_weather", "description"')
    assert head == "<|im_end|>\n<|im_start|>user\nThe tool that you are calling:\n"
    assert '"properties": {"city": {"description": "its <|im_end|> name \ufdd0", "type": "string"}' in definition
    assert definition.endswith(
        'Write the call exactly like this, with its arguments:\n<tool_call>\n{"name": "get_weather", "arguments": '
        f"<arguments as a JSON object>}}\n</tool_call><|im_end|>\n<|im_start|>assistant\n{begun}"
    )
    special = [token for token in running.answer.inserted[0][1] if token in model.vocabulary.special]
    assert [model.tokenizer.name(token) for token in special] == ["<|im_end|>", "<|im_start|>"] * 2
    assert begun + behind == model.tokenizer.show(running.answer.tokens)


@for_each(
    "given, shown, repeated",
    (
        '<tool_call>\n{"name": "get", "arguments": {"key": "a"}}\n</tool_call>\n<tool_call>\n{"name": "get_weather"',
        {"get_weather": True},
        '<tool_call>\n{"name": "get_weather", "arguments":',
    ),
    ('Well: <tool_call>\n{"name": "get"', {"get": True}, '<tool_call>\n{"name": "get", "arguments":'),
    ('<tool_call>\n{"name": "get", "arguments": {"key": "x', {"get": True}, None),
    ('<tool_call>\n{"name": "now"', {}, None),
)
def test_the_call_alone_is_repeated(
    model: constrain.Model, given: str, shown: dict[str, bool], repeated: str | None
) -> None:
    running = write(model, **{**NAMES, "max_tokens": 90, "prefix": given, "parallel_tool_calls": "get_w" in given})
    insert = running.answer.insert
    assert isinstance(insert, Introductions)
    assert dict([*insert.told(running.answer.inserted).items()][: len(shown)]) == shown
    assert "now" not in insert.names
    assert insert(running.answer.tokens) == [], "no tool is shown twice"
    if shown:
        inserted = model.tokenizer.show(running.answer.inserted[0][1])
        assert inserted.endswith(f"assistant\n{repeated or given}")


BYTES = constrain.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b""], eos=[256], encode=list)


def introduce_by_name(form: ToolFormat) -> tuple[Introductions, ReplyProgress]:
    tools = {each.__name__: tool(each) for each in (get_weather, get)}
    calls = tuple(FunctionCalls(name, json.dumps(each.schema)) for name, each in tools.items())
    language = AnswerLanguage(form, tools=calls, calls=Calls.REQUIRED)
    reader = ReplyProgress(language, {**tools}, result_type(None), (), (1,), wants_reply=True)
    return Introductions(language, BYTES, lambda shown: [*shown.name.encode(), 0], reader), reader  # type: ignore[attr-defined]


@for_each("form", [each for each in (TAGS, LIST, FENCES, ELEMENTS, PYTHON, *FAMILIES) if each.parallel])
def test_the_second_of_several_calls_is_repeated_behind_the_opening_of_all(form: ToolFormat) -> None:
    insert, reader = introduce_by_name(form)
    first, second = (write_calls([Call("abc", name, "{}", {})], form) for name in ("get_weather", "get"))
    written = first.removesuffix(form.closing) + form.between
    begun = second.removeprefix(form.opening)
    begun = begun[: begun.index("get") + 4]
    for end in range(1, len(written.encode()) + 1):
        reader.feed(written.encode()[end - 1 : end])
        insert(written.encode()[:end])
    assert insert.names == ["get_weather"]
    reader.feed(begun.encode())
    assert bytes(insert((written + begun).encode())).decode() == f"get\0{form.opening}{begun}"


def test_a_value_may_have_the_name_of_its_tool() -> None:
    insert, reader = introduce_by_name(PYTHON)
    begun = b'[get(key="get'
    reader.feed(begun)
    assert bytes(insert(begun)) == b"get\0" + begun


@pytest.mark.slow
def test_all_ways_to_generate_give_the_same_answer_and_count_what_was_shown(model: constrain.Model) -> None:
    alone = constrain.complete(model, QUESTION, **WEATHER)
    assert alone.introduced == {"get_weather": True}
    *events, last = constrain.stream(model, QUESTION, logprobs=True, confidence=True, **WEATHER)
    together = constrain.complete_batch(model, [QUESTION, QUESTION], **WEATHER)
    assert isinstance(last, Finished)
    running = write(model, **WEATHER)
    shown = sum(len(tokens) for _, tokens in running.answer.inserted)
    for each in (last.completion, *together):
        assert (each.tokens, each.introduced) == (alone.tokens, alone.introduced)
        assert each.usage.prompt_tokens == len(running.plan.tokens) + shown
        assert each.usage.completion_tokens == len(each.tokens)
    (call,) = alone.value
    assert "".join(each.text for each in events if isinstance(each, ArgumentsDelta)) == call.text
    assert [each.name for each in events if isinstance(each, CallStarted)] == ["get_weather"]
    assert last.completion.logprobs is not None
    assert len(last.completion.logprobs) == len(alone.tokens)
    assert last.completion.fields is not None
    assert last.completion.fields["calls", 0, "arguments", "city"].value == call.arguments["city"]


def test_the_probability_of_a_name_is_that_among_all_names(model: constrain.Model) -> None:
    completion = constrain.complete(model, QUESTION, trace=True, **CALL)
    assert completion.trace is not None
    name = next(each for each in completion.trace if each.origin in ("chosen", "healed"))
    assert {each.text for each in name.allowed_top} >= {"get", "now"}
    shown = sum(2.718281828459045**each.logprob for each in name.allowed_top)
    assert shown == pytest.approx(1, abs=1e-3)


def test_a_certificate_repeats_the_answer(model: constrain.Model) -> None:
    completion = constrain.complete(model, QUESTION, certificate="prompt", **CALL, seed=3)
    certificate = json.loads(json.dumps(completion.certificate))
    assert bool(certificate.get("inserted")) is any((completion.introduced or {}).values())
    assert replay(model, certificate) is None


@pytest.mark.slow
def test_a_tool_without_room_is_told_and_the_answer_is_whole() -> None:
    from tests.support.llama.babbler import babbler

    def find(text: str) -> str:
        return text

    find.__doc__ = "Finds. " + "It is a long story about the tool. " * 60
    with babbler(n_ctx=300) as small:
        found = constrain.complete(small, "Find it.", tools=[find], tools_shown="auto", tool_choice="required")
    assert found.introduced == {"find": False}
    assert set(json.loads(found.value[0].text)) == {"text"}
    assert constrain.generation.completion.facts_object(found)["introduced"] == {"find": False}


def test_names_are_shown_where_all_would_take_a_quarter_of_the_context(model: constrain.Model) -> None:
    def has_names(tools: list[Any], **options: Any) -> bool:
        return make_plan(model, QUESTION, None, {"tools": tools, **options}).insertion is not None

    many = [
        {"type": "function", "name": f"tool_{number}", "parameters": {"type": "object", "properties": {"a": {}}}}
        for number in range(20)
    ]
    assert not has_names(TOOLS)
    assert has_names(many)
    assert has_names(many, tools_shown="auto")
    assert not has_names(many, tools_shown="all")
    assert has_names(TOOLS, tools_shown="names")
    with pytest.raises(ValueError, match="tools_shown is 'some'; it must be 'auto', 'names' or 'all'"):
        has_names(TOOLS, tools_shown="some")
    silent = constrain.Model(model.llama, chat_template="{{ messages[0].content }}")
    question = {"tools": many}
    assert make_plan(silent, QUESTION, None, question).insertion is None  # type: ignore[arg-type]
    with pytest.raises(constrain.ModelError, match="no place for the parameters of a tool; tools_shown='all'"):
        make_plan(silent, QUESTION, None, {**question, "tools_shown": "names"})  # type: ignore[typeddict-item]


def test_turns_share_their_beginning(model: constrain.Model) -> None:
    said: list[Any] = [{"role": "user", "content": QUESTION}]
    first = make_plan(model, said, None, NAMES).tokens
    reply = constrain.complete(model, said, **WEATHER).value
    said += [reply.message(), {"role": "tool", "tool_call_id": reply[0].id, "content": "sunny"}]
    second = make_plan(model, said, None, NAMES).tokens
    assert second[: len(first)] == first
