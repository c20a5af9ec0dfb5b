"""Rendering: a conversation with two calls and their results looks as each family documents it."""

from __future__ import annotations

from typing import Any

import pytest

from constrain import Regex
from constrain.chat.families.forms import detect_format, tool_format
from constrain.chat.prompt.abilities import Abilities
from constrain.chat.prompt.conversation import function_of, write_prompt
from constrain.chat.prompt.messages import check_messages
from constrain.chat.prompt.shaping import write_calls
from constrain.tools import CustomTool, tool_from_json
from tests.support import for_each
from tests.support.chat.conversations import TOOLS, TWO_CALLS
from tests.support.chat.rendering import NAMES, abilities_of, prompt
from tests.support.chat.templates import FAMILIES, rendered, template


@for_each("name", FAMILIES)
def test_two_calls_and_their_results(name: str) -> None:
    assert prompt(name, TWO_CALLS, TOOLS) == rendered(name)


def test_templates_without_any_are_the_texts() -> None:
    text = write_prompt("", check_messages(TWO_CALLS[:2]), [], tool_format("generic"), Abilities(), {})
    assert text == "Be brief.\n\nParis and Rome?"


CALLS = check_messages(TWO_CALLS)[2].calls


@for_each("name", [name for name in FAMILIES if "otherwise" not in FAMILIES[name]])
def test_a_prompt_begins_with_the_prompt_of_the_turn_before_and_its_answer(name: str) -> None:
    form = detect_format(template(name))
    able = abilities_of(name)
    alone = not (able.several_calls if able.calls else form.parallel)
    calls = write_calls(CALLS[:1] if alone else CALLS, form)
    whole = prompt(name, TWO_CALLS, TOOLS)
    assert whole.startswith(prompt(name, TWO_CALLS[:2], TOOLS) + calls)
    content = form.content.begin if form.content else ""
    assert whole.startswith(prompt(name, TWO_CALLS[:5], TOOLS) + content + "18 C and 25 C.")


def test_arguments_are_passed_on_as_the_model_wrote_them() -> None:
    spelled = '{"city":"Paris",\n "days": 2.50}'
    said = [*TWO_CALLS[:2], calling(arguments=spelled), result()]
    for name in ("qwen3", "mistral-v13", "deepseek-v3", "chatml"):
        assert spelled in prompt(name, said, TOOLS)


def test_arguments_may_be_given_as_a_value() -> None:
    said = [*TWO_CALLS[:2], calling(arguments={"city": "Paris"}), result()]
    assert '"arguments": {"city": "Paris"}}' in prompt("qwen3", said, TOOLS)


def calling(content: str | None = None, **called: Any) -> dict[str, Any]:
    """A message with one call."""
    function = {"name": "weather", "arguments": '{"city": "Paris"}', **called}
    calls = [{"id": "callparis", "type": "function", "function": function}]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(content: str = "18 C") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "callparis", "content": content}


@pytest.mark.slow(but=("qwen3",))
@pytest.mark.parametrize("name", FAMILIES)
def test_text_beside_a_call_stands_in_front_of_it(name: str) -> None:
    text = prompt(name, [*TWO_CALLS[:2], calling("Let me look."), result()], TOOLS)
    answer = text[text.index("Paris and Rome?") :]
    assert answer.index("Let me look.") < answer.index("weather")


@pytest.mark.slow
def test_no_content_is_shown_as_nothing() -> None:
    for name in FAMILIES:
        text = prompt(name, [*TWO_CALLS[:2], calling(), result()], TOOLS)
        assert "None" not in text, name


def test_custom_tools_are_shown_and_called_as_functions_with_one_argument() -> None:
    custom = {"id": "callparis", "type": "custom", "custom": {"name": "weather", "input": 'say "hi"'}}
    said = [*TWO_CALLS[:2], {"role": "assistant", "content": None, "tool_calls": [custom]}, result()]
    assert '{"name": "weather", "arguments": {"input": "say \\"hi\\""}}' in prompt("qwen3", said)
    assert '<parameter=input>\nsay "hi"\n</parameter>' in prompt("qwen3-coder", said)
    assert 'weather(input="say \\"hi\\"")' in prompt("llama-pythonic", said)


