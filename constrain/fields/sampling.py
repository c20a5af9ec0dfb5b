"""Fields of requests and batch lines for sampling (``temperature``, ``seed``, ``stop``...), ``max_tokens`` and more."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from constrain.fields.values import FieldError, array, boolean, integer, mapping, number, one_of, wrong_type
from constrain.generation.options import WHOLE_PROMPT
from constrain.llama.decoding.ranges import seed_of
from constrain.llama.decoding.sampling import OPTIONS, check_breakers, sampler_names

if TYPE_CHECKING:
    from constrain.generation.options import ChatOptions

Ranges: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Least and greatest value of fields, by name; ``None`` for no limit. For ``stop``, of the number of texts.

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

BIAS_KEY = r"[0-9]{1,9}"
"""Pattern of the keys of ``logit_bias``: token ids in decimal digits."""

UNLIMITED = -1
"""Value of limits on tokens, and of ``top_k``, for no limit, as other servers read it."""

_NO_LIMITS = (None, None)


def read_sampling(body: Mapping[str, Any], ranges: Ranges) -> ChatOptions:
    """Reads the options for sampling and stop texts; those that are null or missing are left out.

    ``seed`` is mapped to one of the sampler's seeds. Raises ``FieldError``.
    """
    options: dict[str, Any] = {
        name: (integer if option.is_whole else number)(body, name, *ranges.get(name, _NO_LIMITS))
        for name, option in OPTIONS.items()
        if not (name == "top_k" and body.get(name) == UNLIMITED)
    }
    options |= {
        "top_k": options.get("top_k", 0),
        "seed": None if options["seed"] in (None, FRESH_SEED) else seed_of(options["seed"]),
        "stop": read_stop(body, "stop", ranges.get("stop", _NO_LIMITS)[1]),
        "logit_bias": _logit_bias(body.get("logit_bias"), *ranges.get("logit_bias", _NO_LIMITS)),
        "dry_sequence_breakers": _texts(body, "dry_sequence_breakers", lambda texts: check_breakers(tuple(texts))),
        "samplers": _samplers(body.get("samplers")),
    }
    found: ChatOptions = {name: value for name, value in options.items() if value is not None}  # type: ignore[assignment]
    return found


def _texts(body: Mapping[str, Any], name: str, check: Callable[[list[str]], object]) -> list[str] | None:
    """Returns a list of texts; ``None`` without the field. Raises ``FieldError``, also if ``check`` does."""
    if body.get(name) is None:
        return None
    texts = array(body[name], name)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise wrong_type(f"{name}[{index}]", "a string", text)
    try:
        check(texts)
    except ValueError as error:
        raise FieldError(f"Invalid '{name}': {error}.", param=name, code="invalid_value") from error
    return texts


def _samplers(given: object) -> list[str] | None:
    """Reads the steps of the choice: names, or llama.cpp's text with a letter for each. Raises ``FieldError``."""
    names = {"samplers": list(given) if isinstance(given, str) else given}
    found = _texts(names, "samplers", lambda texts: sampler_names(given if isinstance(given, str) else texts))
    return None if found is None else list(sampler_names(given if isinstance(given, str) else found))


def read_stop(body: Mapping[str, Any], name: str, most: int | None) -> list[str] | None:
    """Reads the texts that end an answer, at most ``most``; ``None`` without the field. Raises ``FieldError``."""
    given = body.get(name)
    if given is None:
        return None
    stops = [given] if isinstance(given, str) else array(given, name, most)
    for index, stop in enumerate(stops):
        if not isinstance(stop, str):
            raise wrong_type(f"{name}[{index}]", "a string", stop)
        if not stop:
            raise FieldError(
                f"Invalid '{name}': an empty string would end every answer at once.", param=name, code="invalid_value"
            )
    if sum(map(len, stops)) > 16_384:
        raise FieldError(
            f"Invalid '{name}': the texts have more than 16384 characters together. Send shorter ones.",
            param=name,
            code="string_above_max_length",
        )
    return stops


def read_max_tokens(body: Mapping[str, Any], *names: str, least: int = 0) -> tuple[ChatOptions, str]:
    """Returns the smallest limit on tokens in an object, and the name of its field. Raises ``FieldError``.

    Without a limit, there is no option, and the name is the last one of the possible fields. ``UNLIMITED`` is the rest
    of the context: ``None``.
    """
    limits = {name: integer(body, name, least) for name in names if body.get(name) != UNLIMITED}
    given = {name: min(value, MAX_TOKEN_LIMIT) for name, value in limits.items() if value is not None}
    if not given:
        return ({"max_tokens": None} if len(limits) < len(names) else {}), names[-1]
    name = min(given, key=lambda name: given[name])
    return {"max_tokens": given[name]}, name


