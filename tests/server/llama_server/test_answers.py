"""What llama-server's clients get: continuations, tokens, prompts, and descriptions of the server."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import httpx
import pytest

import constrain
from constrain.server.app import Application
from constrain.server.chat.request import ChatBody
from constrain.server.http.errors import ApiError
from constrain.server.llama_server.request import CompletionBody as LlamaBody
from constrain.server.llama_server.request import (
    ContinuationRequest,
    DetokenizeBody,
    Gap,
    InfillBody,
    TokenizeBody,
    read_tokenize,
)
from constrain.server.llama_server.tokens import prompt_tokens
from constrain.server.requests.limits import RANGES
from constrain.server.settings import Settings
from tests.support import each_row, for_each
from tests.support.server.asking import ask, error_of

PROMPT = "One, two, three,"
USER = {"role": "user", "content": "Say hello."}


def post(application: Application, path: str, **fields: Any) -> httpx.Response:
    return ask(application, "POST", path, json=fields)


def answer_of(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    """The objects of a stream, which has no last line of its own."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = response.text.split("\n\n")
    assert events.pop() == ""
    return [json.loads(event.removeprefix("data: ")) for event in events]


def complete(application: Application, **fields: Any) -> httpx.Response:
    return post(application, "/completion", **{"prompt": PROMPT, "temperature": 0, "n_predict": 4, **fields})


def test_a_continuation_has_the_numbers_of_llama_server(application: Application) -> None:
    answer = answer_of(complete(application, return_tokens=True))
    assert answer["content"]
    assert (answer["stop"], answer["stop_type"], answer["stopping_word"]) == (True, "limit", "")
    assert (answer["model"], answer["tokens_predicted"], len(answer["tokens"])) == ("small", 4, 4)
    assert answer["tokens_evaluated"] == len(tokens(application, PROMPT))
    timings = answer["timings"]
    assert timings["prompt_n"] + timings["cache_n"] == answer["tokens_evaluated"]
    assert timings["predicted_n"] == 4
    assert answer["content"] == answer_of(complete(application, prompt=tokens(application, PROMPT)))["content"]
    chosen = {"prompt": PROMPT, "temperature": 0, "max_tokens": 4, "model": "small"}
    assert answer["content"] == answer_of(post(application, "/v1/completions", **chosen))["choices"][0]["text"]


def test_a_stream_ends_with_its_numbers(application: Application) -> None:
    *pieces, last = events_of(complete(application, stream=True))
    assert all(set(piece) == {"index", "content", "stop"} and not piece["stop"] for piece in pieces)
    whole = answer_of(complete(application))
    assert "".join(piece["content"] for piece in pieces) == whole["content"]
    assert (last["content"], last["stop"]) == ("", True)
    assert set(last) == set(whole)


@pytest.mark.parametrize("fields", [{"grammar": 'root ::= "yes" | "no"'}, {"json_schema": {"enum": ["yes", "no"]}}])
def test_a_grammar_and_a_schema_are_enforced(application: Application, fields: dict[str, Any]) -> None:
    answer = answer_of(complete(application, prompt="Yes or no?", n_predict=8, **fields))
    assert answer["content"].strip('"') in ("yes", "no")
    assert answer["stop_type"] == "eos"


def test_a_stop_text_is_told(application: Application) -> None:
    whole = answer_of(complete(application, n_predict=8))["content"]
    answer = answer_of(complete(application, stop=[whole[3:6]], n_predict=8))
    assert (answer["stop_type"], answer["stopping_word"]) == ("word", whole[3:6])
    assert answer["content"] == whole[: whole.index(whole[3:6])]


@pytest.mark.parametrize("path", ["/completion", "/tokenize", "/detokenize"])
def test_a_model_that_is_not_there_is_not_found(application: Application, path: str) -> None:
    response = post(application, path, model="none", prompt="a", content="a", tokens=[1])
    assert (response.status_code, error_of(response)["code"]) == (404, "model_not_found")


