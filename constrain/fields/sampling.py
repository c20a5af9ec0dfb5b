"""Fields of requests and batch lines for sampling (``temperature``, ``seed``, ``stop``...), ``max_tokens`` and more."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from pydantic import AfterValidator, create_model

from constrain.fields.declared import Fields, Flag, Reads, one_among, within
from constrain.fields.values import (
    FieldError,
    array,
    integer,
    invalid,
    mapping,
    number,
    one_of,
    refuse_together,
    wrong_type,
)
from constrain.generation.options import TOOLS_SHOWN, WHOLE_PROMPT
from constrain.llama.decoding.ranges import seed_of
from constrain.llama.decoding.sampling import LISTS, OPTIONS, SAMPLERS, check_breakers, sampler_names

if TYPE_CHECKING:
    from constrain.generation.options import ChatOptions

Ranges: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Least and greatest value of fields, by name; ``None`` for no limit.

The options themselves have ranges, too, which ``generation.options`` checks. Those of a service can be narrower.
"""

MAX_TOKEN_LIMIT = 2**31 - 1
"""Tokens of a limit on tokens: more than any context holds. A greater limit is lowered to this."""

MAX_TOKEN_ID = 2**31 - 1
"""The greatest token id that a field may have; which ids a model has is checked when the request meets it."""

_IN_MEMORY = ("in_memory", "in-memory")
"""Values of ``prompt_cache_retention`` for prompts that are not to be written to disk: OpenAI has used both."""

FRESH_SEED = -1
"""Value of ``seed`` for a fresh one, as other servers read it."""

_BIAS_KEY = r"[0-9]{1,9}"
"""Pattern of the keys of ``logit_bias``: token ids in decimal digits."""

UNLIMITED = -1
"""Value of limits on tokens, and of ``top_k``, for no limit, as other servers read it."""

_OWN_TEXTS = ("cache_prompt", "certificate", "confidence", "draft", "prefix", "show_schema", "sources", "unbias")

_SAME = frozenset((*OPTIONS, *LISTS, "logit_bias", "stop", "tools_shown", *_OWN_TEXTS))
"""Fields whose values are options of the same name."""


class OptionFields(Fields):
    """Fields that say how an answer is written."""

    def plain_options(self) -> ChatOptions:
        """Returns the options that are fields of the same name."""
        found = {name: value for name, value in self.__dict__.items() if value is not None and name in _SAME}
        return cast("ChatOptions", found)


def sampling_fields(ranges: Ranges) -> Any:
    """Returns the fields for sampling, a class of ``OptionFields``, with the ranges of a service."""
    limits = {name: ranges.get(name, (None, None)) for name in OPTIONS}
    kinds: dict[str, Any] = {
        name: Annotated[int if option.is_whole else float, within(limits[name])] for name, option in OPTIONS.items()
    }
    top_k = {"type": "integer", "minimum": UNLIMITED, "maximum": limits["top_k"][1]}
    kinds |= {
        "seed": Annotated[int, within(limits["seed"]), seeds(FRESH_SEED)],
        "top_k": Annotated[Any, Reads(partial(_top_k, limits=limits["top_k"]), top_k)],
        "dry_sequence_breakers": Annotated[Any, Reads(_breakers, _BREAKERS)],
        "samplers": Annotated[Any, Reads(_samplers, _STEPS)],
    }
    members: dict[str, Any] = {name: (kind, None) for name, kind in kinds.items()}
    return create_model("SamplingFields", __base__=OptionFields, **members)


def seeds(*fresh: int) -> AfterValidator:
    """Returns the declaration of a seed, which becomes one of the sampler's. ``fresh``: values for a fresh one."""
    return AfterValidator(lambda seed: None if seed in fresh else seed_of(seed))


def stops(most: int | None) -> Reads:
    """Returns the declaration of texts that end an answer, at most ``most``."""
    text = {"type": "string", "minLength": 1}
    shown = {"anyOf": [text, {"type": "array", "items": text, "maxItems": most}]}
    return Reads(partial(read_stop, most=most), shown)


