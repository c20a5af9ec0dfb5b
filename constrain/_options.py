"""The options that all ways to generate share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain._result import ResultType
    from constrain.llama.sampler import Sampling


class Options(TypedDict, total=False):
    """The keywords that ``generate``, ``complete`` and ``stream`` share; all may be left out.

    Attributes:
        max_tokens: the most tokens to generate, end of generation not counted; by default what is left of the
            context. An answer with a schema is always complete: where the limit comes near, words are finished and what
            is open is closed.
        temperature: divides the logits (0.8); 0 takes the most likely allowed token, and the next four do nothing.
        top_p: sample from the most likely tokens that together have this probability (0.95); 1 for all.
        top_k: sample from this many of the most likely tokens (40); 0 for all.
        min_p: sample from the tokens that are at least this times as likely as the most likely one (0.05).
        seed: makes sampling reproducible; 0 to 2**32 - 2.
        stop: a text or texts that end the answer. Without a schema the answer is cut before them. With one it goes
            on to its shortest end, since it could not be valid otherwise.
        logit_bias: added to the logits of these token ids; may be infinite.
        repeat_penalty: divides the logits of tokens among the last 64 of the answer; 1 (the default) for none.
        timeout: seconds from the model's turn on after which the answer is brought to its shortest end (or just
            ends, without a schema).
        show_schema: whether the prompt says what to fill in (``True``), as a short text at the end of the user's
            last message; or a text of your own for that, with ``{schema}`` in it.
    """

    max_tokens: int | None
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    seed: int | None
    stop: str | Sequence[str]
    logit_bias: Mapping[int, float]
    repeat_penalty: float
    timeout: float | None
    show_schema: bool | str


def split_options(options: Options) -> tuple[Sampling, Request]:
    """What is about sampling, and the rest. Raises ``TypeError`` and ``ValueError``."""
    # Imported here: llama_cpp takes long.
    from constrain.llama.sampler import Sampling

    given: dict[str, Any] = dict(options)
    if unknown := given.keys() - Options.__annotations__.keys():
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
    sampling = Sampling(**{key: given.pop(key) for key in _SAMPLING_KEYS & given.keys()})
    return sampling, Request(**given)


_SAMPLING_KEYS = frozenset(("temperature", "top_p", "top_k", "min_p", "seed", "logit_bias", "repeat_penalty"))


@dataclass(frozen=True, slots=True)
class Request:
    """The options that are not about sampling."""

    max_tokens: int | None = None
    stop: str | Sequence[str] = ()
    timeout: float | None = None
    show_schema: bool | str = True
    stops: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 0:
            raise ValueError(f"max_tokens is {self.max_tokens}; it must be 0 or more")
        if self.timeout is not None and not self.timeout >= 0:
            raise ValueError(f"timeout is {self.timeout}; it must be 0 seconds or more")
        stops = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        if "" in stops:
            raise ValueError("an empty text in stop would end every answer at once")
        object.__setattr__(self, "stops", stops)
        if isinstance(self.show_schema, str) and "{schema}" not in self.show_schema:
            raise ValueError("show_schema is a text without {schema} in it")

    def shown(self, result: ResultType) -> str:
        """What the prompt says about the schema."""
        from constrain.llama.schema_text import describe, render

        if result.document is None or self.show_schema is False:
            return ""
        if self.show_schema is True:
            return describe(result.document)
        return self.show_schema.replace("{schema}", render(result.document))
