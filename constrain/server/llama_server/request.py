"""The bodies of llama-server's endpoints, checked: texts to continue, texts with a gap, texts and tokens to convert."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from constrain.fields.sampling import (
    MAX_TOKEN_ID,
    read_cache_prompt,
    read_max_tokens,
    read_sampling,
    read_token_ids,
)
from constrain.fields.values import array, boolean, integer, mapping, missing, optional_text, required_text, wrong_type
from constrain.server.http.account import warn
from constrain.server.http.errors import convert_field_errors
from constrain.server.requests.limits import RANGES
from constrain.server.requests.peers import read_content
from constrain.server.requests.places import Places
from constrain.server.requests.question import Question
from constrain.server.requests.refusals import ON_ALL_ENDPOINTS, refuse_fields, unsupported
from constrain.server.requests.streams import Streaming, read_stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.requests.formats import Format
    from constrain.server.settings import Settings

PLACES = Places("prompt", "n_predict")

_RANGES = {**RANGES, "temperature": (0, None), "stop": RANGES["stop_sequences"]}

_RANDOM_SEEDS = (-1, 2**32 - 1)
"""Values of ``seed`` for a fresh seed."""

REFUSED = {
    **{name: advice for name, advice in ON_ALL_ENDPOINTS.items() if name not in ("n_predict", "t_max_predict_ms")},
    "image_data": "This server reads text only.",
    "lora": "This server changes no weights for a request.",
    "messages": "Use 'prompt', or ask /v1/chat/completions.",
    "n": "Ask /v1/completions.",
    "n_cmpl": "Ask /v1/completions.",
    "n_indent": "Use a grammar that says how lines begin.",
    "n_probs": "Ask /v1/completions with 'logprobs'.",
    "response_format": "Use 'json_schema' or 'grammar', or ask /v1/completions.",
    "tools": "Ask /v1/chat/completions.",
}
"""Fields that are refused, with the alternative."""


class Gap(Enum):
    """A token of models that fill a gap in a text."""

    PREFIX = "pre"
    SUFFIX = "suf"
    MIDDLE = "mid"
    FILE = "sep"


Piece = str | int | Gap
"""A piece of a prompt: a text, a token id, or a token for a gap."""


@dataclass(frozen=True, slots=True)
class ContinuationRequest:
    """The checked fields of a request for a continuation, or for the text in a gap.

    Attributes:
        model: name of the model; ``""`` for the only one.
        pieces: pieces of the prompt.
        names_tokens: whether names of special tokens in texts stand for these tokens.
        content: format that the answer must match; ``None`` for any text.
        options: options for the generation.
        returns_tokens: whether the answer has its token ids.
        streaming: how the answer is sent.
        prompt: token ids of the prompt, once the model has made them.
    """

    model: str
    pieces: tuple[Piece, ...]
    names_tokens: bool
    content: Format | None
    options: ChatOptions
    returns_tokens: bool
    streaming: Streaming
    prompt: tuple[int, ...] = ()

    @property
    def questions(self) -> tuple[Question, ...]:
        """The question, as a tuple of one."""
        return (Question(self.prompt, self.content, self.options, PLACES),)


@dataclass(frozen=True, slots=True)
class TokensRequest:
    """The checked fields of a request that converts a text into tokens, or tokens into a text.

    Attributes:
        model: name of the model; ``""`` for the only one.
        content: text, or token ids.
        names_tokens: whether names of special tokens in the text stand for these tokens.
        adds_special: whether the begin-of-text token comes first, if the model uses one.
        with_pieces: whether each token is described with its text.
    """

    model: str
    content: str | tuple[int, ...]
    names_tokens: bool = True
    adds_special: bool = False
    with_pieces: bool = False


@convert_field_errors()
def read_completion(body: Mapping[str, Any], settings: Settings) -> ContinuationRequest:  # noqa: ARG001 - as all readers
    """Reads a parsed body of ``/completion``. Raises ``ApiError`` with the place."""
    return _read(body, _read_prompt(body.get("prompt")), names_tokens=True)


@convert_field_errors()
def read_infill(body: Mapping[str, Any], settings: Settings) -> ContinuationRequest:  # noqa: ARG001 - as all readers
    """Reads a parsed body of ``/infill``: the texts on both sides of the gap. Raises ``ApiError`` with the place."""
    before, behind = (required_text(body, name) for name in ("input_prefix", "input_suffix"))
    pieces: list[Piece] = []
    extra = body.get("input_extra")
    for index, each in enumerate([] if extra is None else array(extra, "input_extra", RANGES["input_extra"][1])):
        where = f"input_extra[{index}]"
        file = mapping(each, where)
        name = optional_text(file, "filename", f"{where}.") or ""
        pieces += [Gap.FILE, f"{name}\n{required_text(file, 'text', f'{where}.')}"]
    pieces += [Gap.PREFIX, before + (optional_text(body, "prompt") or ""), Gap.SUFFIX, behind, Gap.MIDDLE]
    return _read(_without_infill(body), tuple(pieces), names_tokens=False)


@convert_field_errors()
def read_tokenize(body: Mapping[str, Any]) -> TokensRequest:
    """Reads a parsed body of ``/tokenize``, in llama-server's form or vLLM's. Raises ``ApiError`` with the place.

    vLLM's text is ``prompt``, and begins with the special tokens of the model unless ``add_special_tokens`` is false.
    """
    if body.get("messages") is not None:
        raise unsupported("messages", "Ask /apply-template for the prompt, and send it as 'content'.")
    is_prompt = body.get("prompt") is not None
    adds_special = boolean(body, "add_special_tokens") is not False if is_prompt else boolean(body, "add_special")
    return TokensRequest(
        optional_text(body, "model") or "",
        required_text(body, "prompt" if is_prompt else "content"),
        names_tokens=boolean(body, "parse_special") is not False,
        adds_special=adds_special or False,
        with_pieces=boolean(body, "with_pieces") or False,
    )


@convert_field_errors()
def read_detokenize(body: Mapping[str, Any]) -> TokensRequest:
    """Reads a parsed body of ``/detokenize``. Raises ``ApiError`` with the place."""
    given = body.get("tokens")
    if given is None:
        raise missing("tokens")
    return TokensRequest(optional_text(body, "model") or "", tuple(read_token_ids(given, "tokens")))


def _read(body: Mapping[str, Any], pieces: tuple[Piece, ...], *, names_tokens: bool) -> ContinuationRequest:
    refuse_fields(body, REFUSED)
    is_random = integer(body, "seed") in _RANDOM_SEEDS
    sampling = {name: value for name, value in body.items() if name != "seed"} if is_random else body
    options: ChatOptions = {**read_sampling(sampling, _RANGES), **read_cache_prompt(body)}
    limits = {name: integer(body, name) for name in ("n_predict", "max_tokens")}
    given = {name: most for name, most in limits.items() if most is not None and most >= 0}
    options |= read_max_tokens(given, "max_tokens", "n_predict")[0]
    return ContinuationRequest(
        optional_text(body, "model") or "",
        pieces,
        names_tokens,
        read_content(body, None, "response_format"),
        options,
        boolean(body, "return_tokens") or False,
        Streaming(read_stream(body)),
    )


def _without_infill(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a body without what only sharpens the text in a gap: the sampler ``infill``, and ``n_indent``."""
    given = body.get("samplers")
    if isinstance(given, list) and "infill" in given:
        warn("'samplers': 'infill' is left out: the model chooses by the other samplers.")
        body = {**body, "samplers": [name for name in given if name != "infill"]}
    if body.get("n_indent"):
        warn("'n_indent' has no effect: lines of the text may begin anywhere.")
        body = {name: value for name, value in body.items() if name != "n_indent"}
    return body


def _read_prompt(given: object) -> tuple[Piece, ...]:
    """Reads a text, token ids, or a list of both."""
    if given is None:
        raise missing("prompt")
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list):
        raise wrong_type("prompt", "a string or an array", given)
    if len(given) > 1 and all(isinstance(piece, str) for piece in given):
        raise unsupported("prompt", "It has several prompts; send a request for each, or ask /v1/completions.")
    for index, piece in enumerate(given):
        place = f"prompt[{index}]"
        if not isinstance(piece, str) and integer({place: piece}, place, 0, MAX_TOKEN_ID) is None:
            raise wrong_type(place, "a string or an integer", piece)
    return tuple(given)