def biases(limits: tuple[Any, Any]) -> Reads:
    """Returns the declaration of numbers in a range that are added to the logits of tokens."""
    bias = {"type": "number", "minimum": limits[0], "maximum": limits[1]}
    shown = {"type": "object", "propertyNames": {"pattern": f"^{_BIAS_KEY}$"}, "additionalProperties": bias}
    return Reads(partial(_logit_bias, limits=limits), shown)


_BREAKERS = {"type": "array", "items": {"type": "string"}, "maxItems": LISTS["dry_sequence_breakers"]}
_NAMES = {"type": "array", "items": {"enum": list(SAMPLERS)}, "maxItems": LISTS["samplers"]}
_STEPS = {"anyOf": [_NAMES, {"type": "string"}]}


def _top_k(given: object, name: str, limits: tuple[Any, Any]) -> int | None:
    return 0 if given == UNLIMITED else integer({name: given}, name, *limits)


def _breakers(given: object, name: str) -> list[str]:
    return _texts(given, name, lambda texts: check_breakers(tuple(texts)))


def _samplers(given: object, name: str) -> list[str]:
    """Reads the steps of the choice: names, or llama.cpp's text with a letter for each. Raises ``FieldError``."""
    listed = list(given) if isinstance(given, str) else given
    found = _texts(listed, name, lambda texts: sampler_names(given if isinstance(given, str) else texts))
    return list(sampler_names(given if isinstance(given, str) else found))


def _texts(given: object, name: str, check: Callable[[list[str]], object]) -> list[str]:
    """Returns a list of texts. Raises ``FieldError``, also if ``check`` raises ``ValueError``."""
    texts = array(given, name)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise wrong_type(f"{name}[{index}]", "a string", text)
    try:
        check(texts)
    except ValueError as error:
        raise invalid(name, f"{error}.") from error
    return texts


def read_stop(given: object, name: str, most: int | None) -> list[str]:
    """Reads the texts that end an answer, at most ``most``. Raises ``FieldError``."""
    stops = [given] if isinstance(given, str) else array(given, name, most)
    for index, stop in enumerate(stops):
        if not isinstance(stop, str):
            raise wrong_type(f"{name}[{index}]", "a string", stop)
        if not stop:
            raise invalid(name, "an empty string would end every answer at once.")
    if sum(map(len, stops)) > 16_384:
        raise FieldError(
            f"Invalid '{name}': the texts have more than 16384 characters together. Send shorter ones.",
            param=name,
            code="string_above_max_length",
        )
    return stops


def _logit_bias(given: object, name: str, limits: tuple[Any, Any]) -> dict[int, float]:
    biases = mapping(given, name)
    for token in biases:
        if not re.fullmatch(_BIAS_KEY, token):
            raise FieldError(f"Invalid key in '{name}': {token[:40]!r}. Expected the number of a token.", param=name)
    named = {f"{name}.{token}": bias for token, bias in biases.items()}
    values = [number(named, place, *limits) or 0.0 for place in named]
    return {int(token): value for token, value in zip(biases, values, strict=True)}


def _limit(given: object, name: str, least: int) -> int | None:
    return UNLIMITED if given == UNLIMITED else integer({name: given}, name, least)


Limit: TypeAlias = Annotated[
    int | None, Reads(partial(_limit, least=1), {"type": "integer", "minimum": UNLIMITED, "not": {"const": 0}})
]
"""A limit on tokens."""

LimitOrNone: TypeAlias = Annotated[
    int | None, Reads(partial(_limit, least=0), {"type": "integer", "minimum": UNLIMITED})
]
"""A limit on tokens, which may be 0."""


