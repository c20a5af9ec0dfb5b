"""The routes of the playground: ``/playground/api/v1`` and the files of the page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from constrain import grammars
from constrain.errors import GrammarError, LimitError, ModelError
from constrain.fields.values import FieldError, invalid, missing
from constrain.generation.observers.trace import TRACED_TOKENS
from constrain.language.policies import CHOICES, policy_defaults
from constrain.llama.model import default_model_path
from constrain.server.http.errors import ApiError
from constrain.server.playground.budget import explain_token, show_budget
from constrain.server.playground.inspecting import check_here, explain_here, free_text, refused
from constrain.server.playground.language import FIELD, KINDS, wrong_language
from constrain.server.playground.objects import VERSION
from constrain.server.playground.page import is_open, page_routes
from constrain.server.playground.request import (
    BudgetBody,
    CheckBody,
    ExplainBody,
    GenerationBody,
    PlaceRequest,
    WhyBody,
)
from constrain.server.playground.stream import RunWriter
from constrain.server.serving.answering import Answering
from constrain.server.serving.dialect import Dialect
from constrain.server.serving.endpoint import Endpoint, Inspecting
from constrain.server.serving.models import find_model, model_list
from constrain.server.serving.sizes import longest_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.requests import Request

    from constrain.generation.plan import Plan
    from constrain.server.requests.declared import Body
    from constrain.server.requests.question import Asked
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.generation import Answers
    from constrain.server.serving.models import Models, ServedModel

API = f"/playground/api/v{VERSION}"


def _routes(serving: Serving) -> list[Route]:
    """Returns the routes of the page and of its endpoint."""
    if not serving.settings.playground:
        return []
    about = About(serving)
    posts: dict[str, Endpoint] = {
        "/generate": Answering(serving, GenerationBody, _make_writer),
        "/check": Check(serving, CheckBody),
        "/explain": Explanation(serving, ExplainBody),
        "/budget": AtPlace(serving, BudgetBody, show_budget),
        "/why": AtPlace(serving, WhyBody, explain_token),
    }
    return [
        Route(API, about.describe),
        Route(f"{API}/grammars/{{name}}", show_grammar),
        *(Route(f"{API}{path}", endpoint, methods=["POST"]) for path, endpoint in posts.items()),
        *page_routes(),
    ]


class About:
    """What a page needs to know before it asks: models, notations, policies and ready grammars."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def describe(self, _: Request) -> Response:
        """Returns the description. Facts of a model's tokens are known once it is loaded, and null before."""
        from importlib.metadata import version

        listed = [str(each["id"]) for each in model_list(self._serving.models)["data"]]
        models = self._serving.models
        return JSONResponse(
            {
                "version": VERSION,
                "program": f"constrain {version('constrain-llm')}",
                "models": [_describe_model(models, name) for name in listed],
                "model": listed[0],
                "kinds": list(KINDS),
                "policies": {
                    name: {"default": default, "choices": list(CHOICES[name])}
                    for name, default in policy_defaults(close_objects=True).items()
                },
                "grammars": list(grammars.names()),
                "limits": {"top": TRACED_TOKENS, "max_body_bytes": self._serving.settings.max_body_bytes},
            }
        )


def _describe_model(models: Models, name: str) -> dict[str, Any]:
    model = models.loaded(name)
    return {
        "id": name,
        "is_demo": _is_demo(find_model(models, name).path),
        "n_ctx": None if model is None else model.n_ctx,
        "n_vocab": None if model is None else model.vocabulary.n_vocab,
        "has_chat_template": None if model is None else model.chat_template is not None,
    }


def _is_demo(path: Path | None) -> bool:
    """Returns whether a file is the model of the demo extra, which ``Model()`` loads without its path."""
    try:
        return path == default_model_path()
    except ModelError:  # the extra is not installed
        return False


