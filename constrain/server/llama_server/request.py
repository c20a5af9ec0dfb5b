"""The bodies of llama-server's endpoints, checked: texts to continue, texts with a gap, texts and tokens to convert."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema

from constrain.fields.declared import Fields, Flag, Reads, Text, within
from constrain.fields.sampling import MAX_TOKEN_ID, read_token_ids, seeds, smallest_limit, stops
from constrain.fields.values import array, boolean, integer, mapping, refuse_together, required_text, wrong_type
from constrain.server.http.account import warn
from constrain.server.http.errors import convert_field_errors
from constrain.server.requests.declared import AskingBody, UnnamedBody
from constrain.server.requests.limits import RANGES
from constrain.server.requests.peers import ContentFields
from constrain.server.requests.places import Places
from constrain.server.requests.question import Asked, Question
from constrain.server.requests.refusals import ON_ALL_ENDPOINTS, unsupported
from constrain.server.requests.streams import ProgressFields, Streaming

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from constrain.generation.options import ChatOptions
    from constrain.server.requests.declared import Body
    from constrain.server.settings import Settings

PLACES = Places("prompt", "n_predict")

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


def _read_prompt(given: object, name: str) -> tuple[Piece, ...]:
    """Reads a text, token ids, or a list of both."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list):
        raise wrong_type(name, "a string or an array", given)
    if len(given) > 1 and all(isinstance(piece, str) for piece in given):
        raise unsupported(name, "It has several prompts; send a request for each, or ask /v1/completions.")
    for index, piece in enumerate(given):
        place = f"{name}[{index}]"
        if not isinstance(piece, str) and integer({place: piece}, place, 0, MAX_TOKEN_ID) is None:
            raise wrong_type(place, "a string or an integer", piece)
    return tuple(given)


class _File(Fields):
    filename: Text = None
    text: str


def _read_files(given: object, name: str) -> list[_File]:
    listed = enumerate(array(given, name, RANGES["input_extra"][1]))
    return [_File.read(mapping(each, f"{name}[{index}]"), f"{name}[{index}].") for index, each in listed]


_COUNT = {"type": "integer", "minimum": 0}
_PIECES = {"type": "array", "items": {"anyOf": [{"type": "string"}, _COUNT]}}


class _AskingBody(ContentFields, ProgressFields, AskingBody, UnnamedBody):
    refused = REFUSED

    seed: Annotated[int | None, within(RANGES["seed"]), seeds(-1, 2**32 - 1)] = None
    temperature: Annotated[float | None, within((0, None))] = None
    stop: Annotated[list[str] | None, stops(RANGES["stop_sequences"][1])] = None
    n_predict: int | None = None
    max_tokens: int | None = None
    return_tokens: Flag = None
    stream: Flag = None

    def continued(self, pieces: tuple[Piece, ...], *, names_tokens: bool) -> ContinuationRequest:
        """Returns the request. Negative limits are none."""
        limits = {"max_tokens": self.max_tokens, "n_predict": self.n_predict}
        given = {name: None if most is None or most < 0 else most for name, most in limits.items()}
        options: ChatOptions = {**self.plain_options(), **smallest_limit(given)[0]}
        question = Question((), self.content({}), options, PLACES)
        streaming = Streaming(self.stream or False, tells_progress=self.return_progress or False)
        return ContinuationRequest(
            self.model, (question,), streaming, pieces, names_tokens, self.return_tokens or False
        )


class CompletionBody(_AskingBody):
    """The body of ``/completion``."""

    prompt: Annotated[tuple[Piece, ...], Reads(_read_prompt, {"anyOf": [{"type": "string"}, _PIECES]})]

    def request(self, _: Settings) -> ContinuationRequest:
        """Returns the request. Raises ``FieldError``."""
        return self.continued(self.prompt, names_tokens=True)


class InfillBody(_AskingBody):
    """The body of ``/infill``: the texts on both sides of the gap."""

    input_prefix: str
    input_suffix: str
    input_extra: Annotated[list[_File] | None, Reads(_read_files, list[_File])] = None
    prompt: Text = None

    @classmethod
    def read(cls, given: Mapping[str, Any], place: str = "") -> Self:
        """Reads a body, without what only sharpens the text in a gap. Raises ``FieldError``."""
        return super().read(_without_infill(given), place)

    def request(self, _: Settings) -> ContinuationRequest:
        """Returns the request. Raises ``FieldError``."""
        pieces: list[Piece] = []
        for file in self.input_extra or ():
            pieces += [Gap.FILE, f"{file.filename or ''}\n{file.text}"]
        pieces += [Gap.PREFIX, self.input_prefix + (self.prompt or ""), Gap.SUFFIX, self.input_suffix, Gap.MIDDLE]
        return self.continued(tuple(pieces), names_tokens=False)


class TokenizeBody(UnnamedBody):
    """The body of ``/tokenize``, in llama-server's form or vLLM's, whose text is ``prompt``."""

    content: Text = None
    prompt: Text = None
    add_special: Annotated[Any, WithJsonSchema({"type": "boolean"})] = None  # only one of the two is read
    add_special_tokens: Annotated[Any, WithJsonSchema({"type": "boolean"})] = None
    parse_special: Flag = None
    with_pieces: Flag = None

    @classmethod
    def read(cls, given: Mapping[str, Any], place: str = "") -> Self:
        """Reads a body. Raises ``FieldError``, also for a body without a text."""
        found = super().read(given, place)
        boolean(given, "add_special" if found.prompt is None else "add_special_tokens")
        if found.prompt is None:
            required_text(given, "content")
        return found

    @property
    def text(self) -> str:
        """The text."""
        return self.prompt or self.content or ""

    @property
    def begins(self) -> bool:
        """Whether the begin-of-text token comes first: in vLLM's form unless the request says otherwise."""
        return bool(self.add_special) if self.prompt is None else self.add_special_tokens is not False


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """A request for the tokens of the prompt that a chat completion has.

    Attributes:
        asked: the request for the completion.
        with_pieces: whether the answer has the text of each token.
    """

    asked: Asked
    with_pieces: bool

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.asked.model


@convert_field_errors()
def read_tokenize(chat: type[Body], given: Mapping[str, Any], settings: Settings) -> TokenizeBody | PromptTokens:
    """Reads a body of ``/tokenize``: a text, or the messages and tools of a chat completion, whose body is ``chat``.

    Raises ``ApiError``.
    """
    if given.get("messages") is None:
        return TokenizeBody.read(given)
    refuse_together(messages=True, **{name: given.get(name) is not None for name in ("content", "prompt")})
    return PromptTokens(chat.ask(given, settings), boolean(given, "with_pieces") or False)


class DetokenizeBody(UnnamedBody):
    """The body of ``/detokenize``."""

    tokens: Annotated[list[int], Reads(read_token_ids, {"type": "array", "items": _COUNT})]


@dataclass(frozen=True, slots=True)
class ContinuationRequest(Asked):
    """A request for a continuation, or for the text in a gap. Its question has a prompt once the model has made it.

    Attributes:
        pieces: pieces of the prompt.
        names_tokens: whether names of special tokens in texts stand for these tokens.
        returns_tokens: whether the answer has its token ids.
    """

    pieces: tuple[Piece, ...]
    names_tokens: bool
    returns_tokens: bool


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