def test_a_prompt_that_does_not_fit_is_refused(application: Application) -> None:
    for prompt in ("word " * 2000, "word " * 100_000, [5] * 2000):
        response = complete(application, prompt=prompt)
        assert (response.status_code, error_of(response)["code"]) == (400, "context_length_exceeded")


def tokens(application: Application, content: str, **fields: Any) -> Any:
    return answer_of(post(application, "/tokenize", content=content, **fields))["tokens"]


def test_texts_become_tokens_and_tokens_texts(application: Application) -> None:
    text = "<|im_start|>user\nHello, wörld!<|im_end|>"
    found = tokens(application, text)
    assert answer_of(post(application, "/detokenize", tokens=found)) == {"content": text, "prompt": text}
    plain = tokens(application, text, parse_special=False)
    assert len(plain) > len(found)
    assert answer_of(post(application, "/detokenize", tokens=plain))["content"] == text
    described = tokens(application, text, with_pieces=True)
    assert [each["id"] for each in described] == found
    assert described[0]["piece"] == "<|im_start|>"
    assert tokens(application, "\U0001f9ff", with_pieces=True)[0]["piece"] != "\ufffd"
    assert tokens(application, "") == []
    assert answer_of(post(application, "/detokenize", tokens=[]))["content"] == ""


def test_texts_become_tokens_for_clients_of_vllm(application: Application) -> None:
    found = answer_of(post(application, "/tokenize", prompt="Hello, world!", add_special_tokens=False))
    assert found["tokens"] == tokens(application, "Hello, world!")
    assert (found["count"], found["max_model_len"]) == (len(found["tokens"]), 1024)


def test_ids_that_the_model_does_not_have_are_refused(application: Application) -> None:
    response = post(application, "/detokenize", tokens=[1, 1 << 30])
    assert (response.status_code, error_of(response)["param"]) == (400, "tokens")


def test_names_of_special_tokens_in_a_prompt_are_these_tokens(application: Application) -> None:
    prompt = "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n"
    assert answer_of(complete(application, prompt=prompt))["tokens_evaluated"] == len(tokens(application, prompt))


def test_a_prompt_is_shown_as_the_template_writes_it(application: Application) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <|im_end|>"}]
    prompt = answer_of(post(application, "/apply-template", messages=messages))["prompt"]
    assert prompt.endswith("<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n")
    refused = post(application, "/apply-template", messages=[])
    assert (refused.status_code, error_of(refused)["param"]) == (400, "messages")


@each_row(
    "path, fields",
    ("/completion", {"prompt": "one two " * 60, "n_predict": 1}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "three four " * 60}], "max_tokens": 1}),
)
def test_a_stream_tells_how_much_of_the_prompt_is_read(
    application: Application, path: str, fields: dict[str, Any]
) -> None:
    response = post(application, path, **fields, stream=True, return_progress=True)
    chunks = [json.loads(line[6:]) for line in response.text.split("\n\n") if line not in ("", "data: [DONE]")]
    told = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
    assert {each["total"] for each in told} == {told[-1]["processed"]}
    assert [each["processed"] for each in told] == sorted({each["processed"] for each in told})
    assert all(each["cache"] < each["processed"] and each["time_ms"] > 0 for each in told)
    assert "prompt_progress" not in post(application, path, **fields, stream=True).text
    assert "prompt_progress" not in answer_of(post(application, path, **fields, return_progress=True))