@pytest.mark.slow
def test_a_template_gets_no_tools_where_there_are_none() -> None:
    for name in FAMILIES:
        assert "weather" not in prompt(name, TWO_CALLS[:2])


def test_tools_are_objects_or_in_openais_shape() -> None:
    assert function_of(tool_from_json(TOOLS[0])) == TOOLS[0]["function"] == function_of(TOOLS[0])
    empty = {"type": "object", "properties": {}}
    assert function_of({"type": "function", "function": {"name": "f"}}) == {
        "name": "f",
        "description": "",
        "parameters": empty,
    }


def test_custom_tools_tell_what_their_input_is() -> None:
    letters = Regex("[A-Z]+")
    properties = {"input": {"type": "string", "description": letters.describe()}}
    assert function_of(CustomTool("shout", "Says it loudly.", letters)) == {
        "name": "shout",
        "description": "Says it loudly.",
        "parameters": {"type": "object", "properties": properties, "required": ["input"]},
    }
    assert function_of(CustomTool("note"))["parameters"]["properties"] == {"input": {"type": "string"}}


@pytest.mark.slow
def test_what_the_developer_says_is_shown_as_the_systems() -> None:
    said = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    for name in FAMILIES:
        assert prompt(name, said) == prompt(name, [{**said[0], "role": "system"}, said[1]])


def test_instructions_are_joined_where_a_template_shows_them_only_at_the_start() -> None:
    said = [*TWO_CALLS[:2], {"role": "assistant", "content": "Yes."}, {"role": "system", "content": "Be kind."}]
    assert "Be brief.\n\nBe kind." in prompt("mistral-v13", said)
    assert "Be brief.<|im_end|>" in prompt("chatml", said)


def test_instructions_stand_with_the_user_where_a_template_shows_none() -> None:
    template = "{% for message in messages if message.role != 'system' %}[{{ message.content }}]{% endfor %}"
    from constrain.chat.prompt.conversation import template_abilities

    form = tool_format("generic")
    able = template_abilities(template, form, NAMES)
    assert not able.system
    assert write_prompt(template, check_messages(TWO_CALLS[:2]), [], form, able, {}) == "[Be brief.\n\nParis and Rome?]"


@pytest.mark.slow
def test_results_come_in_the_order_of_the_calls() -> None:
    for name in FAMILIES:
        text = prompt(name, TWO_CALLS, TOOLS)
        assert text.index("18 C") < text.index("25 C"), name


def test_what_the_user_says_behind_a_result_stands_with_it() -> None:
    said = [*TWO_CALLS[:2], calling(), result(), {"role": "user", "content": "And now?"}]
    assert '"18 C"}\n</tool_response>\nAnd now?<|im_end|>' in prompt("chatml", said, TOOLS)


@pytest.mark.parametrize("given", ["18 C", '{"t": 18}'])
def test_results_are_json_where_the_template_has_json(given: str) -> None:
    said = [*TWO_CALLS[:2], calling(), result(given)]
    shown = '"18 C"' if given == "18 C" else given
    assert f'[TOOL_RESULTS]{{"content": {shown}, "call_id": "callparis"}}' in prompt("mistral-v3-tekken", said, TOOLS)


def test_ids_are_shortened_where_they_must_be_and_stay_the_same() -> None:
    call = calling()
    call["tool_calls"][0]["id"] = "call_0123456789"
    said = [*TWO_CALLS[:2], call, {**result(), "tool_call_id": "call_0123456789"}]
    texts = [prompt("mistral-v11", said, TOOLS) for _ in range(2)]
    assert texts[0] == texts[1]
    identifier = texts[0].partition("[CALL_ID]")[2].partition("[ARGS]")[0]
    assert len(identifier) == 9
    assert f"[TOOL_RESULTS]{identifier}[TOOL_CONTENT]" in texts[0]
