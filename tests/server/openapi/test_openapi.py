"""The server's description of itself: complete, valid, and true of requests and answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpx
import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from starlette.routing import Route

from constrain.server.app import Application
from constrain.server.chat.request import ChatBody
from constrain.server.completions.request import CompletionBody
from constrain.server.embeddings.request import EmbeddingBody
from constrain.server.llama_server.request import REFUSED as LLAMA_REFUSED
from constrain.server.llama_server.request import CompletionBody as LlamaBody
from constrain.server.llama_server.request import DetokenizeBody, InfillBody
from constrain.server.messages.request import CountBody, MessagesBody
from constrain.server.ollama.fields import CHAT_REFUSED, GENERATE_REFUSED
from constrain.server.ollama.names import NamedBody
from constrain.server.ollama.request import ChatBody as OllamaChatBody
from constrain.server.ollama.request import GenerateBody
from constrain.server.ollama.texts import EmbedBody, OldEmbeddingsBody
from constrain.server.openapi.document import describe
from constrain.server.openapi.operations import OPERATIONS
from constrain.server.playground.request import BudgetBody, CheckBody, ExplainBody, GenerationBody, WhyBody
from constrain.server.requests.refusals import (
    CHAT_FIELDS,
    COMPLETIONS_FIELDS,
    HOSTED_FIELDS,
    MESSAGES_FIELDS,
    PLAYGROUND_FIELDS,
    RESPONSES_FIELDS,
)
from constrain.server.responses.request import ResponseBody
from constrain.server.settings import Settings
from tests.support import for_each
from tests.support.server.asking import ask, idle
from tests.support.server.messages import VERSION
from tests.support.server.tables import table

MESSAGES = [{"role": "user", "content": "Say hello."}]
TABLE = table("described_requests")

SCHEMAS = {
    "/v1/chat/completions": ("ChatRequest", "ChatCompletion", "ChatCompletionChunk"),
    "/v1/responses": ("ResponsesRequest", "Response", ""),
    "/v1/completions": ("CompletionRequest", "Completion", "CompletionChunk"),
    "/v1/messages": ("MessagesRequest", "Message", "MessageEvent"),
    "/api/chat": ("OllamaChatRequest", "OllamaChatAnswer", "OllamaChatAnswer"),
    "/api/generate": ("OllamaGenerateRequest", "OllamaGenerateAnswer", "OllamaGenerateAnswer"),
    "/completion": ("LlamaCompletionRequest", "LlamaCompletion", "LlamaCompletionPiece"),
    "/v1/embeddings": ("EmbeddingRequest", "Embeddings", ""),
}
"""The schemas of a path: of its requests, of a whole answer, and of a piece of a stream."""


@pytest.fixture(scope="module")
def description(application: Application) -> dict[str, Any]:
    response = ask(application, "GET", "/openapi.json")
    assert response.status_code == 200
    return response.json()


def validator(description: dict[str, Any], name: str) -> Draft202012Validator:
    root = Resource(description, DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("urn:description", root)
    return Draft202012Validator({"$ref": f"urn:description#/components/schemas/{name}"}, registry=registry)


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_no_description_shows_the_name_of_a_constant(description: dict[str, Any]) -> None:
    assert re.findall(r"\{[A-Z][A-Z_]+", json.dumps(description)) == []


def test_every_route_is_described(application: Application, description: dict[str, Any]) -> None:
    routes = [route for route in application._app.routes if isinstance(route, Route)]
    served = {(method, route.path_format) for route in routes for method in (route.methods or set()) - {"HEAD"}}
    described = {(method.upper(), path) for path, methods in description["paths"].items() for method in methods}
    assert served == described


class Recorded(dict[str, Any]):
    """A body that records the names of the fields that are read."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(body)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