def smallest_limit(limits: Mapping[str, int | None]) -> tuple[ChatOptions, str]:
    """Returns the smallest of several limits on tokens, and the name of its field.

    Without a limit, there is no option, and the name is the last one. ``UNLIMITED`` is the rest of the context:
    ``None``.
    """
    given = {name: min(most, MAX_TOKEN_LIMIT) for name, most in limits.items() if most not in (None, UNLIMITED)}
    if not given:
        return ({"max_tokens": None} if UNLIMITED in limits.values() else {}), [*limits][-1]
    name = min(given, key=lambda name: given[name])
    return {"max_tokens": given[name]}, name


def read_token_ids(given: object, name: str) -> list[int]:
    """Reads a list of token ids. Raises ``FieldError``."""
    tokens = {f"{name}[{index}]": token for index, token in enumerate(array(given, name))}
    found = [integer(tokens, place, 0, MAX_TOKEN_ID) for place in tokens]
    if None in found:
        raise wrong_type(f"{name}[{found.index(None)}]", "an integer", None)
    return [token for token in found if token is not None]


def _prefix(given: object, name: str) -> str | list[int] | None:
    if isinstance(given, str):
        return given or None
    if not isinstance(given, list):
        raise wrong_type(name, "a string or an array", given)
    return read_token_ids(given, name)


Prefix: TypeAlias = Annotated[
    str | list[int] | None, Reads(_prefix, str | list[Annotated[int, within((0, MAX_TOKEN_ID))]])
]
"""The beginning of an answer: a text, or token ids."""


def _cache_prompt(given: object, name: str) -> object:
    if isinstance(given, bool) or given == WHOLE_PROMPT:
        return given
    if isinstance(given, str):
        one_of(given, (WHOLE_PROMPT,), name)
    raise wrong_type(name, f"a boolean or '{WHOLE_PROMPT}'", given)


class KeepingFields(OptionFields):
    """Fields that say what of the prompt is kept on disk, and whether the answer comes with its proof."""

    cache_prompt: Annotated[Literal[True, False, "whole"] | None, Reads(_cache_prompt, bool | Literal["whole"])] = None
    prompt_cache_retention: Annotated[bool, Reads(lambda given, _: given in _IN_MEMORY, str)] = False

    def plain_options(self) -> ChatOptions:
        """Returns the options; a retention in memory keeps nothing on disk."""
        found = super().plain_options()
        if self.prompt_cache_retention:
            found.setdefault("cache_prompt", False)
        return found


def _draft(given: object, name: str) -> bool | int:
    if isinstance(given, bool):
        return given
    if not isinstance(given, int):
        raise wrong_type(name, "a boolean or an integer", given)
    return min(integer({name: given}, name, 1) or 1, MAX_TOKEN_LIMIT)


def _sources(given: object, name: str) -> dict[str, Any]:
    sources = mapping(given, name)
    for key, texts in sources.items():
        for index, text in enumerate([texts] if isinstance(texts, str) else array(texts, f"{name}.{key}")):
            if not isinstance(text, str):
                raise wrong_type(f"{name}.{key}[{index}]", "a string", text)
    return sources


class DraftFields(OptionFields):
    """The field that asks for a draft: whether, or of how many tokens."""

    draft: Annotated[bool | int | None, Reads(_draft, {"type": ["boolean", "integer"], "minimum": 1})] = None


class ToolsShownFields(OptionFields):
    """The field that says what the prompt shows of the tools."""

    tools_shown: Annotated[str | None, one_among(TOOLS_SHOWN)] = None


class ShowingFields(ToolsShownFields):
    """Fields for conversations: probabilities of an answer's parts, the schema in the prompt, texts to quote."""

    confidence: Flag = None
    show_schema: Flag = None
    sources: Annotated[dict[str, Any] | None, Reads(_sources, dict[str, str | list[str]])] = None

    def require_quotes(self, *, has_schema: bool) -> None:
        """Raises ``FieldError`` for texts to quote from if no answer may have quotes."""
        refuse_together(sources=self.sources is not None, json_schema=has_schema, tools=has_schema)
