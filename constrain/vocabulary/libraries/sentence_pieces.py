"""Vocabularies of ``sentencepiece.SentencePieceProcessor``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from constrain.errors import ModelError
from constrain.vocabulary.exact import ExactEncoder
from constrain.vocabulary.libraries.checks import check_texts, check_tokens
from constrain.vocabulary.libraries.loading import Loaded, Sizing, finish_table, require_library
from constrain.vocabulary.spelling import SPACE, read_byte_token

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUL = "\0"
"""A character that merges with no other: text after it is tokenized as in the middle of a longer text."""


def load_processor(given: Any, sizing: Sizing) -> Loaded:
    """Reads a processor, or the file of a model. Raises ``TypeError`` for another object, and ``ModelError``."""
    if isinstance(given, (str, os.PathLike)):
        where = os.fspath(given)
        processor = _open(where)
    else:
        require_library(given, "sentencepiece", "SentencePieceProcessor", "processor")
        where, processor = "sentencepiece.SentencePieceProcessor", given
    count = processor.get_piece_size()
    if not count:
        raise ModelError(f"{where}: it has no model; load one first")
    texts, special = _pieces(processor, count, where)
    ends = processor.eos_id()
    if sizing.eos is None and ends >= 0:
        sizing = sizing._replace(eos=[ends])
    check_tokens(texts, special, lambda ids: str(processor.decode(ids)), where=where)

    def read(text: str) -> list[int]:
        ids: list[int] = processor.encode(
            text, out_type=int, add_bos=False, add_eos=False, reverse=False, enable_sampling=False
        )
        return ids

    check_texts(read, texts, {processor.unk_id()}, where=where)
    lead = read(_NUL)

    def read_on(text: bytes) -> list[int]:
        ids = read(_NUL + text.decode())
        return ids[len(lead) :] if ids[: len(lead)] == lead else []

    table = finish_table(texts, special, sizing, where=where)
    return Loaded(table, ExactEncoder(where, read_on))


def _open(path: str) -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise ModelError(
            f"{path}: SentencePiece is not installed: pip install 'constrain-llm[sentencepiece]'"
        ) from error
    try:
        return sentencepiece.SentencePieceProcessor(model_file=path)
    except (OSError, RuntimeError) as error:
        raise ModelError(f"{path}: cannot be read as a SentencePiece model: {error}") from error


def _pieces(processor: Any, count: int, where: str) -> tuple[list[bytes], Mapping[int, str]]:
    """The bytes of each piece, and the names of the special ones."""
    texts: list[bytes] = []
    special: dict[int, str] = {}
    for token in range(count):
        piece: str = processor.id_to_piece(token)
        if processor.is_control(token) or processor.is_unknown(token) or processor.is_unused(token):
            special[token] = piece
            texts.append(b"")
        elif processor.is_byte(token):
            byte = read_byte_token(piece.encode())
            if byte is None:
                raise ModelError(f"{where}: byte token {token} is spelled {piece!r:.80}, not like '<0x0A>'")
            texts.append(byte)
        else:
            texts.append(piece.replace(SPACE, " ").encode())
    return texts, special
