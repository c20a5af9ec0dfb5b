"""``client.responses``: what comes back, what may be sent, what is kept."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI
from samples import MOVE_SCHEMA, OPEN_SCHEMA, PROMPT, Person, text_format

if TYPE_CHECKING:
    from httpx2 import Client
    from openai.types.responses import Response

SHORT: Any = {"max_output_tokens": 16, "temperature": 0}


def ask(client: OpenAI, model: str, given: Any = PROMPT, **options: Any) -> Response:
    return client.responses.create(model=model, input=given, **{**SHORT, **options})


def test_a_response_has_all_fields(client: OpenAI, model: str) -> None:
    response = ask(client, model)
    assert response.object == "response"
    assert response.id.startswith("resp_")
    assert response.model == model
    assert response.error is None
    assert response.status in ("completed", "incomplete")
    required = {
        "id", "object", "created_at", "error", "incomplete_details", "instructions", "metadata", "model", "output",
        "parallel_tool_calls", "temperature", "tool_choice", "tools", "top_p", "status", "text", "usage",
        "previous_response_id", "reasoning", "truncation", "store", "max_output_tokens",
    }  # fmt: skip
    assert required <= set(json.loads(response.model_dump_json(exclude_unset=True)))


def test_its_message(client: OpenAI, model: str) -> None:
    response = ask(client, model)
    (message,) = response.output
    assert message.type == "message"
    assert message.id.startswith("msg_")
    assert message.role == "assistant"
    (part,) = message.content
    assert part.type == "output_text"
    assert (part.annotations, part.logprobs) == ([], [])
    assert part.text == response.output_text != ""


def test_its_usage(client: OpenAI, model: str) -> None:
    usage = ask(client, model).usage
    assert usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.input_tokens_details.cached_tokens >= 0
    assert usage.input_tokens_details.cache_write_tokens == 0
    assert usage.output_tokens_details.reasoning_tokens == 0


def test_a_text_that_is_cut_is_incomplete(client: OpenAI, model: str) -> None:
    response = ask(client, model, max_output_tokens=3)
    assert response.status == "incomplete"
    assert response.incomplete_details
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output[0].status == "incomplete"  # type: ignore[union-attr]


def test_a_text_that_ends_is_completed(client: OpenAI, model: str) -> None:
    response = ask(client, model, "Say hi.", max_output_tokens=400)
    assert (response.status, response.incomplete_details) == ("completed", None)


def test_what_was_asked_is_repeated(client: OpenAI, model: str) -> None:
    response = ask(
        client, model, instructions="Be brief.", temperature=0.5, top_p=0.9, metadata={"a": "b"}, user="emma",
        parallel_tool_calls=False, truncation="disabled",
    )  # fmt: skip
    assert response.instructions == "Be brief."
    assert (response.temperature, response.top_p, response.max_output_tokens) == (0.5, 0.9, 16)
    assert response.metadata == {"a": "b"}
    assert response.parallel_tool_calls is False


INPUTS: dict[str, Any] = {
    "easy messages": [{"role": "user", "content": "Hi."}],
    "messages": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}],
    "several roles": [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "input_text", "text": "Bye."}]},
    ],
    "an answer": [
        {"role": "user", "content": "Hi."},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
        },
        {"role": "user", "content": "Bye."},
    ],
    "a refusal": [
        {"role": "user", "content": "Hi."},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "user", "content": "Please."},
    ],
    "a call and its result": [
        {"role": "user", "content": "Go."},
        {"type": "function_call", "call_id": "call_1", "name": "go", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "gone"},
    ],
    "a result as a list": [
        {"role": "user", "content": "Go."},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "go", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "gone"}]},
    ],
    "a custom call": [
        {"role": "user", "content": "Go."},
        {"type": "custom_tool_call", "call_id": "call_1", "name": "go", "input": "left"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "gone"},
    ],
    "reasoning": [
        {"role": "user", "content": "Hi."},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye."},
    ],
    "reasoning without content": [
        {"role": "user", "content": "Hi."},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": []},
        {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye."},
    ],
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs(client: OpenAI, model: str, name: str) -> None:
    assert ask(client, model, INPUTS[name], max_output_tokens=4).output


ACCEPTED: dict[str, Any] = {
    "tools": [],
    "include": [],
    "store": True,
    "user": "emma",
    "service_tier": "auto",
    "prompt_cache_key": "emma",
    "safety_identifier": "emma",
    "truncation": "auto",
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"verbosity": "low"},
    "top_p": 0.5,
    "metadata": {"a": "b"},
    "background": False,
    "top_logprobs": 0,
    "extra_body": {"some_field_of_tomorrow": True},
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(client: OpenAI, model: str, name: str) -> None:
    given: Any = {name: ACCEPTED[name]}
    assert ask(client, model, max_output_tokens=2, **given).output


def test_null_is_as_good_as_nothing(client: OpenAI, model: str) -> None:
    names = (
        "text", "reasoning", "tools", "tool_choice", "include", "instructions", "previous_response_id", "metadata",
        "store", "truncation", "temperature", "top_p", "parallel_tool_calls", "user", "background", "conversation",
    )  # fmt: skip
    nothing: Any = dict.fromkeys(names)
    assert client.responses.create(model=model, input=PROMPT, max_output_tokens=2, **nothing).output


def test_encrypted_reasoning_may_be_included(client: OpenAI, model: str) -> None:
    assert ask(client, model, include=["reasoning.encrypted_content"], max_output_tokens=2).output


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "background": ({"background": True}, "background"),
    "a conversation": ({"conversation": "conv_1"}, "conversation"),
    "heat": ({"temperature": 3}, "temperature"),
    "no tokens": ({"max_output_tokens": 0}, "max_output_tokens"),
    "something unknown to include": ({"include": ["everything"]}, "include[0]"),
    "an image": (
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}]},
        "input[0].content[0]",
    ),
    "a file": (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
        "input[0].content[0]",
    ),
    "only an unknown item": ({"input": [{"type": "dream"}]}, "input"),
    "an unknown role": ({"input": [{"role": "wizard", "content": "Hm."}]}, "input[0].role"),
    "no content": ({"input": [{"role": "user", "content": []}]}, "input[0].content"),
    "an unknown format": ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    "required without tools": ({"tool_choice": "required"}, "tool_choice"),
    "a tool of the provider": (
        {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
        "tool_choice",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(client: OpenAI, model: str, name: str) -> None:
    options, param = REFUSED[name]
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, **{"given": options.pop("input", PROMPT), **options})
    assert str(caught.value.param).startswith(param)
    assert caught.value.type == "invalid_request_error"


def test_no_input(client: OpenAI, model: str) -> None:
    with pytest.raises(BadRequestError):
        client.responses.create(model=model)


@pytest.mark.parametrize("kind", ["function_call_output", "custom_tool_call_output"])
def test_a_result_without_a_call(client: OpenAI, model: str, kind: str) -> None:
    items = [{"role": "user", "content": "Go."}, {"type": kind, "call_id": "call_9", "output": "gone"}]
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, items)
    assert caught.value.param == "input"
    words = kind.removesuffix("_output").replace("_", " ")
    assert f"No tool call found for {words} output with call_id call_9" in caught.value.message


def test_an_unknown_model(client: OpenAI) -> None:
    with pytest.raises(NotFoundError) as caught:
        ask(client, "gpt-5")
    assert caught.value.code == "model_not_found"


def test_a_prompt_that_is_too_long(client: OpenAI, model: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, "word " * 20_000)
    assert caught.value.code == "context_length_exceeded"


@pytest.mark.parametrize("strict", [True, False, None])
def test_a_schema(client: OpenAI, model: str, strict: bool | None) -> None:
    response = ask(client, model, text=text_format(MOVE_SCHEMA, strict=strict), max_output_tokens=60)
    assert set(json.loads(response.output_text)) == {"to", "steps"}
    assert response.status == "completed"
    assert response.text
    assert response.text.format
    assert response.text.format.type == "json_schema"


def test_an_open_schema(client: OpenAI, model: str) -> None:
    response = ask(client, model, text=text_format(OPEN_SCHEMA), max_output_tokens=60)
    assert set(json.loads(response.output_text)) == {"name", "age"}


def test_any_object(client: OpenAI, model: str) -> None:
    response = ask(client, model, text={"format": {"type": "json_object"}}, max_output_tokens=60)
    assert isinstance(json.loads(response.output_text), dict)


def test_a_strict_schema_that_breaks_the_rules(client: OpenAI, model: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, text=text_format(OPEN_SCHEMA, strict=True))
    assert (caught.value.param, caught.value.code) == ("text.format.schema", "invalid_json_schema")
    assert "In context=()" in caught.value.message


def test_a_limit_that_is_too_small_names_one_that_works(client: OpenAI, model: str) -> None:
    import re

    with pytest.raises(BadRequestError) as caught:
        ask(client, model, text=text_format(MOVE_SCHEMA), max_output_tokens=2)
    assert (caught.value.param, caught.value.code) == ("max_output_tokens", "integer_below_min_value")
    enough = max(map(int, re.findall("[0-9]+", caught.value.message)))
    response = ask(client, model, text=text_format(MOVE_SCHEMA), max_output_tokens=enough)
    assert set(json.loads(response.output_text)) == {"to", "steps"}


def test_parse(client: OpenAI, model: str) -> None:
    response = client.responses.parse(model=model, input=PROMPT, text_format=Person, max_output_tokens=90)
    assert isinstance(response.output_parsed, Person)


def test_instructions_are_read(client: OpenAI, model: str) -> None:
    with_them, without = (ask(client, model, instructions=text, max_output_tokens=1).usage for text in ("A b c.", None))
    assert with_them
    assert without
    assert with_them.input_tokens != without.input_tokens


def test_a_conversation_goes_on_by_id(client: OpenAI, model: str) -> None:
    first = ask(client, model, "My name is Emma.")
    second = ask(client, model, "And I am 21.", previous_response_id=first.id)
    third = ask(client, model, "Who am I?", previous_response_id=second.id)
    assert (second.previous_response_id, third.previous_response_id) == (first.id, second.id)
    tokens = [response.usage.input_tokens for response in (first, second, third) if response.usage]
    assert tokens == sorted(tokens)
    assert len(set(tokens)) == 3


def test_instructions_are_not_inherited(client: OpenAI, model: str) -> None:
    long = "Be brief. " * 30
    first = ask(client, model, "Hi.", instructions=long)
    second = ask(client, model, "Bye.", previous_response_id=first.id)
    assert second.instructions is None
    assert first.usage
    assert second.usage
    assert second.usage.input_tokens < first.usage.input_tokens


def test_a_conversation_goes_on_by_items(client: OpenAI, model: str) -> None:
    items: list[Any] = [{"role": "user", "content": "Hi."}]
    for word in ("And?", "Bye."):
        response = ask(client, model, items, store=False)
        items += response.output
        items.append({"role": "user", "content": word})
    assert ask(client, model, items).output_text


def test_an_unknown_previous_response(client: OpenAI, model: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, previous_response_id="resp_gone")
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")


def test_retrieve(client: OpenAI, model: str) -> None:
    response = ask(client, model)
    assert client.responses.retrieve(response.id).to_dict() == response.to_dict()


def test_what_is_not_stored_is_not_there(client: OpenAI, model: str) -> None:
    response = ask(client, model, store=False)
    assert response.store is False
    with pytest.raises(NotFoundError):
        client.responses.retrieve(response.id)
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, previous_response_id=response.id)
    assert caught.value.code == "previous_response_not_found"


def test_delete(client: OpenAI, model: str) -> None:
    response = ask(client, model)
    client.responses.delete(response.id)
    for forget in (client.responses.retrieve, client.responses.delete):
        with pytest.raises(NotFoundError):
            forget(response.id)


def test_deleting_says_so(client: OpenAI, raw: Client, model: str) -> None:
    response = ask(client, model)
    assert raw.delete(f"responses/{response.id}").json() == {
        "id": response.id,
        "object": "response",
        "deleted": True,
    }


def test_input_items(client: OpenAI, model: str) -> None:
    items: Any = [{"role": "user", "content": text} for text in ("One.", "Two.", "Three.")]
    response = ask(client, model, items)
    found = list(client.responses.input_items.list(response.id, order="asc"))
    assert [item.content[0].text for item in found] == ["One.", "Two.", "Three."]  # type: ignore[union-attr]
    assert len({item.id for item in found}) == 3


def test_input_items_in_pages(client: OpenAI, model: str) -> None:
    items: Any = [{"role": "user", "content": f"Line {number}."} for number in range(5)]
    response = ask(client, model, items)
    page = client.responses.input_items.list(response.id, limit=2)
    assert len(page.data) == 2
    assert page.has_next_page()
    assert len(list(page)) == 5


def test_input_items_of_nothing(client: OpenAI) -> None:
    with pytest.raises(NotFoundError):
        list(client.responses.input_items.list("resp_gone"))


def test_responses_belong_to_a_key(client: OpenAI, model: str) -> None:
    response = ask(client, model)
    with OpenAI(api_key=os.environ["CONSTRAIN_OTHER_KEY"], max_retries=0) as other:
        with pytest.raises(NotFoundError):
            other.responses.retrieve(response.id)
        with pytest.raises(BadRequestError):
            ask(other, model, previous_response_id=response.id)
    assert client.responses.retrieve(response.id).id == response.id


def test_cancelling_what_was_never_in_the_background(client: OpenAI, model: str) -> None:
    with pytest.raises(BadRequestError):
        client.responses.cancel(ask(client, model).id)


def test_there_are_no_conversations(client: OpenAI) -> None:
    with pytest.raises(NotFoundError):
        client.conversations.create()
