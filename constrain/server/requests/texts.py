"""Texts of a request, which may be token ids: a prompt to continue, or an input to embed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.fields.values import FieldError, array, invalid, wrong_type

if TYPE_CHECKING:
    from constrain.llama.model import Model

Text = str | tuple[int, ...]
"""A text, or its token ids."""


def read_texts(given: object, name: str, most: int | None = None) -> tuple[Text, ...]:
    """Reads one or several texts, at most ``most``: a string, token ids, a list of strings, or a list of id lists."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list):
        raise wrong_type(name, "a string or an array", given)
    if not given:
        raise _empty(name)
    if isinstance(given[0], int):
        return (_ids(given, name),)
    return tuple(_text(item, given[0], f"{name}[{index}]") for index, item in enumerate(array(given, name, most)))


def text_tokens(model: Model, text: Text, param: str, *, whole: bool = False) -> list[int]:
    """Returns the tokens of a text; no text in it becomes a special token, and token ids stay unchanged.

    ``whole``: whether the text is complete, so that the model's end token follows it, if the model has one. Raises
    ``ApiError`` for ids that the model does not have, and for an empty result.
    """
    tokens = model.text_tokens(text, whole=whole) if isinstance(text, str) else list(text)
    n_vocab = model.vocabulary.n_vocab
    unknown = [token for token in tokens if token >= n_vocab]
    if unknown:
        there = f"the model has {n_vocab} tokens, and none has the id {unknown[0]}"
        raise invalid(param, f"{there}. Ids are those of the model's own tokenizer.")
    if not tokens:
        raise invalid(param, "it has no tokens.")
    return tokens


def _text(item: object, first: object, place: str) -> Text:
    if isinstance(item, str) and isinstance(first, str):
        return item
    if isinstance(item, list) and isinstance(first, list):
        return _ids(item, place)
    raise wrong_type(place, "an array of integers" if isinstance(first, list) else "a string", item)


def _ids(given: list[object], place: str) -> tuple[int, ...]:
    if not given:
        raise _empty(place)
    found = []
    for index, token in enumerate(given):
        if isinstance(token, bool) or not isinstance(token, int):
            raise wrong_type(f"{place}[{index}]", "an integer", token)
        if token < 0:
            message = f"Invalid '{place}[{index}]': a token's id is 0 or more."
            raise FieldError(message, param=f"{place}[{index}]", code="integer_below_min_value")
        found.append(token)
    return tuple(found)


def _empty(place: str) -> FieldError:
    return FieldError(
        f"Invalid '{place}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        param=place,
        code="empty_array",
    )
