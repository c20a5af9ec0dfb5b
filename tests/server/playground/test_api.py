"""The endpoint of the playground: what it says is what ``complete``, ``explain`` and matchers say."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

import constrain
from constrain.server.app import Application
from constrain.server.playground.endpoint import API
from constrain.server.settings import Settings
from tests.support import LONG, each_row
from tests.support.server.asking import ask, chunks_of, error_of, served_as

pytestmark = pytest.mark.slow

PERSON = """{
  "type": "object",
  "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}}
}"""
MESSAGES = [{"role": "user", "content": "Describe somebody."}]


def language(text: str, kind: str = "json_schema", **policies: str) -> dict[str, Any]:
    return {"kind": kind, "text": text, "policies": policies}


def post(application: Application, path: str, **fields: Any) -> httpx.Response:
    return ask(application, "POST", API + path, json={"model": "small", **fields})


def run(application: Application, **fields: Any) -> list[dict[str, Any]]:
    return chunks_of(post(application, "/generate", **{"messages": MESSAGES, "max_tokens": 60, "seed": 1, **fields}))


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def tokens_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [token for event in of(events, "tokens") for token in event["tokens"]]


def test_it_says_what_can_be_asked(application: Application) -> None:
    post(application, "/check", language=None)  # loads the model
    about = ask(application, "GET", API).json()
    assert about["version"] == 1
    assert about["model"] == "small"
    assert about["models"][0]["n_vocab"] == 49152
    assert set(about["kinds"]) == {"json_schema", "short", "lark", "gbnf", "regex"}
    assert about["policies"]["property_order"] == {"default": "schema", "choices": ["schema", "any"]}
    name = about["grammars"][0]
    assert "start:" in ask(application, "GET", f"{API}/grammars/{name}").json()["text"]
    assert ask(application, "GET", f"{API}/grammars/none").status_code == 404


LANGUAGES: list[tuple[dict[str, Any] | None, Any]] = [
    (language(PERSON), json.loads(PERSON)),
    (language("name, level: low|high", "short"), "name, level: low|high"),
    (language('start: "a" NAME\nNAME: /[b-e]{1,4}/', "lark"), constrain.Lark('start: "a" NAME\nNAME: /[b-e]{1,4}/')),
    (language('root ::= "x" [0-9]+', "gbnf"), constrain.Gbnf('root ::= "x" [0-9]+')),
    (language("[0-9]{2,5}", "regex"), constrain.Regex("[0-9]{2,5}")),
    (None, None),
]


@pytest.mark.parametrize("number", [*range(6), 11, 16] if not LONG else range(50))
def test_a_run_tells_what_complete_tells(application: Application, model: constrain.Model, number: int) -> None:
    given, schema = LANGUAGES[number % len(LANGUAGES)]
    options: dict[str, Any] = {"max_tokens": 8 + number, "seed": number, "temperature": (number % 3) / 2}
    messages = [{"role": "user", "content": f"Write something about the number {number // 6}."}]
    events = run(application, language=given, messages=messages, **options)
    expected = constrain.complete(
        model, messages, schema=schema, logprobs=True, top_logprobs=10, trace=True, cache_prompt=False, **options
    )
    tokens, (done,) = tokens_of(events), of(events, "done")
    prompt = of(events, "prompt")[0]
    assert prompt["text"] == constrain.prompts.shown_prompt(model, messages, schema=schema)
    assert "".join(event["text"] for event in of(events, "text")) == done["text"]
    assert done["usage"]["completion_tokens"] == len(tokens)
    if not options["temperature"]:  # sampled answers may differ where llama.cpp rounds batches in another way
        assert done["text"] == expected.text
        assert [token["token"] for token in tokens] == list(expected.tokens)
    constraint = None if schema is None else constrain.compile(_closed(schema), model.vocabulary)
    matcher = None if constraint is None else constraint.matcher(max_tokens=options["max_tokens"], max_number_tokens=64)
    for token, known in zip(tokens, expected.trace or (), strict=False):
        if token["token"] != known.token:
            break
        assert token["logprob"] == pytest.approx(known.logprob, abs=0.3)
        assert token["origin"] == known.origin
        assert token["allowed"] == (None if matcher is None else known.n_allowed)
        assert token["mass"] == pytest.approx(known.mass, abs=0.1)
    for token in tokens if matcher is not None else ():
        assert matcher is not None
        assert token["least_tokens"] == matcher.min_tokens_left
        assert [tuple(each.values()) for each in token["expected"]] == list(matcher.expected_terminals())
        for each in token["top"]:
            assert each["allowed"] == (matcher.explain(each["token"]).endswith("is allowed"))
        assert matcher.accept(token["token"])


def _closed(schema: Any) -> Any:
    if isinstance(schema, str):
        from constrain.language.short_schema import read_short

        return read_short(schema)
    return {**schema, "additionalProperties": False} if isinstance(schema, dict) else schema


def test_fields_and_pointers_tell_the_places_of_values(application: Application) -> None:
    tags = {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 1}
    schema = {
        "type": "object",
        "properties": {"person": {"type": "string", "minLength": 4}, "tags": tags},
        "required": ["person", "tags"],
    }
    events = run(application, language=language(json.dumps(schema)), temperature=0)
    fields = of(events, "field")
    value = of(events, "done")[0]["value"]
    assert [event["value"] for event in fields if event["kind"] == "complete" and event["path"] == ""] == [value]
    assert (
        "".join(event["text"] for event in fields if event["kind"] == "grow" and event["path"] == "/person")
        == (value["person"])
    )
    pointers = {token["pointer"] for token in tokens_of(events)}
    assert "/person" in pointers
    assert ("tags", 0) in {tuple(event["steps"]) for event in fields}
    offsets = [token["offset"] for token in tokens_of(events)]
    assert offsets == sorted(offsets)
    assert of(events, "done")[0]["fields"]["/person"]["probability"] > 0


def test_calls_are_told(application: Application) -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}}, "required": ["city"]}
    tool = {"type": "function", "function": {"name": "weather", "parameters": parameters}}
    events = run(application, tools=[tool], tool_choice="required", max_tokens=120)
    done = of(events, "done")[0]
    assert [event["name"] for event in of(events, "call")] == [call["name"] for call in done["calls"]]
    arguments = "".join(event["text"] for event in of(events, "arguments") if event["index"] == 0)
    assert json.loads(arguments) == done["calls"][0]["arguments"]
    assert any(event["call"] == 0 and event["path"] == "/city" for event in of(events, "field"))


def test_confidence_and_quotes_of_an_answer_with_tools_have_paths_of_their_own(application: Application) -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string", "x-quote": True}}, "required": ["city"]}
    tool = {"type": "function", "function": {"name": "weather", "parameters": parameters}}
    messages = [{"role": "user", "content": "How is the weather in Oslo?"}]
    done = of(run(application, messages=messages, tools=[tool], tool_choice="required", max_tokens=120), "done")[0]
    assert {"/calls/0/arguments", "/calls/0/arguments/city"} <= set(done["fields"])
    assert done["quotes"][0]["path"] == "/calls/0/arguments/city"
    city = done["calls"][0]["arguments"]["city"]
    assert city in messages[0]["content"]


@pytest.mark.parametrize("field", ["response_format", "guided_json", "functions", "max_output_tokens"])
def test_fields_that_would_be_ignored_are_refused(application: Application, field: str) -> None:
    refused = error_of(post(application, "/generate", messages=MESSAGES, **{field: 2}))
    assert refused["param"] == field
    assert refused["code"] == "unsupported_parameter"


QUOTING = """{
  "type": "object",
  "properties": {"name": {"type": "string", "x-quote": "letter"}},
  "required": ["name"]
}"""


def test_quotes_of_sources_that_are_not_there_yet_are_any_strings(application: Application) -> None:
    assert post(application, "/check", language=language(QUOTING)).json()["ok"]
    found = post(application, "/explain", language=language(QUOTING), text='{"name": "any"}').json()
    assert found["is_complete"]
    wrong = post(application, "/check", language=language(QUOTING.replace('"letter"', "5"))).json()
    assert "x-quote" in wrong["errors"][0]["message"]
    with_source = QUOTING[:-1] + ', "x-sources": {"letter": "Ada"}}'
    found = post(application, "/explain", language=language(with_source), text='{"name": "any"}').json()
    assert not found["matches"]
    malformed = QUOTING[:-1] + ', "x-sources": 5}'
    assert "x-sources" in post(application, "/check", language=language(malformed)).json()["errors"][0]["message"]


def test_a_branch_goes_on_from_its_prefix(application: Application) -> None:
    events = run(application, language=language(PERSON), temperature=0)
    tokens = tokens_of(events)
    index = next(i for i, token in enumerate(tokens) if token["origin"] == "chosen" and len(token["allowed_top"]) > 1)
    other = next(each for each in tokens[index]["allowed_top"] if each["token"] != tokens[index]["token"])
    prefix = [*(token["token"] for token in tokens[:index]), other["token"]]
    branch = tokens_of(run(application, language=language(PERSON), temperature=0, prefix=prefix))
    assert [token["token"] for token in branch[: index + 1]] == prefix
    refused = post(application, "/generate", messages=MESSAGES, language=language(PERSON), prefix=[5, 5, 5])
    assert refused.status_code == 400
    assert error_of(refused)["param"] == "prefix"


@each_row(
    "kind, text, place, words",
    ("json_schema", '{"type": "object",\n "properties": {"a": {"minimum": "x"}}}', (2, 34), "minimum"),
    ("json_schema", '{"type": \n nothing}', (2, 2), "not JSON"),
    ("json_schema", '{"allOf": [{"const": 1e300,\n "type": "number"}]}', (1, 22), "double"),
    ("short", "name, age itn", (1, 7), "itn"),
    ("json_schema", "name, age itn", (1, 7), "itn"),
    ("lark", 'start: "a"\n  | gone', (2, 5), "gone"),
    ("gbnf", "root ::= x", (1, 10), "x"),
    ("regex", "a(b", (1, 2), "group|parenthes"),
    ("json_schema", "[" * 50_000, None, "nested"),
)
def test_a_check_names_the_place_of_an_error(
    application: Application, kind: str, text: str, place: tuple[int, int] | None, words: str
) -> None:
    found = post(application, "/check", language=language(text, kind)).json()
    assert not found["ok"]
    assert any(re.search(words, error["message"]) for error in found["errors"]), found
    if place is not None:
        assert place in [(error["line"], error["column"]) for error in found["errors"]], found


def test_a_check_counts_tokens_and_gives_advice(application: Application, model: constrain.Model) -> None:
    found = post(application, "/check", language=language(PERSON)).json()
    report = constrain.compile(json.loads(PERSON), model.vocabulary).report
    assert found["ok"]
    assert found["least_tokens"] == report.min_tokens
    assert found["typical_tokens"] >= found["least_tokens"]
    for kind in ("short", "json_schema"):
        found = post(application, "/check", language=language("name, age int", kind)).json()
        assert (found["ok"], found["schema"]["required"]) == (True, ["name", "age"])
    assert post(application, "/check", language=None).json()["ok"]
    assert post(application, "/check", language=language('start: "ab"', "lark")).json()["least_tokens"] >= 1


def test_an_explanation_is_that_of_explain(application: Application, model: constrain.Model) -> None:
    text = '{"name": 5}'
    found = post(application, "/explain", language=language(PERSON), text=text).json()
    expected = constrain.explain(json.loads(PERSON), text, model.vocabulary, closed=True)
    assert (found["offset"], found["line"], found["column"]) == (expected.offset, expected.line, expected.column)
    assert found["accepted"] == '{"name": '
    assert found["rest"] == "5}"
    assert found["completion"].encode() == expected.completion
    assert [step["token"] for step in found["steps"]] == [step.token for step in expected.steps if step.text]
    assert not found["matches"]
    missing = post(application, "/explain", language=None, text="x")
    assert error_of(missing)["param"] == "language"


def test_a_budget_shows_where_the_answer_ends(application: Application, model: constrain.Model) -> None:
    events = run(application, language=language(PERSON), temperature=0)
    tokens = [token["token"] for token in tokens_of(events)]
    fields = {"messages": MESSAGES, "language": language(PERSON), "tokens": tokens}
    for budget in range(len(tokens) + 2):
        found = post(application, "/budget", **fields, max_tokens=budget).json()
        assert found["fits"] == (budget >= found["least"])
        if not found["fits"]:
            continue
        assert found["total"] == found["kept"] + len(found["closing"]) <= budget
        assert constrain.compile(_closed(json.loads(PERSON)), model.vocabulary).accepts(found["text"])
    found = post(application, "/budget", **fields, max_tokens=60).json()
    assert (found["kept"], found["closing"]) == (len(tokens), [])
    assert found["text"] == of(events, "done")[0]["text"]


def test_a_token_that_the_budget_refuses_has_that_reason(application: Application, model: constrain.Model) -> None:
    schema = language("[a-z]*", "regex")
    assert model.vocabulary.encode is not None
    (token,) = model.vocabulary.encode(b"a")
    asked = {"messages": MESSAGES, "language": schema, "tokens": [token] * 3, "token": token}
    assert post(application, "/why", **asked, max_tokens=4).json()["allowed"]
    found = post(application, "/why", **asked, max_tokens=3).json()
    assert not found["allowed"]
    assert "max_tokens" in found["explanation"]


@pytest.mark.parametrize("path", ["/budget", "/why"])
@pytest.mark.parametrize(("tokens", "message"), [([1] * 2000, "context holds"), ([5, 2], "end of generation")])
def test_tokens_that_no_answer_has_are_refused(
    application: Application, path: str, tokens: list[int], message: str
) -> None:
    response = post(application, path, messages=MESSAGES, tokens=tokens, token=5, max_tokens=9)
    assert message in error_of(response)["message"]
    assert error_of(response)["param"] == "tokens"


def test_a_refused_token_has_a_reason(application: Application, model: constrain.Model) -> None:
    assert model.vocabulary.encode is not None
    (token,) = model.vocabulary.encode(b"]")
    found = post(application, "/why", messages=MESSAGES, language=language(PERSON), tokens=[], token=token).json()
    assert not found["allowed"]
    assert "fails at byte 0" in found["explanation"]
    assert post(application, "/why", messages=MESSAGES, tokens=[], token=token).json()["allowed"]


@pytest.mark.parametrize("path", ["/generate", "/check", "/explain", "/budget", "/why"])
@each_row(
    "fields, param",
    ({"language": 5}, "language"),
    ({"language": {"kind": "ebnf", "text": ""}}, "language.kind"),
    ({"language": {"kind": "lark"}}, "language.text"),
    ({"language": language("{}", whitespace="none")}, "language.policies.whitespace"),
    ({"language": language("{}", spaces="none")}, "language.policies"),
    ({"model": "none"}, "model"),
)
def test_wrong_fields_are_named(application: Application, path: str, fields: dict[str, Any], param: str) -> None:
    body = {"messages": MESSAGES, "text": "", "max_tokens": 5, "token": 1, **fields}
    response = post(application, path, **body)
    assert response.status_code in (400, 404)
    assert error_of(response)["param"] == param


def test_languages_that_take_too_long_are_refused(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings(compile_seconds=0.1))
    slow = json.dumps({"pattern": "^(.*a.{200}){20}$"})
    found = post(application, "/check", language=language(slow)).json()
    assert not found["ok"]
    assert "takes more than" in found["errors"][0]["message"]


def test_the_endpoint_needs_a_key_and_the_page_does_not(model: constrain.Model) -> None:
    without = Application(served_as(model, "small"), Settings(playground=False))
    assert [ask(without, "GET", path).status_code for path in ("/", API)] == [404, 404]
    application = Application(served_as(model, "small"), Settings(api_keys=("secret",)))
    assert ask(application, "GET", API).status_code == 401
    assert ask(application, "GET", API + "/").status_code == 401
    assert post(application, "/check", language=None).status_code == 401
    assert ask(application, "GET", API, headers={"Authorization": "Bearer secret"}).status_code == 200
    assert ask(application, "GET", "/").status_code == 200
    assert ask(application, "GET", "/playground/style.css").status_code == 200
