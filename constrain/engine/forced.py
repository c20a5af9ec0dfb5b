r"""Forced text in the tokens that the tokenizer itself would write.

A model has been trained on the tokenizer's own ("canonical") tokens; after other tokens it behaves differently. So
where a grammar leaves only one continuation, that text is tokenized together with the text on both sides:

    evaluated        sampled    forced            not chosen yet
    ...  {"id": 7      ,        "name": "         Ada, Bob, \u00e9, ...
         \_context_/    \________ text ________/

*The beginning.* The sampled token is not evaluated yet, and only its bytes matter, because the forced text must follow.
So the sampled token and the forced text are tokenized as one text. Example: after a sampled ``{``, ``"name`` is forced,
and the tokenizer writes ``{"`` and ``name``; the model reads these two tokens, not ``{``. Evaluated tokens stay as they
are: if the tokenizer would have merged one with the sampled token, the model has chosen otherwise, and the text is
tokenized as if it began there.

*The end.* A token may begin in the forced text and continue into text that is not chosen yet (``": "`` may become
``": "/``). The offsets at which such tokens may begin are the *open starts*. The tokens kept are those that stay the
same whether a token begins at one of the open starts or at none; the rest of the text is left to sampling, where masks
allow all its spellings. Tokenizers that merge pairs (BPE) or look for the likeliest split (unigram) write the tokens
before a token boundary as they would write that text alone. So it is enough to tokenize the text up to each open start,
and to keep the common beginning.

A special token is never merged with text on either side.

If not even the bytes of the sampled token are certain, the sampled token is kept and no token is forced.

The kernel finds the forced text (``Matcher.forced_after``, ``kernel/completions/forced_text.cpp``).
``llama.decoding.answer`` takes the tokens (``Answer._forced``); ``llama.decoding.decode`` or
``llama.scheduling.scheduler`` evaluates them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from constrain.language.special import split_special

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_NO_NAMES: Mapping[str, int] = MappingProxyType({})

_CONTINUATION = bytes(range(0x80, 0xC0))
"""Bytes inside a UTF-8 character, after its first byte."""


def certain_tokens(
    text: bytes,
    open_starts: Sequence[int],
    context: bytes,
    encode: Callable[[bytes], list[int]],
    token_bytes: Callable[[int], bytes],
    special_tokens: Mapping[str, int] = _NO_NAMES,
) -> list[int]:
    """The tokens with which the tokenizer writes ``text`` after ``context``, as far as these are certain.

    ``text`` may hold special tokens (``language.special``). ``open_starts``: ascending offsets into ``text`` at which a
    token may begin that continues beyond its end.
    """
    *before, last = split_special(text)
    tokens: list[int] = []
    for written, name in zip(before[::2], before[1::2], strict=True):
        tokens += _certain(written, (), context, encode, token_bytes)
        tokens.append(special_tokens[name.decode()])
        context = b""
    skipped = len(text) - len(last)
    starts = [start - skipped for start in open_starts if start >= skipped]
    return tokens + _certain(last, starts, context, encode, token_bytes)


def _certain(
    text: bytes,
    open_starts: Sequence[int],
    context: bytes,
    encode: Callable[[bytes], list[int]],
    token_bytes: Callable[[int], bytes],
) -> list[int]:
    """``certain_tokens`` of a text without special tokens."""
    context = context.lstrip(_CONTINUATION)
    tokens = _continued(text, context, encode, token_bytes)
    if tokens is None:
        context = b""
        tokens = encode(text)
    end = kept = 0
    limit = open_starts[0] if open_starts else len(text)
    for token in tokens:
        end += len(token_bytes(token))
        if end > limit:
            break
        kept += 1
    for start in open_starts:
        if not kept:
            return []
        others = _continued(text[:start], context, encode, token_bytes)
        # None: the tokenizer merges all of it with the context, so no token of this text is certain.
        kept = 0 if others is None else _in_common(tokens[:kept], others)
    return tokens[:kept]


def _continued(
    text: bytes, context: bytes, encode: Callable[[bytes], list[int]], token_bytes: Callable[[int], bytes]
) -> list[int] | None:
    """The tokens of ``text`` after ``context``; ``None`` if the tokenizer merges the two."""
    if not context:
        return encode(text)
    tokens = encode(context + text)
    end = 0
    for place, token in enumerate(tokens):
        if end >= len(context):
            return tokens[place:] if end == len(context) else None
        end += len(token_bytes(token))
    return [] if end == len(context) else None


def _in_common(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of equal tokens at the beginning of both."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