def test_the_tokens_of_a_prompt_with_tools_are_those_that_are_read(application: Application) -> None:
    function = {"name": "f", "description": "Does it.", "parameters": {"type": "object", "properties": {}}}
    fields = {"model": "small", "messages": [USER], "tools": [{"type": "function", "function": function}]}
    found = answer_of(post(application, "/tokenize", **fields))
    made = answer_of(post(application, "/v1/chat/completions", **fields, max_tokens=20))
    assert found["count"] == len(found["tokens"]) == made["usage"]["prompt_tokens"]
    prompt = answer_of(post(application, "/apply-template", **fields))["prompt"]
    pieces = answer_of(post(application, "/tokenize", **fields, with_pieces=True))["tokens"]
    assert "".join(each["piece"] for each in pieces) == prompt
    tool = {"name": "f", "input_schema": function["parameters"]}
    message = {"model": "small", "max_tokens": 20, "messages": [USER], "tools": [tool]}
    counted = answer_of(post(application, "/v1/messages/count_tokens", **message))
    usage = answer_of(post(application, "/v1/messages", **message))["usage"]
    assert counted == {"input_tokens": usage["input_tokens"] + usage["cache_read_input_tokens"]}


def test_the_tokens_of_a_response_are_counted_before_it_is_written(application: Application) -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    fields = {"model": "small", "input": "Say hello.", "instructions": "Be brief.", "tools": [tool]}
    counted = answer_of(post(application, "/v1/responses/input_tokens", **fields))
    made = answer_of(post(application, "/v1/responses", **fields, max_output_tokens=20))
    assert counted == {"object": "response.input_tokens", "input_tokens": made["usage"]["input_tokens"]}


def test_the_server_is_described(application: Application, model: constrain.Model) -> None:
    found = answer_of(ask(application, "GET", "/props"))
    assert (found["default_generation_settings"]["n_ctx"], found["total_slots"]) == (1024, 4)
    assert (found["chat_template"], found["model_alias"]) == (model.chat_template, "small")
    assert found["eos_token"] == "<|im_end|>"
    slots = ask(application, "GET", "/slots?model=other-name").json()
    assert slots == [{"id": number, "n_ctx": 1024, "is_processing": False} for number in range(4)]
    assert ask(application, "GET", "/props?model=none").status_code == 404


def test_models_are_listed_as_by_lm_studio(application: Application) -> None:
    listed = answer_of(ask(application, "GET", "/api/v0/models"))["data"]
    assert [(each["id"], each["type"], each["state"]) for each in listed] == [
        ("small", "llm", "not-loaded"), ("other-name", "llm", "not-loaded")
    ] or all(each["loaded_context_length"] == 1024 for each in listed)  # fmt: skip
    assert answer_of(ask(application, "GET", "/api/v0/models/SMALL"))["id"] == "small"
    assert ask(application, "GET", "/api/v0/models/none").status_code == 404


def test_a_model_without_tokens_for_gaps_fills_none(application: Application) -> None:
    response = post(application, "/infill", input_prefix="def add(", input_suffix="return a + b")
    assert (response.status_code, error_of(response)["code"]) == (400, "not_supported")


def test_a_gap_has_the_tokens_of_its_model(model: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model.tokenizer, "infill", {"pre": 1, "suf": 2, "mid": 3, "sep": -1})
    body = {"input_prefix": "a", "input_suffix": "<|im_end|>", "input_extra": [{"text": "b"}]}
    found = list(prompt_tokens(model, InfillBody.ask(body, Settings())))
    plain = model.tokenizer.tokenize
    assert found == [*plain("\n\n--- snippet ---\n\n"), *plain("\nb"), 1, *plain("a"), 2, *plain("<|im_end|>"), 3]


# What requests ask for.


def completion(fields: dict[str, Any]) -> ContinuationRequest:
    return LlamaBody.ask({"prompt": "One, two,", **fields}, Settings())


def infill(fields: dict[str, Any]) -> ContinuationRequest:
    return InfillBody.ask({"input_prefix": "def add(", "input_suffix": "return a + b", **fields}, Settings())


