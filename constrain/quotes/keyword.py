"""The keyword ``x-quote``, and the sources that it names.

The texts of sources travel inside the schema, in two keywords of its root: ``x-sources`` are those of the schema's
author, ``x-given-sources`` those of a call. So a schema's text says all that its grammar depends on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from constrain.arguments import lone_surrogate
from constrain.errors import LimitError
from constrain.language.schema_text import may_have_keyword

QUOTE, SOURCES, GIVEN_SOURCES = "x-quote", "x-sources", "x-given-sources"

PROMPT = "prompt"
"""Name of the source of quotes that name none: the texts of the user's messages."""

MAX_QUOTE_CHARACTERS = 1_000_000
"""Characters of all texts of one source of quotes; the kernel has the same limit."""

Texts: TypeAlias = tuple[str, ...]
"""The texts of one source; a quote lies within one of them."""


class QuoteKeyword(NamedTuple):
    """The value of ``x-quote``: see ``constrain.Quote``."""

    source: str = PROMPT
    whole_words: bool = False
    min_length: int = 1
    max_length: int | None = None
    fold: bool = False


_OPTIONS = {"source": str, "whole_words": bool, "min_length": int, "max_length": int, "fold": bool}


def read_keyword(value: object) -> QuoteKeyword:
    """Returns the value of ``x-quote``: true, the name of a source, or an object with options.

    Raises TypeError and ValueError.
    """
    if value is True:
        return QuoteKeyword()
    if isinstance(value, str):
        return QuoteKeyword(value)
    if not isinstance(value, Mapping):
        raise TypeError(f"{QUOTE} must be true, the name of a source, or an object of options, not {value!r:.80}")
    for name, given in value.items():
        if name not in _OPTIONS:
            raise ValueError(f"{QUOTE} has no option {name!r:.80}; there are {', '.join(_OPTIONS)}")
        wanted = _OPTIONS[name]
        if not isinstance(given, wanted) or isinstance(given, bool) != (wanted is bool):
            raise ValueError(f"{name} of {QUOTE} must be of the type {wanted.__name__}, not {given!r:.80}")
    keyword = QuoteKeyword(**value)
    if keyword.min_length < 0:
        raise ValueError(f"min_length of {QUOTE} is {keyword.min_length}; it must be 0 or more")
    if keyword.max_length is not None and keyword.max_length < keyword.min_length:
        least, most = keyword.min_length, keyword.max_length
        raise ValueError(f"max_length of {QUOTE} is {most}, which is less than min_length, {least}")
    return keyword


def read_sources(given: object, name: str = "sources") -> dict[str, Texts]:
    """Returns sources by name: each is a text or a list of texts. Raises TypeError, ValueError and LimitError."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must map the names of sources to texts, not {given!r:.80}")
    return {_name(key, name): _texts(texts, f"{name}[{key!r}]") for key, texts in given.items()}


def _name(key: object, name: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{name} has the name {key!r:.80}, which is not a text")
    return key


def _texts(given: object, place: str) -> Texts:
    texts = (given,) if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{place} must be a text or a list of texts, not {given!r:.80}")
    for text in texts:
        found = lone_surrogate(text)
        if found is not None:
            raise ValueError(f"{place} has a lone surrogate at position {found}, which no answer can contain")
    if sum(map(len, texts)) > MAX_QUOTE_CHARACTERS:
        raise LimitError(
            f"{place} has more characters than MAX_QUOTE_CHARACTERS = {MAX_QUOTE_CHARACTERS}; quote from a part of it"
        )
    return tuple(texts)


def may_have_quotes(schema: str) -> bool:
    """Returns whether the text of a schema may have quotes."""
    return may_have_keyword(schema, QUOTE)


def has_quotes(document: object) -> bool:
    """Returns whether a parsed schema has the keyword anywhere."""
    return any(True for _ in _given_quotes(document))


def has_folded_quotes(document: object) -> bool:
    """Returns whether a parsed schema has quotes with ``fold``."""
    return any(isinstance(given, Mapping) and given.get("fold") is True for given in _given_quotes(document))


def _given_quotes(document: object) -> Iterator[object]:
    waiting = [document]
    while waiting:
        place = waiting.pop()
        if isinstance(place, Mapping):
            if QUOTE in place:
                yield place[QUOTE]
            waiting += place.values()
        elif isinstance(place, list):
            waiting += place


def with_sources(schema: str, sources: Mapping[str, Texts]) -> str:
    """Returns the text of a schema, an object, with the sources of a call."""
    return f'{{"{GIVEN_SOURCES}": {json.dumps(sources)}, {schema.lstrip()[1:]}'


def sources_of(root: object) -> dict[str, Texts]:
    """Returns the sources in the root of a schema; the author's come first. Raises as ``read_sources`` does."""
    if not isinstance(root, Mapping):
        return {}
    return {
        **read_sources(root.get(GIVEN_SOURCES, {}), GIVEN_SOURCES),
        **read_sources(root.get(SOURCES, {}), SOURCES),
    }
