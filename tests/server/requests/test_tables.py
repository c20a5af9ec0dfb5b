"""Requests that are refused, accepted, or accepted with a warning before any model is asked; most are in tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import constrain
from constrain import Regex
from constrain.chat.prompt.conversation import conversation_prompt
from constrain.chat.reading.events import CallStarted, TextDelta
from constrain.chat.tools.definition import as_tools
from constrain.fields.values import FieldError
from constrain.gbnf import Gbnf
from constrain.lark import Lark
from constrain.llama.decoding.token_logprob import TokenLogprob
from constrain.server.app import Application
from constrain.server.chat.request import ChatBody, ChatRequest
from constrain.server.completions.request import CompletionBody
from constrain.server.embeddings.request import EmbeddingBody
from constrain.server.http.account import Account
from constrain.server.http.errors import ApiError, convert_field_errors
from constrain.server.llama_server.request import CompletionBody as LlamaBody
from constrain.server.llama_server.request import InfillBody
from constrain.server.messages.request import CountBody, MessagesBody
from constrain.server.ollama.request import ChatBody as OllamaChatBody
from constrain.server.ollama.request import GenerateBody
from constrain.server.ollama.texts import EmbedBody
from constrain.server.requests.formats import RESPONSE_FORMAT, TEXT_FORMAT, read_format, text_of_schema
from constrain.server.requests.peers import ContentFields
from constrain.server.requests.question import PrefillFields, take_prefill
from constrain.server.responses.input import conversation, read_items
from constrain.server.responses.repeated import repeat_text
from constrain.server.responses.request import ResponseBody, ResponsesRequest
from constrain.server.serving.prefill import Prefill
from constrain.server.settings import Settings
from tests.support import each_row, for_each
from tests.support.chat.characters import Characters
from tests.support.chat.templates import template
from tests.support.server.asking import ask, chunks_of
from tests.support.server.response_answers import completion
from tests.support.server.tables import require_refused, table

SETTINGS = Settings()
MODEL = {"model": "small"}
CHAT = {**MODEL, "messages": [{"role": "user", "content": "Hello"}]}
GAP = {"input_prefix": "def add(", "input_suffix": "return a + b"}


def read_input(given: Any) -> None:
    with convert_field_errors():
        conversation(read_items(given), None)


def ollama_chat(fields: dict[str, Any]) -> object:
    return OllamaChatBody.ask({**CHAT, **fields}, SETTINGS)


def ollama_generate(fields: dict[str, Any]) -> object:
    return GenerateBody.ask({**MODEL, "prompt": "Hi", **fields}, SETTINGS)


def llama_completion(fields: dict[str, Any]) -> object:
    return LlamaBody.ask({"prompt": "One, two,", **fields}, SETTINGS)


def llama_infill(fields: dict[str, Any]) -> object:
    return InfillBody.ask({**GAP, **fields}, SETTINGS)


READERS: dict[str, dict[str, tuple[Callable[[Any], object], ...]]] = {
    "chat_requests": {"refused": (lambda fields: ChatBody.ask({**CHAT, **fields}, SETTINGS),)},
    "completion_requests": {
        "refused": (lambda fields: CompletionBody.ask({**MODEL, "prompt": "Hello", **fields}, SETTINGS),)
    },
    "embedding_requests": {
        "refused": (lambda fields: EmbeddingBody.ask({**MODEL, "input": "Hello", **fields}, SETTINGS),)
    },
    "messages_requests": {
        "refused": (lambda fields: MessagesBody.ask({**CHAT, "max_tokens": 100, **fields}, SETTINGS),)
    },
    "responses_requests": {
        "refused": (lambda fields: ResponseBody.ask({**MODEL, "input": "Hello", **fields}, Settings()),),
        "items": (read_input,),
    },
    "ollama_requests": {
        "both": (ollama_chat, ollama_generate),
        "chat": (ollama_chat,),
        "generate": (ollama_generate,),
        "embed": (lambda fields: EmbedBody.ask({**MODEL, "input": "a", **fields}, Settings()),),
    },
    "llama_requests": {
        "both": (llama_completion, llama_infill),
        "completion": (llama_completion,),
        "infill": (llama_infill,),
    },
}
"""The readers of each table, by the kind of its cases."""

CASES = [
    (case, reader)
    for name, kinds in READERS.items()
    for kind, readers in kinds.items()
    for case in table(name)[kind]
    for reader in readers
]
ACCEPTED = [(case, kinds["refused"][0]) for name, kinds in READERS.items() for case in table(name).get("accepted", ())]


@for_each("case, read", CASES)
def test_what_cannot_be_had_is_refused_with_its_place(case: dict[str, Any], read: Callable[[Any], object]) -> None:
    require_refused(case, read)


@for_each("case, read", ACCEPTED)
def test_what_clients_send_is_accepted(case: dict[str, Any], read: Callable[[Any], object]) -> None:
    assert read(json.loads(case["fields"])).model == "small"  # type: ignore[attr-defined]


@for_each("case", table("formats")["refused"])
def test_a_format_that_says_nothing_or_two_things_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises((ApiError, FieldError)) as caught:
        read_format(json.loads(case["fields"]), RESPONSE_FORMAT, "structural")
    assert caught.value.param == case["param"]


# Known programs.

TOKENIZER: Any = Characters()

READERS_OF_PATHS: dict[str, Callable[[dict[str, Any]], object]] = {
    "/v1/responses": partial(ResponseBody.ask, settings=Settings()),
    **{
        path: partial(read, settings=Settings())
        for path, read in {
            "/v1/chat/completions": ChatBody.ask,
            "/v1/completions": CompletionBody.ask,
            "/v1/messages": MessagesBody.ask,
            "/v1/messages/count_tokens": CountBody.ask,
            "/api/chat": OllamaChatBody.ask,
            "/api/generate": GenerateBody.ask,
            "/completion": LlamaBody.ask,
            "/infill": InfillBody.ask,
        }.items()
    },
}


@for_each("case", table("clients")["request"])
def test_what_known_programs_send(account: Account, case: dict[str, Any]) -> None:
    account.warnings = ()
    read = partial(READERS_OF_PATHS[case["path"]], json.loads(case["body"]))
    if "refused" in case:
        with pytest.raises(ApiError) as caught:
            read()
        assert caught.value.param == case["refused"]
        return
    told = case.get("told", [])
    read()
    assert len(account.warnings) == len(told), account.warnings
    for part in told:
        assert any(part in warning for warning in account.warnings), account.warnings


@pytest.mark.slow
@for_each("case", [case for case in table("clients")["request"] if "refused" not in case])
def test_conversations_of_known_programs_have_a_prompt(case: dict[str, Any]) -> None:
    asked: Any = READERS_OF_PATHS[case["path"]](json.loads(case["body"]))
    question = asked.asking().questions[0] if isinstance(asked, ResponsesRequest) else asked.questions[0]
    if question.prompt and not isinstance(question.prompt, str):
        tools = as_tools(question.options.get("tools") or ())
        assert conversation_prompt(TOKENIZER, template("qwen2.5"), question.prompt, tools=tools).tokens


# What chat completions ask for.


BASE = {"model": "small", "messages": [{"role": "user", "content": "Hello"}]}
OPEN_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def read(fields: dict[str, Any], settings: Settings | None = None) -> ChatRequest:
    return ChatBody.ask({**BASE, **fields}, settings or Settings())


def schema_of(request: ChatRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request.question.schema or "")
    return found


def strict_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}


def test_a_result_may_have_what_is_no_text() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    parts = [{"type": "text", "text": "Look: "}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    result = {"role": "tool", "tool_call_id": "a", "content": parts}
    prompt: Any = read({"messages": [{"role": "assistant", "tool_calls": [call]}, result]}).question.prompt
    assert prompt[1]["content"] == [parts[0], {"type": "text", "text": "[image omitted]"}]


def test_the_smaller_of_two_limits_counts() -> None:
    request = read({"max_tokens": 20, "max_completion_tokens": 10})
    assert (request.question.options["max_tokens"], request.question.places.max_tokens) == (10, "max_completion_tokens")


def test_a_format_of_any_object_leaves_it_open() -> None:
    assert schema_of(read({"response_format": {"type": "json_object"}})) == {"type": "object"}


def test_a_schema_beside_json_object_is_not_dropped() -> None:
    assert schema_of(read({"response_format": {"type": "json_object", "schema": OPEN_SCHEMA}})) == OPEN_SCHEMA


def test_strict_rules_are_only_checked_where_asked_for() -> None:
    lenient = {"type": "json_schema", "json_schema": {"name": "x", "schema": OPEN_SCHEMA}}
    assert schema_of(read({"response_format": lenient})) == OPEN_SCHEMA


def test_a_server_may_leave_out_the_strict_rules() -> None:
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": OPEN_SCHEMA}}
    asked = {"response_format": strict_format(OPEN_SCHEMA), "tools": [tool]}
    assert schema_of(read(asked, Settings(strict_subset="off"))) == OPEN_SCHEMA


def test_a_server_may_keep_to_all_of_openais_rules() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "format": "uri"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert schema_of(read({"response_format": strict_format(schema)})) == schema
    with pytest.raises(ApiError, match="'uri' is not a valid format"):
        read({"response_format": strict_format(schema)}, Settings(strict_subset="openai"))


def test_equal_seeds_stay_equal() -> None:
    seeds = [read({"seed": seed}).question.options["seed"] for seed in (7, 7, -2, 2**32 + 6)]
    assert seeds[0] == seeds[1] == 7
    assert all(0 <= seed < 2**32 - 1 for seed in seeds)


AGE: dict[str, Any] = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
LIST = {"type": "array", "items": {"type": "integer"}}
ANY = {"type": "object"}
GBNF = 'root ::= "(" root ")" | "x"'

BOTH: dict[str, tuple[dict[str, Any], Any]] = {
    "json_object": ({"type": "json_object"}, ANY),
    "a schema beside json_object": ({"type": "json_object", "schema": AGE}, AGE),
    "a value beside json_object": ({"type": "json_object", "value": AGE}, AGE),
    "json": ({"type": "json"}, ANY),
    "a value beside json": ({"type": "json", "value": LIST}, LIST),
    "a schema without a type": ({"type": "json_object", "value": {"required": ["a"]}}, {**ANY, "required": ["a"]}),
    "a schema beside json_schema": ({"type": "json_schema", "schema": AGE}, AGE),
    "a value beside json_schema": ({"type": "json_schema", "value": AGE}, AGE),
    "a value with a name": ({"type": "json_schema", "value": {"name": "a b", "schema": LIST}}, LIST),
    "a pattern": ({"type": "regex", "pattern": "a+"}, Regex("a+")),
    "a pattern as a value": ({"type": "regex", "value": "a+"}, Regex("a+")),
    "a grammar": ({"type": "grammar", "grammar": GBNF}, Gbnf(GBNF)),
    "a marked grammar": (
        {"type": "grammar", "value": '%llguidance {}\nstart: "a"'},
        Lark('%llguidance {}\nstart: "a"'),
    ),
}
"""Formats of both endpoints, and what they say."""


def plain(schema: object) -> Any:
    return json.loads(schema) if isinstance(schema, str) else schema


@for_each("given, meant", BOTH.values())
def test_formats_of_other_servers_are_read_by_both_endpoints(given: dict[str, Any], meant: Any) -> None:
    for spelling in (RESPONSE_FORMAT, TEXT_FORMAT):
        found = read_format(given, spelling, "structural")
        assert found is not None
        assert plain(found.schema) == meant
    shown = repeat_text({"format": given})["format"]
    assert shown["type"] == {"json": "json_object"}.get(given["type"], given["type"]) or shown == {"type": "text"}
    assert "schema" not in shown or shown["schema"] in (AGE, LIST, {"required": ["a"]})


def test_a_bare_schema_is_told_how_a_format_has_it() -> None:
    for spelling, wrapped in (
        (RESPONSE_FORMAT, '"json_schema": {"name": "answer", "schema": '),
        (TEXT_FORMAT, '"schema": '),
    ):
        with pytest.raises(FieldError, match=re.escape(f'{{"type": "json_schema", {wrapped}{{...}}')):
            read_format({"type": "object"}, spelling, "structural")


def test_keywords_that_are_null_are_missing() -> None:
    given: dict[str, Any] = {
        "required": None,
        "properties": {"default": {"enum": None, "const": None}, "a": {"anyOf": [{"items": None, "type": "array"}]}},
        "default": {"required": None},
        "enum": [None, {"required": None}],
    }
    assert json.loads(text_of_schema(given)) == {
        "properties": {"default": {"const": None}, "a": {"anyOf": [{"type": "array"}]}},
        "default": {"required": None},
        "enum": [None, {"required": None}],
    }
    assert given["required"] is None


EBNF = Gbnf("root ::= a.b\na.b ::= [\\-]", dialect="xgrammar")
LARK = Lark('start: "(" start ")" | "::=" // root ::= x')
DIALECTS: dict[str, tuple[str, str, Any]] = {
    "llama.cpp's": ("grammar", GBNF, Gbnf(GBNF)),
    "llama.cpp's with llguidance": ("grammar", '%llguidance {}\nstart: "a"', Lark('%llguidance {}\nstart: "a"')),
    "vLLM's with XGrammar": ("guided_grammar", EBNF.text, EBNF),
    "vLLM's with Lark": ("guided_grammar", LARK.text, LARK),
    "SGLang's": ("ebnf", f"# a comment\n{EBNF.text}", Gbnf(f"# a comment\n{EBNF.text}", dialect="xgrammar")),
}


@each_row(
    "given, meant",
    ({"type": "json", "value": AGE}, AGE),
    ({"type": "json_schema", "value": {"name": "a b", "schema": AGE}}, AGE),
    ({"type": "regex", "value": "a+"}, Regex("a+")),
)
def test_the_grammar_of_tgi_is_read(given: dict[str, Any], meant: Any) -> None:
    found: Any = ContentFields.read({"grammar": given}).grammar
    assert plain(found.schema) == meant
    with pytest.raises(ValueError, match="'json', 'json_schema', 'regex'"):
        ContentFields.read({"grammar": {**given, "type": "text"}})


@for_each("field, text, meant", DIALECTS.values())
def test_the_field_says_the_dialect(field: str, text: str, meant: Any) -> None:
    found: Any = getattr(ContentFields.read({field: text}), field)
    assert found.schema == meant
    if field == "guided_grammar":
        found = ContentFields.read({"structured_outputs": {"grammar": text}}).structured_outputs
        assert found.schema == meant


USER = [{"role": "user", "content": "Name a colour."}]
BEGUN = {"role": "assistant", "content": "The colour"}
CALLER = {"role": "assistant", "tool_calls": [{}]}


@for_each(
    "last, fields, text",
    ((BEGUN,), {}, "The colour"),
    ((BEGUN,), {"continue_final_message": True}, "The colour"),
    ((BEGUN,), {"add_generation_prompt": False, "continue_final_message": False}, "The colour"),
    (({**BEGUN, "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},), {}, "ab"),
    (({**BEGUN, "content": ""},), {}, ""),
    ((), {}, ""),
    ((), {"add_generation_prompt": True, "continue_final_message": False}, ""),
)
def test_the_last_message_may_be_the_beginning_of_the_answer(last: Any, fields: dict[str, Any], text: str) -> None:
    options: Any = {}
    assert take_prefill(PrefillFields.read(fields), [*USER, *last], options) == (USER, text)
    assert options == ({"thinking": False} if text else {})


@pytest.mark.parametrize("fields", [{"continue_final_message": False}, {"add_generation_prompt": True}])
def test_a_request_may_ask_for_a_message_of_its_own(fields: dict[str, Any]) -> None:
    assert take_prefill(PrefillFields.read(fields), [*USER, BEGUN], {}) == ([*USER, BEGUN], "")


@for_each(
    "messages, fields, options, param",
    (USER, {"continue_final_message": True}, {}, "continue_final_message"),
    ([*USER, CALLER], {"add_generation_prompt": False}, {}, "add_generation_prompt"),
    ([*USER, BEGUN], {"continue_final_message": True, "add_generation_prompt": True}, {}, "continue_final_message"),
    ([*USER, BEGUN], {"continue_final_message": 1}, {}, "continue_final_message"),
    ([BEGUN], {}, {}, "messages[0]"),
    ([*USER, BEGUN], {}, {"thinking": True}, "messages[1]"),
    ([*USER, BEGUN], {}, {"stop": ["x", "col"]}, "messages[1]"),
    ([*USER, BEGUN], {}, {"draft": True}, "draft"),
)
def test_a_beginning_that_cannot_be_continued_is_refused(
    messages: Any, fields: dict[str, Any], options: Any, param: str
) -> None:
    with pytest.raises(FieldError) as caught:
        take_prefill(PrefillFields.read(fields), messages, options)
    assert caught.value.param == param


def test_the_beginning_is_cut_from_events_and_answers() -> None:
    def token(text: str) -> TokenLogprob:
        return TokenLogprob(1, text, text.encode(), -1.0, ())

    tokens = [token(text) for text in ("The", " colour", " is", " red")]
    prefill = Prefill(characters=10, tokens=2, given=3)
    events = [
        TextDelta("The col", tuple(tokens[:2])),
        TextDelta("our is", tuple(tokens[2:3])),
        CallStarted(0, "a", "f"),
    ]
    shown = [prefill.cut_event(event) for event in (*events, TextDelta(" red", tuple(tokens[3:])))]
    assert shown == [None, TextDelta(" is", (tokens[2],)), events[2], TextDelta(" red", (tokens[3],))]
    cut = prefill.cut(completion("The colour is red", "The colour is red"))
    assert (cut.text, cut.usage.prompt_tokens, cut.usage.completion_tokens) == (" is red", 23, 4)


SCHEMA = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}
NAMED = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
SENT = [*USER, {"role": "assistant", "content": '{"colour": "b'}]


@for_each(
    "path, fields",
    ("/v1/chat/completions", {"response_format": NAMED, "logprobs": True, "n": 2}),
    ("/v1/chat/completions", {"response_format": NAMED, "stream": True}),
    ("/v1/messages", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}, "max_tokens": 9}),
    ("/api/chat", {"format": SCHEMA, "stream": False}),
)
def test_the_answer_is_the_rest_of_a_value(application: Application, path: str, fields: dict[str, Any]) -> None:
    response = ask(application, "POST", path, json={"model": "small", "messages": SENT, **fields})
    assert response.status_code == 200, response.text
    if "stream" in fields and path != "/api/chat":
        choices = [choice for chunk in chunks_of(response) for choice in chunk["choices"]]
        texts = ["".join(choice["delta"].get("content") or "" for choice in choices)]
    elif path == "/api/chat":
        texts = [response.json()["message"]["content"]]
    elif path == "/v1/messages":
        texts = [response.json()["content"][0]["text"]]
    else:
        texts = [choice["message"]["content"] for choice in response.json()["choices"]]
        told = [choice["logprobs"]["content"] for choice in response.json()["choices"]]
        assert ["".join(each["token"] for each in tokens) for tokens in told] == texts
    for text in texts:
        assert json.loads(SENT[-1]["content"] + text) == {"colour": "blue"}


def test_a_beginning_that_no_answer_has_is_refused(application: Application) -> None:
    body = {"model": "small", "messages": [*USER, BEGUN], "response_format": NAMED}
    response = ask(application, "POST", "/v1/chat/completions", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "messages"


def test_free_text_goes_on(application: Application, model: constrain.Model) -> None:
    begun = {"role": "assistant", "content": "1, 2, 3, 4,"}
    body = {"model": "small", "max_tokens": 6, "temperature": 0}
    plain, going_on = (
        ask(application, "POST", "/v1/chat/completions", json={**body, "messages": messages}).json()
        for messages in (USER, [*USER, begun])
    )
    assert going_on["choices"][0]["message"]["content"]
    read = plain["usage"]["prompt_tokens"] + len(model.text_tokens(begun["content"]))
    assert (going_on["usage"]["prompt_tokens"], going_on["usage"]["completion_tokens"]) == (read, 6)