async def show_grammar(request: Request) -> Response:
    """Returns the text of a ready grammar."""
    name = request.path_params["name"]
    try:
        found = grammars.load(name)
    except GrammarError as error:
        raise ApiError(f"{error}.", status=404, param="name", code="grammar_not_found") from error
    return JSONResponse({"name": name, "kind": "lark", "text": found.text})


def _make_writer(asked: Asked, _: ServedModel, answers: Answers) -> RunWriter:
    return RunWriter(answers.plans[0], is_json=isinstance(asked.question.schema, str))


class Check(Inspecting):
    """``POST /check``: errors, findings and numbers of tokens of a schema or grammar."""

    async def inspect(self, asked: CheckBody, served: ServedModel, session: Session) -> dict[str, Any]:
        """Returns the check; a limit of the sandbox is an error of the language."""
        if asked.language is None:
            return free_text()
        vocabulary = served.model.vocabulary
        try:
            return await session.run(vocabulary, check_here, asked.language, vocabulary.fingerprint)
        except LimitError as error:
            return refused(str(error))


class Explanation(Inspecting):
    """``POST /explain``: how far a text matches, and what could follow."""

    async def inspect(self, asked: ExplainBody, served: ServedModel, session: Session) -> dict[str, Any]:
        """Returns the explanation. Raises ``ApiError``."""
        if asked.language is None:
            raise missing(FIELD)
        vocabulary = served.model.vocabulary
        assert vocabulary.encode is not None
        text, n_ctx = asked.text.encode(), served.model.n_ctx
        if len(text) > n_ctx * longest_token(vocabulary):
            fit = f"more than fit into the {n_ctx} tokens of the context"
            message = f"Invalid 'text': it has {len(text)} bytes, {fit}."
            raise FieldError(message, param="text", code="string_above_max_length")
        tokens = await self._serving.generator.run_in_thread(partial(vocabulary.encode, text))
        given = asked.language, asked.text, tokens, vocabulary.fingerprint
        try:
            return await session.run(vocabulary, explain_here, *given)
        except LimitError as error:
            raise wrong_language(error) from error


class AtPlace(Inspecting):
    """``POST /budget`` and ``POST /why``: an endpoint about a place of an answer at hand.

    ``look``: function that returns what is asked of a matcher.
    """

    def __init__(
        self, serving: Serving, body: type[Body], look: Callable[[Plan, PlaceRequest], dict[str, Any]]
    ) -> None:
        super().__init__(serving, body)
        self._look = look

    async def inspect(self, asked: PlaceRequest, served: ServedModel, session: Session) -> dict[str, Any]:
        """Compiles the language of the answer, and returns what is asked. Raises ``ApiError``."""
        generator = self._serving.generator
        _require_tokens(asked, served)
        [plan] = await generator.prepare(served, (asked.question,), session)
        try:
            return await generator.run_in_thread(partial(self._look, plan, asked))
        except LimitError as error:
            raise wrong_language(error) from error


def _require_tokens(asked: PlaceRequest, served: ServedModel) -> None:
    """Raises ``ApiError`` for token ids that no answer of the model has, and for too many."""
    n_vocab, n_ctx, eos = served.model.vocabulary.n_vocab, served.model.n_ctx, served.model.vocabulary.eos
    if len(asked.tokens) > n_ctx:
        message = f"Invalid 'tokens': there are {len(asked.tokens)}, and the model's context holds {n_ctx}."
        raise FieldError(message, param="tokens", code="array_above_max_length")
    if not set(eos).isdisjoint(asked.tokens):
        raise invalid("tokens", "the end of generation is among them; leave it out.")
    places = {**{f"tokens[{index}]": token for index, token in enumerate(asked.tokens)}, "token": asked.token}
    for place, token in places.items():
        if token >= n_vocab:
            raise invalid(place, f"the model has {n_vocab} tokens, and none with the id {token}.")


PLAYGROUND = Dialect(
    _routes,
    (GenerationBody, check_here),
    lambda path, _: path.startswith(API),
    stream_error=RunWriter.failed,
    is_open=is_open,
)
"""The page that shows answers token by token, and its endpoint."""
