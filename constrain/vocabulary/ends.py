"""Names of the tokens that end a generation, as llama.cpp knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

END_NAMES = frozenset(
    name.encode()
    for name in (
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|flush|>",
        "<|calls|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "</s>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<eos>",
        "<turn|>",
        "<|tool_response>",
        "<｜end▁of▁sentence｜>",
        "[e~[",
    )
)
"""Texts of tokens that llama.cpp treats as ends of generation, whatever the metadata names."""


def not_ends(by_name: Mapping[bytes, int]) -> set[int]:
    """The ids of tokens with such names that end no generation, because of the other tokens of the vocabulary.

    In families with channels, ``<|end|>`` ends a message. In Gemma 4, ``</s>`` is plain text.
    """
    found = set()
    if {b"<|return|>", b"<|flush|>"} & by_name.keys() and {b"<|call|>", b"<|calls|>"} & by_name.keys():
        found.add(by_name.get(b"<|end|>", -1))
    if b"<|tool_response>" in by_name:
        found.add(by_name.get(b"</s>", -1))
    return found


def ends_by_name(by_name: Mapping[bytes, int]) -> set[int]:
    """The ids that end a generation by their names.

    >>> ends_by_name({b"</s>": 2, b"<unk>": 0})
    {2}
    """
    return {token for name, token in by_name.items() if name in END_NAMES} - not_ends(by_name)
