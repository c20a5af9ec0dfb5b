"""``POST /v1/completions``: the dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from constrain.server.completions.request import CompletionBody
from constrain.server.completions.response import CompletionWriter
from constrain.server.serving.answering import Answering
from constrain.server.serving.dialect import Dialect

if TYPE_CHECKING:
    from constrain.server.serving.endpoint import Serving


def _routes(serving: Serving) -> list[Route]:
    return [Route("/v1/completions", Answering(serving, CompletionBody, CompletionWriter), methods=["POST"])]


COMPLETIONS = Dialect(_routes, (CompletionBody,))
"""OpenAI's text completions."""
