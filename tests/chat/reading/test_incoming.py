"""Bytes of an answer, read as text: special tokens among them are no part of it."""

from __future__ import annotations

from constrain.chat.reading.incoming import Incoming
from constrain.language.special import mark


def test_special_tokens_are_no_part_of_a_text() -> None:
    incoming, found = Incoming(), []
    reading = incoming.text([b"END"], found.append)
    for part in (b"a", mark("<|call|>"), "é".encode()[:1], "é".encode()[1:], mark("<s>") + b"E", b"ND"):
        incoming.buffer += part
        next(reading, None)
    assert "".join(found) == "aé"
    assert incoming.take(3) == b"END"


def test_special_tokens_are_no_part_of_a_json_string() -> None:
    incoming, found = Incoming(), []
    reading = incoming.json_string(found.append)
    for part in (b"a\\", b"n", mark("<|call|>"), b'b"'):
        incoming.buffer += part
        next(reading, None)
    assert "".join(found) == "a\nb"