READERS: dict[str, tuple[Callable[[Any], object], dict[str, Any], Mapping[str, str]]] = {
    "ChatRequest": (
        lambda body: ChatBody.ask(body, Settings()),
        {"model": "m", "messages": MESSAGES, "stream": True, "logprobs": True},
        CHAT_FIELDS,
    ),
    "ResponsesRequest": (
        partial(ResponseBody.ask, settings=Settings()),
        {"model": "m", "input": "x", "include": ["message.output_text.logprobs"], "stream": True},
        RESPONSES_FIELDS,
    ),
    "CompletionRequest": (
        lambda body: CompletionBody.ask(body, Settings()),
        {"model": "m", "prompt": "x", "stream": True, "logprobs": 1},
        COMPLETIONS_FIELDS,
    ),
    "MessagesRequest": (
        lambda body: MessagesBody.ask(body, Settings()),
        {"model": "m", "max_tokens": 9, "messages": MESSAGES, "stream": True},
        MESSAGES_FIELDS,
    ),
    "CountRequest": (
        lambda body: CountBody.ask(body, Settings()),
        {"model": "m", "messages": MESSAGES},
        MESSAGES_FIELDS,
    ),
    "EmbeddingRequest": (partial(EmbeddingBody.ask, settings=Settings()), {"model": "m", "input": "x"}, {}),
    "OllamaChatRequest": (
        lambda body: OllamaChatBody.ask(body, Settings()),
        {"model": "m", "messages": MESSAGES, "think": True},
        CHAT_REFUSED,
    ),
    "OllamaGenerateRequest": (
        lambda body: GenerateBody.ask(body, Settings()),
        {"model": "m", "prompt": "x"},
        {**GENERATE_REFUSED, "images": ""},
    ),
    "OllamaEmbedRequest": (partial(EmbedBody.ask, settings=Settings()), {"model": "m", "input": "x"}, {}),
    "OllamaEmbeddingsRequest": (partial(OldEmbeddingsBody.ask, settings=Settings()), {"model": "m", "prompt": "x"}, {}),
    "PlaygroundRequest": (
        lambda body: GenerationBody.ask(body, Settings()),
        {"model": "m", "messages": MESSAGES, "language": {"kind": "json_schema", "text": "{}"}},
        PLAYGROUND_FIELDS,
    ),
    "PlaygroundBudgetRequest": (
        lambda body: BudgetBody.ask(body, Settings()),
        {"model": "m", "messages": MESSAGES, "max_tokens": 1},
        PLAYGROUND_FIELDS,
    ),
    "PlaygroundWhyRequest": (
        lambda body: WhyBody.ask(body, Settings()),
        {"model": "m", "messages": MESSAGES, "token": 1},
        PLAYGROUND_FIELDS,
    ),
    "PlaygroundCheckRequest": (lambda body: CheckBody.ask(body, Settings()), {"model": "m"}, {}),
    "PlaygroundExplainRequest": (lambda body: ExplainBody.ask(body, Settings()), {"model": "m", "text": ""}, {}),
    "OllamaModelRequest": (partial(NamedBody.ask, settings=Settings()), {"name": "m"}, {}),
    "LlamaCompletionRequest": (lambda body: LlamaBody.ask(body, Settings()), {"prompt": "x"}, LLAMA_REFUSED),
    "LlamaInfillRequest": (
        lambda body: InfillBody.ask(body, Settings()),
        {"input_prefix": "x", "input_suffix": "y"},
        LLAMA_REFUSED,
    ),
    "LlamaDetokenizeRequest": (partial(DetokenizeBody.ask, settings=Settings()), {"tokens": [1]}, {}),
}
"""The reader of each body, the smallest body in which it reads every field, and the fields that it refuses."""


@for_each("name", READERS)
def test_every_field_that_is_read_is_described(description: dict[str, Any], name: str) -> None:
    reader, body, refused = READERS[name]
    recorded = Recorded(body)
    reader(recorded)
    members = description["components"]["schemas"][name]["properties"].keys()
    assert recorded.read - {*(field.partition(".")[0] for field in refused), "modalities", *HOSTED_FIELDS} <= members
    assert members <= recorded.read


@pytest.mark.slow
def test_all_schemas_of_all_operations_are_json_schemas_and_refer_to_what_is_there() -> None:
    routes = [Route(one.path, lambda _: None, methods=[one.method]) for one in OPERATIONS]
    description = describe(routes, ["small"], has_keys=True)
    schemas = description["components"]["schemas"]
    jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": schemas})
    names = {reference.removeprefix("#/components/schemas/") for reference in references(description)}
    assert names <= set(schemas)