def read_show_schema(body: Mapping[str, Any], *, may_be_text: bool = False) -> ChatOptions:
    """Reads whether the prompt shows the schema of the answer, or the text that shows it. Raises ``FieldError``."""
    given = body.get("show_schema")
    if may_be_text and isinstance(given, str):
        return {"show_schema": given}
    if given is not None and not isinstance(given, bool):
        raise wrong_type("show_schema", "a boolean or a string" if may_be_text else "a boolean", given)
    return {} if given is None else {"show_schema": given}


def read_draft(body: Mapping[str, Any]) -> ChatOptions:
    """Reads whether the answer gets a draft, or the draft's most tokens. Raises ``FieldError``."""
    given = body.get("draft")
    if given is None or isinstance(given, bool):
        return {} if given is None else {"draft": given}
    if not isinstance(given, int):
        raise wrong_type("draft", "a boolean or an integer", given)
    most = integer(body, "draft", 1)
    assert most is not None
    return {"draft": min(most, MAX_TOKEN_LIMIT)}


def read_prefix(body: Mapping[str, Any]) -> ChatOptions:
    """Reads the beginning of the answer: a text, or token ids. Raises ``FieldError``."""
    given = body.get("prefix")
    if given is None or isinstance(given, str):
        return {"prefix": given} if given else {}
    if not isinstance(given, list):
        raise wrong_type("prefix", "a string or an array", given)
    return {"prefix": read_token_ids(given, "prefix")}


def read_token_ids(given: object, name: str) -> list[int]:
    """Reads a list of token ids. Raises ``FieldError``."""
    tokens = {f"{name}[{index}]": token for index, token in enumerate(array(given, name))}
    found = [integer(tokens, place, 0, MAX_TOKEN_ID) for place in tokens]
    if None in found:
        raise wrong_type(f"{name}[{found.index(None)}]", "an integer", None)
    return [token for token in found if token is not None]


def read_cache_prompt(body: Mapping[str, Any]) -> ChatOptions:
    """Reads what of the prompt is kept on disk: ``cache_prompt``, else OpenAI's ``prompt_cache_retention``.

    A retention in memory keeps nothing on disk. Raises ``FieldError``.
    """
    given = body.get("cache_prompt")
    if isinstance(given, bool) or given == WHOLE_PROMPT:
        return {"cache_prompt": given}
    if given is not None:
        if isinstance(given, str):
            one_of(given, (WHOLE_PROMPT,), "cache_prompt")
        raise wrong_type("cache_prompt", f"a boolean or '{WHOLE_PROMPT}'", given)
    return {"cache_prompt": False} if body.get("prompt_cache_retention") in _IN_MEMORY else {}


def read_sources(body: Mapping[str, Any], *, has_schema: bool = True) -> ChatOptions:
    """Reads ``sources``, the texts to quote from: each is a text or a list of texts. Raises ``FieldError``.

    ``has_schema``: whether the answer may have quotes.
    """
    given = body.get("sources")
    if given is None:
        return {}
    if not has_schema:
        raise FieldError(
            "Invalid 'sources': only answers with a JSON Schema, and arguments of tools, have quotes.",
            param="sources",
            code="invalid_value",
        )
    sources = mapping(given, "sources")
    for name, texts in sources.items():
        for index, text in enumerate([texts] if isinstance(texts, str) else array(texts, f"sources.{name}")):
            if not isinstance(text, str):
                raise wrong_type(f"sources.{name}[{index}]", "a string", text)
    return {"sources": sources}


def read_parallel(body: Mapping[str, Any]) -> bool:
    """Reads ``parallel_tool_calls``: whether there may be several calls. Raises ``FieldError``."""
    return boolean(body, "parallel_tool_calls") is not False


def _logit_bias(given: object, least: float | None, most: float | None) -> dict[int, float] | None:
    if given is None:
        return None
    biases = mapping(given, "logit_bias")
    for token in biases:
        if not re.fullmatch(BIAS_KEY, token):
            raise FieldError(
                f"Invalid key in 'logit_bias': {token[:40]!r}. Expected the number of a token.",
                param="logit_bias",
                code="invalid_value",
            )
    named = {f"logit_bias.{token}": bias for token, bias in biases.items()}
    values = [number(named, name, least, most) or 0.0 for name in named]
    return {int(token): value for token, value in zip(biases, values, strict=True)}
