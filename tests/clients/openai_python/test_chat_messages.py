"""Roles and contents of messages that chat completions take and refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from openai import BadRequestError
from samples import MESSAGES, MOVE, Person

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletion

CALL = {"id": "call_1", "type": "function", "function": {"name": "Move", "arguments": '{"to":"left","steps":2}'}}
CUSTOM_CALL = {"id": "call_2", "type": "custom", "custom": {"name": "note", "input": "remember"}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "moved"}
ASK = {"role": "user", "content": "Go left."}


def ask(client: OpenAI, model: str, messages: Any, **options: Any) -> ChatCompletion:
    return client.chat.completions.create(model=model, messages=messages, max_tokens=6, temperature=0, **options)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_of_either_role(client: OpenAI, model: str, role: str) -> None:
    completion = ask(client, model, [{"role": role, "content": "Be brief."}, ASK])
    assert completion.choices[0].message.content


def test_developer_is_read_as_system(client: OpenAI, model: str) -> None:
    system, developer = (
        ask(client, model, [{"role": role, "content": "Be brief."}, ASK]) for role in ("system", "developer")
    )
    assert system.usage
    assert developer.usage
    assert system.usage.prompt_tokens == developer.usage.prompt_tokens


def test_content_as_parts_is_the_same_as_a_string(client: OpenAI, model: str) -> None:
    parts = [{"type": "text", "text": "Tell me of "}, {"type": "text", "text": "Emma."}]
    one, other = (ask(client, model, [{"role": "user", "content": content}]) for content in (parts, "Tell me of Emma."))
    assert one.usage
    assert other.usage
    assert one.usage.prompt_tokens == other.usage.prompt_tokens


@pytest.mark.parametrize("content", [None, "", "I call it."])
def test_an_assistant_message_with_calls(client: OpenAI, model: str, content: str | None) -> None:
    assistant = {"role": "assistant", "content": content, "tool_calls": [CALL]}
    assert ask(client, model, [ASK, assistant, RESULT], tools=[MOVE], tool_choice="none").choices[0].message.content


def test_an_assistant_message_with_calls_and_no_content_at_all(client: OpenAI, model: str) -> None:
    assistant = {"role": "assistant", "tool_calls": [CALL]}
    assert ask(client, model, [ASK, assistant, RESULT]).choices[0].message.role == "assistant"


def test_results_as_parts(client: OpenAI, model: str) -> None:
    assistant = {"role": "assistant", "tool_calls": [CALL]}
    result = {**RESULT, "content": [{"type": "text", "text": "moved"}]}
    assert ask(client, model, [ASK, assistant, result]).choices


def test_several_calls_and_results_in_one_turn(client: OpenAI, model: str) -> None:
    second = {**CALL, "id": "call_9"}
    messages = [
        ASK,
        {"role": "assistant", "tool_calls": [CALL, second]},
        {**RESULT, "tool_call_id": "call_9"},
        RESULT,
        {"role": "user", "content": "And now?"},
    ]
    assert ask(client, model, messages, tools=[MOVE], tool_choice="none").choices[0].message.content


def test_custom_calls_in_the_history(client: OpenAI, model: str) -> None:
    messages = [
        ASK,
        {"role": "assistant", "tool_calls": [CUSTOM_CALL]},
        {"role": "tool", "tool_call_id": "call_2", "content": "noted"},
    ]
    assert ask(client, model, messages).choices


def test_a_message_of_the_deprecated_role_function(client: OpenAI, model: str) -> None:
    messages = [
        ASK,
        {"role": "assistant", "content": None, "function_call": {"name": "Move", "arguments": "{}"}},
        {"role": "function", "name": "Move", "content": "moved"},
    ]
    assert ask(client, model, messages).choices


TURNS: dict[str, list[Any]] = {
    "a refusal as a part": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}],
    "every field, most of them null": [
        {
            "role": "assistant",
            "content": "Yes.",
            "refusal": None,
            "tool_calls": None,
            "function_call": None,
            "audio": None,
            "annotations": [],
        }
    ],
    "no calls": [{"role": "assistant", "content": "Yes.", "tool_calls": []}],
    "reasoning": [{"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}],
    "instructions in the middle": [{"role": "assistant", "content": "Yes."}, {"role": "system", "content": "Hurry."}],
    "somebody who speaks twice": [{"role": "user", "content": "Or not."}],
    "arguments that are empty": [
        {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "look", "arguments": ""}}]},
        RESULT,
    ],
    "a call with a number, and a result with a name": [
        {"role": "assistant", "tool_calls": [{"index": 0, **CALL}]},
        {**RESULT, "name": "Move"},
    ],
}


@pytest.mark.parametrize("name", TURNS)
def test_turns_that_clients_send_back(client: OpenAI, model: str, name: str) -> None:
    assert ask(client, model, [ASK, *TURNS[name], ASK]).choices


def test_names_of_speakers_are_taken(client: OpenAI, model: str) -> None:
    assert ask(client, model, [{**ASK, "name": "Emma"}]).choices


def test_an_answer_can_be_sent_back(client: OpenAI, model: str) -> None:
    message: Any = ask(client, model, MESSAGES).choices[0].message
    assert ask(client, model, [*MESSAGES, message, ASK]).choices
    assert ask(client, model, [*MESSAGES, message.model_dump(), ASK]).choices


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_parsed_answer_can_be_sent_back(client: OpenAI, model: str) -> None:
    message: Any = (
        client.chat.completions.parse(model=model, messages=MESSAGES, response_format=Person, max_tokens=90)
        .choices[0]
        .message
    )
    assert ask(client, model, [*MESSAGES, message, ASK]).choices


def test_special_tokens_in_texts_are_text(client: OpenAI, model: str) -> None:
    marker = "<|im_end|>"
    texts = [marker * count for count in (1, 2)]
    usages = [ask(client, model, [{"role": "user", "content": text}]).usage for text in texts]
    assert all(usages)
    assert usages[1].prompt_tokens - usages[0].prompt_tokens > 1  # type: ignore[union-attr]


def test_special_tokens_in_results_are_text(client: OpenAI, model: str) -> None:
    def tokens(text: str) -> int:
        messages = [ASK, {"role": "assistant", "tool_calls": [CALL]}, {**RESULT, "content": text}]
        usage = ask(client, model, messages).usage
        assert usage
        return usage.prompt_tokens

    assert tokens("<|im_start|>" * 2) - tokens("<|im_start|>") > 1


REFUSED: dict[str, tuple[Any, str]] = {
    "no messages": ([], "messages"),
    "an empty content": ([{"role": "user", "content": []}], "messages[0].content"),
    "an unknown role": ([{"role": "wizard", "content": "Hm."}], "messages[0].role"),
    "a result without a call": ([ASK, RESULT], "messages[1]"),
    "a call without a result": ([ASK, {"role": "assistant", "tool_calls": [CALL]}, ASK], "messages"),
    "a user who says nothing": ([{"role": "user"}], "messages[0].content"),
    "a user whose content is null": ([{"role": "user", "content": None}], "messages[0].content"),
    "a content of a wrong type": ([{"role": "user", "content": 7}], "messages[0].content"),
    "a part of an unknown type": ([{"role": "user", "content": [{"type": "smell"}]}], "messages[0].content[0]"),
    "an image": (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}],
        "messages[0].content[0]",
    ),
    "sound": (
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]}],
        "messages[0].content[0]",
    ),
    "a file": (
        [{"role": "user", "content": [{"type": "text", "text": "."}, {"type": "file", "file": {"file_id": "f"}}]}],
        "messages[0].content[1]",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(client: OpenAI, model: str, name: str) -> None:
    messages, param = REFUSED[name]
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, messages)
    assert caught.value.type == "invalid_request_error"
    assert str(caught.value.param).startswith(param)


@pytest.mark.parametrize("kind", ["image_url", "input_audio", "file"])
def test_what_is_no_text_is_named(client: OpenAI, model: str, kind: str) -> None:
    with pytest.raises(BadRequestError, match=kind):
        ask(client, model, [{"role": "user", "content": [{"type": kind, kind: {}}]}])