def refusal(read: Any, fields: dict[str, Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        read(fields)
    assert caught.value.status == 400
    return caught.value


@each_row(
    "read, fields",
    (completion, {"stop": ["a"] * (RANGES["stop_sequences"][1] + 1)}),
    (infill, {"input_extra": [{"text": "a"}] * (RANGES["input_extra"][1] + 1)}),
)
def test_long_lists_are_refused(read: Any, fields: dict[str, Any]) -> None:
    error = refusal(read, fields)
    assert error.param in fields
    assert "too long" in error.message


@pytest.mark.parametrize("read", [completion, infill])
def test_fields_that_change_no_answer_are_accepted(read: Any) -> None:
    fields = {"id_slot": 3, "t_max_predict_ms": 500, "n_keep": 8, "n_probs": 0, "lora": []}
    assert read(
        {**fields, "grammar": "", "stop": [], "seed": -1, "n_predict": -1, "something_new": 3}
    ).question.options == {"stop": []}


@for_each(
    "fields, options",
    ({"n_predict": 5}, {"max_tokens": 5}),
    ({"n_predict": 5, "max_tokens": 3}, {"max_tokens": 3}),
    ({"n_predict": 0}, {"max_tokens": 0}),
    ({"n_predict": -2, "max_tokens": None}, {}),
    ({"seed": 2**32 - 1}, {}),
    ({"cache_prompt": True, "temperature": 3, "top_k": 5}, {"cache_prompt": True, "temperature": 3, "top_k": 5}),
)
def test_options_become_those_of_the_library(fields: dict[str, Any], options: dict[str, Any]) -> None:
    assert completion(fields).question.options == options


@for_each("prompt, pieces", [("a", ("a",)), (["a"], ("a",)), ([1, 2], (1, 2)), ([1, "a", 2], (1, "a", 2)), ([], ())])
def test_a_prompt_is_a_text_or_tokens_or_both(prompt: Any, pieces: tuple[Any, ...]) -> None:
    assert completion({"prompt": prompt}).pieces == pieces


def test_a_text_of_vllm_begins_with_special_tokens_unless_it_must_not() -> None:
    bodies = ({"content": "a"}, {"content": "a", "add_special": True}, {"prompt": "a"})
    found = [TokenizeBody.read(body).begins for body in (*bodies, {"prompt": "a", "add_special_tokens": False})]
    assert found == [False, True, True, False]


def test_a_gap_stands_between_two_texts_and_behind_other_files() -> None:
    extra = [{"filename": "a.py", "text": "A = 1"}, {"text": "B = 2"}]
    found = infill({"prompt": "a, b", "input_extra": extra})
    files = (Gap.FILE, "a.py\nA = 1", Gap.FILE, "\nB = 2")
    assert found.pieces == (*files, Gap.PREFIX, "def add(a, b", Gap.SUFFIX, "return a + b", Gap.MIDDLE)
    assert (found.names_tokens, completion({}).names_tokens) == (False, True)


@for_each(
    "read, body, param",
    (partial(TokenizeBody.ask, settings=Settings()), {}, "content"),
    (partial(TokenizeBody.ask, settings=Settings()), {"content": ["a"]}, "content"),
    (partial(TokenizeBody.ask, settings=Settings()), {"prompt": 3}, "prompt"),
    (partial(read_tokenize, ChatBody, settings=Settings()), {"messages": []}, "messages"),
    (partial(read_tokenize, ChatBody, settings=Settings()), {"messages": [USER], "prompt": "a"}, "prompt"),
    (partial(TokenizeBody.ask, settings=Settings()), {"content": "a", "add_special": "no"}, "add_special"),
    (partial(DetokenizeBody.ask, settings=Settings()), {}, "tokens"),
    (partial(DetokenizeBody.ask, settings=Settings()), {"tokens": "a"}, "tokens"),
    (partial(DetokenizeBody.ask, settings=Settings()), {"tokens": [1, "a"]}, "tokens[1]"),
    (partial(DetokenizeBody.ask, settings=Settings()), {"tokens": [-1]}, "tokens[0]"),
)
def test_what_cannot_be_converted_is_refused(read: Any, body: dict[str, Any], param: str) -> None:
    assert refusal(read, body).param == param
