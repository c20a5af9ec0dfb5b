"""Tokens that are evaluated inside an answer and are no part of it: what the model reads, and their room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

import constrain
from constrain.generation.observers.choices import Choices
from constrain.generation.observers.trace import Trace
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Chain, Sampling
from tests.support import for_each
from tests.support.llama.alone import Alone, Inserting

EOS = 256
VOCABULARY = constrain.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b""], eos=[EOS])
PROMPT = [*b"Q: "]
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 40}},
    "required": ["a"],
    "additionalProperties": False,
}
CONSTRAINT = constrain.compile(SCHEMA, VOCABULARY, whitespace="compact")
HEAD, END = b'{"a":"', b'"}'
WORDS = b"the cat sat on the mat and the dog"
MARK = b"!"


class Writer(Alone):
    """A model that writes ``WORDS``, and in capitals behind an inserted mark."""

    def next_logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        logits = np.zeros(VOCABULARY.n_vocab, np.float32)
        whole, mark = HEAD + WORDS + END, MARK[0]
        written = sum(token != mark for token in self.evaluated[len(PROMPT) :])
        if written < len(whole):
            liked = whole[written : written + 1]
            logits[(liked.upper() if mark in self.evaluated else liked)[0]] = 9
        return logits


def write(insert: Mapping[int, Sequence[int]], n_ctx: int = 200, **options: Any) -> tuple[Answer, Writer]:
    model = Writer(VOCABULARY.n_vocab, n_ctx)
    answer = Answer(
        PROMPT,
        Chain(Sampling(temperature=0), VOCABULARY.n_vocab, n_ctx),
        CONSTRAINT.matcher,
        eos=VOCABULARY.eos,
        encode=list,
        token_bytes=VOCABULARY.token_bytes,
        insert=Inserting(insert),
        **options,
    )
    assert [*Decoding(model, answer).steps()] == answer.tokens
    assert CONSTRAINT.accepts(bytes(answer.tokens))
    return answer, model


def read_before(answer: Answer, number: int) -> bytes:
    return bytes(chain.from_iterable(answer.evaluated(number)))


def test_the_model_reads_inserted_tokens_and_the_answer_goes_on_without_them() -> None:
    answer, model = write({6: MARK, 10: MARK * 2})
    assert bytes(answer.tokens) == HEAD + WORDS.upper() + END
    assert bytes(model.evaluated) == b'Q: {"a":"!THE !!CAT SAT ON THE MAT AND THE DOG', "the end needs no evaluation"
    assert list(map(bytes, answer.evaluated(8, [6, 7]))) == [b'Q: {"a":"', MARK, b"T", b"H"]
    assert read_before(answer, 10) == b'Q: {"a":"!THE !!'
    assert read_before(answer, 5) == b'Q: {"a":'


@for_each("n_ctx", range(len(PROMPT) + len(HEAD + END), 80))
def test_every_answer_ends_in_the_room_that_is_left(n_ctx: int) -> None:
    answer, model = write({len(HEAD): MARK * 12}, n_ctx)
    is_room = n_ctx >= len(PROMPT) + 12 + len(HEAD + END)
    assert answer.inserted == [(len(HEAD), tuple(MARK * 12 if is_room else b""))]
    room = n_ctx - len(PROMPT) - 12 * is_room
    assert answer.limit == room >= len(answer.tokens)
    assert len(model.evaluated) <= n_ctx
    assert answer.ended_by == ("grammar" if room >= len(HEAD + WORDS + END) else "context")


@for_each("max_tokens", range(12, 50))
def test_a_limit_counts_the_answer_alone_and_what_is_taken_back_is_read_again_behind_the_insertion(
    max_tokens: int,
) -> None:
    answer, model = write({len(HEAD): MARK * 30}, max_tokens=max_tokens)
    assert answer.limit == max_tokens >= len(answer.tokens)
    text = bytes(answer.tokens).removeprefix(HEAD).removesuffix(END)
    assert WORDS.upper().startswith(text)
    assert text.rpartition(b" ")[2] in (b"", *WORDS.upper().split()), "a word was cut"
    assert read_before(answer, len(answer.tokens)).startswith(bytes(model.evaluated))


def test_a_shorter_answer_is_traced_within_its_new_limit() -> None:
    trace = Trace(CONSTRAINT.matcher, lambda token: (chr(token), bytes([token])), Choices())
    answer, _ = write({len(HEAD): MARK * 12}, len(PROMPT) + 12 + 20, observers=[trace])
    assert bytes(answer.tokens) == HEAD + b"THE CAT SAT" + END
    assert [each.tokens_left for each in trace.tokens] == [*range(32, 26, -1), *range(14, 1, -1)]
