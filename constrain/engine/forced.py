r"""Forced text in the tokens that the tokenizer itself would write.

A model has read texts in the tokenizer's own ("canonical") tokens; after others it says something else. Where a
grammar leaves one continuation, that text is therefore tokenized together with what surrounds it:

    evaluated        sampled    forced            not chosen yet
    ...  {"id": 7      ,        "name": "         Ada, Bob, \u00e9, ...
         \_context_/    \________ text ________/

*Its beginning.* The sampled token is not evaluated yet, and only what it says counts: nothing but the forced text
can follow. So both are tokenized as one. Where ``{`` was sampled, ``"name`` is forced and the tokenizer writes
``{"`` and ``name``, these are what the model reads, not ``{``. What was evaluated before stays as it is: if the
tokenizer would have joined it with the sampled token, the model chose otherwise, and the text is tokenized as if it
began there.

*Its end.* A token may begin in the text and go on into what is not chosen yet (``": "`` may become ``": "/``). The
offsets at which such tokens begin are the *open starts*. Only tokens are kept that come out the same whichever of
these becomes the beginning of a token, or none; the rest of the text is left to sampling, where the masks allow all
its spellings. For tokenizers that merge pairs (BPE) or look for the likeliest split (unigram), the tokens before a
place where one ends are those of the text before that place alone. So it is enough to tokenize the text up to each
open start, and to keep what all have in common.

A special token is never joined with what stands beside it.

If not even the bytes of the sampled token are certain, it stays what it is, and nothing is forced.

The kernel finds what is forced (``Matcher.forced_after``, ``core/src/forced_text.cpp``). ``llama.decoding.answer``
takes the tokens (``Answer._forced``); ``llama.decoding.decode`` evaluates them, or ``llama.scheduling.scheduler``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from constrain.language.special import split_special

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_NO_NAMES: Mapping[str, int] = MappingProxyType({})

_CONTINUATION = bytes(range(0x80, 0xC0))
"""Bytes of a UTF-8 character that began before."""


def certain_tokens(
    text: bytes,
    open_starts: Sequence[int],
    context: bytes,
    encode: Callable[[bytes], list[int]],
    token_bytes: Callable[[int], bytes],
    special_tokens: Mapping[str, int] = _NO_NAMES,
) -> list[int]:
    """The tokens with which the tokenizer writes ``text`` after ``context``, as far as these are certain.

    ``text`` may hold special tokens (``language.special``). ``open_starts``: the offsets into it, ascending, at which a
    token may begin that goes on beyond its end.
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
        # Joined to the context, if None: then nothing of this text has tokens of its own.
        kept = 0 if others is None else _in_common(tokens[:kept], others)
    return tokens[:kept]


def _continued(
    text: bytes, context: bytes, encode: Callable[[bytes], list[int]], token_bytes: Callable[[int], bytes]
) -> list[int] | None:
    """The tokens of ``text`` after ``context``; ``None`` if the tokenizer joins the two."""
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
    """How many tokens both begin with."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
