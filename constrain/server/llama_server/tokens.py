"""Tokens of prompts whose texts may name special tokens, and conversions between texts and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.chat.prompt.guarding import trusted_tokens
from constrain.server.http.errors import ApiError
from constrain.server.llama_server.request import PLACES, Gap
from constrain.server.requests.question import Question
from constrain.server.requests.texts import text_tokens
from constrain.server.serving.generation import refuse_endless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.llama.model import Model
    from constrain.server.llama_server.request import ContinuationRequest, DetokenizeBody, TokenizeBody

_BETWEEN_FILES = "\n\n--- snippet ---\n\n"
"""Text in front of a file, for models without a token for it."""


def prompt_tokens(model: Model, asked: ContinuationRequest) -> tuple[int, ...]:
    """Returns the token ids of a request's prompt. Raises ``ApiError``."""
    text = "".join(piece for piece in asked.pieces if isinstance(piece, str))
    refuse_endless(Question(text, None, {}, PLACES), model)
    found: list[int] = []
    for piece in asked.pieces:
        if isinstance(piece, int):
            found.append(piece)
        else:
            found += _gap(model, piece) if isinstance(piece, Gap) else _text(model, piece, names=asked.names_tokens)
    return tuple(model.tokenizer.with_bos(found))


def describe_tokens(model: Model, asked: TokenizeBody) -> dict[str, Any]:
    """Returns the answer of ``/tokenize`` for a text."""
    tokens = _text(model, asked.text, names=asked.parse_special is not False)
    if asked.begins:
        tokens = model.tokenizer.with_bos(tokens)
    return describe_ids(model, tokens, with_pieces=asked.with_pieces or False)


def describe_ids(model: Model, tokens: Sequence[int], *, with_pieces: bool) -> dict[str, Any]:
    """Returns tokens, and their texts if wanted, with the members that vLLM's clients read."""
    found = [_piece(model, token) if with_pieces else token for token in tokens]
    return {"tokens": found, "count": len(tokens), "max_model_len": model.n_ctx}


def describe_text(model: Model, asked: DetokenizeBody) -> dict[str, Any]:
    """Returns the answer of ``/detokenize``; vLLM's clients read ``prompt``.

    Raises ``FieldError`` for ids that the model does not have.
    """
    text = model.tokenizer.show(text_tokens(model, tuple(asked.tokens), "tokens") if asked.tokens else ())
    return {"content": text, "prompt": text}


def _text(model: Model, text: str, *, names: bool) -> list[int]:
    return trusted_tokens(model.tokenizer, text) if names else model.tokenizer.tokenize(text)


def _gap(model: Model, part: Gap) -> list[int]:
    token = model.tokenizer.infill[part.value]
    if token >= 0:
        return [token]
    if part is Gap.FILE:
        return model.tokenizer.tokenize(_BETWEEN_FILES)
    raise ApiError(
        "This model has no tokens for filling a gap in a text. Ask /completion for the text that follows a prompt, or "
        "serve a model that was trained to fill gaps.",
        param="model",
        code="not_supported",
    )


def _piece(model: Model, token: int) -> dict[str, Any]:
    """Returns a token with its text, or with its bytes where they are no text."""
    if token in model.vocabulary.special:
        return {"id": token, "piece": model.tokenizer.name(token)}
    written = model.vocabulary.token_bytes(token)
    try:
        return {"id": token, "piece": written.decode()}
    except UnicodeDecodeError:
        return {"id": token, "piece": list(written)}