def objects_of(response: httpx.Response) -> list[Any]:
    """The object in a body, or those of its events or lines."""
    if response.headers["content-type"] == "application/json":
        return [response.json()]
    lines = [line.removeprefix("data: ") for line in response.text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.slow
@pytest.mark.parametrize("case", TABLE["asked"])
def test_requests_and_their_answers_are_as_described(
    application: Application, description: dict[str, Any], case: dict[str, str]
) -> None:
    path, body = case["path"], json.loads(case["fields"])
    request, whole, piece = SCHEMAS[path]
    validator(description, request).validate(body)
    if request == "MessagesRequest":
        validator(description, "CountRequest").validate(body)
    response = ask(application, "POST", path, json=body)
    assert response.status_code == 200, response.text
    answer = validator(description, piece if body.get("stream", path.startswith("/api/")) else whole)
    found = objects_of(response)
    assert found
    for each in found:
        answer.validate(each)


@for_each("path", ["/v1/models", "/v1/models/{name}"])
@for_each("headers", [{}, VERSION])
def test_models_are_as_described(
    application: Application, description: dict[str, Any], path: str, headers: dict[str, str]
) -> None:
    [schema] = [each["schema"] for each in description["paths"][path]["get"]["responses"]["200"]["content"].values()]
    response = ask(application, "GET", path.replace("{name}", "small"), headers=headers)
    fitting = [Draft202012Validator(each).is_valid(response.json()) for each in schema["anyOf"]]
    assert fitting == [not headers, bool(headers)]


@for_each(
    "method, path",
    ("POST", "/tokenize"),
    ("POST", "/detokenize"),
    ("GET", "/props"),
    ("GET", "/slots"),
    ("GET", "/api/v0/models"),
    ("POST", "/v1/responses/input_tokens"),
)
def test_facts_for_other_servers_clients_are_as_described(
    application: Application, description: dict[str, Any], method: str, path: str
) -> None:
    body = {"json": {"content": "a", "tokens": [1], "input": "a", "model": "small"}} if method == "POST" else {}
    [content] = description["paths"][path][method.lower()]["responses"]["200"]["content"].values()
    response = ask(application, method, path, **body)
    assert response.status_code == 200, response.text
    Draft202012Validator(content["schema"]).validate(response.json())


def test_errors_of_ollamas_api_are_as_described(application: Application, description: dict[str, Any]) -> None:
    for path in ("chat", "generate", "embed", "embeddings", "show", "pull", "create", "copy", "push", "blobs/x", "x"):
        response = ask(application, "POST", f"/api/{path}", json={"model": "none"})
        assert response.status_code in (400, 404)
        validator(description, "OllamaError").validate(response.json())


@for_each("case", TABLE["wrong"])
def test_what_is_refused_is_not_described(
    application: Application, description: dict[str, Any], case: dict[str, str]
) -> None:
    path, body = case["path"], json.loads(case["fields"])
    assert not validator(description, SCHEMAS[path][0]).is_valid(body)
    response = ask(application, "POST", path, json=body)
    assert response.status_code in (400, 404)
    validator(description, "MessagesError" if path == "/v1/messages" else "Error").validate(response.json())


@pytest.mark.slow
def test_a_key_is_described_where_one_is_needed(description: dict[str, Any]) -> None:
    assert description["components"]["schemas"]["ModelName"]["enum"] == ["small", "other-name"]
    assert "security" not in description
    application = idle(api_keys=("secret",))
    description = ask(application, "GET", "/openapi.json", headers={"Authorization": "Bearer secret"}).json()
    assert description["security"] == [{"key": []}, {"keyHeader": []}]
    assert description["components"]["securitySchemes"] == {
        "key": {"type": "http", "scheme": "bearer"},
        "keyHeader": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
    }
    assert ask(application, "GET", "/v1/models", headers={"X-Api-Key": "secret"}).status_code == 200
    assert "401" in description["paths"]["/v1/models"]["get"]["responses"]
    assert description["paths"]["/health"]["get"]["security"] == []
