"""llama.cpp's quantizer writes a copy with the formats that it is told, whole or not at all."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import pytest

from constrain.errors import ModelError
from constrain.llama.costs.measuring import SIZES, measure_costs
from constrain.llama.loading import llama_log, load
from constrain.llama.weights.comparison import compare
from constrain.llama.weights.evaluating import MAX_TEXT_TOKENS, TextEvaluator
from constrain.llama.weights.importance import measure_importance
from constrain.llama.weights.quantizer import quantize
from constrain.llama.weights.tensors import read_weights
from constrain.llama.weights.texts import sample_texts

if TYPE_CHECKING:
    from pathlib import Path

    import llama_cpp

TEXTS = ["Two boats came in at night.", '{"name": "Ada", "age": 36}']


def copy_with(
    source: Path, target: Path, changed: dict[str, str], importance: dict[str, Any] | None = None
) -> list[float]:
    """Writes a copy in which some tensors have other formats; returns the progress that was reported."""
    formats = {each.name: each.format for each in read_weights(source).tensors if len(each.shape) > 1}
    shares: list[float] = []
    quantize(source, target, {**formats, **changed}, importance=importance or {}, n_threads=1, report=shares.append)
    return shares


def formats_of(path: Path) -> dict[str, str]:
    return {each.name: each.format for each in read_weights(path).tensors}


def values_of(path: Path, name: str) -> Any:
    tensor = next(each for each in gguf.GGUFReader(path).tensors if each.name == name)
    return gguf.dequantize(tensor.data, tensor.tensor_type)


def test_a_copy_has_the_formats_and_the_other_tensors_bit_by_bit(tiny: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.gguf"
    shares = copy_with(tiny, target, {"output.weight": "q8_0", "blk.1.ffn_up.weight": "q4_K"})
    assert formats_of(target) == {**formats_of(tiny), "output.weight": "q8_0", "blk.1.ffn_up.weight": "q4_K"}
    assert shares == sorted(shares)
    assert shares[-1] == 1
    kept = {each.name: each.data for each in gguf.GGUFReader(tiny).tensors}
    for each in gguf.GGUFReader(target).tensors:
        if each.name not in ("output.weight", "blk.1.ffn_up.weight"):
            assert np.array_equal(each.data, kept[each.name]), each.name
    assert np.allclose(values_of(target, "output.weight"), values_of(tiny, "output.weight"), atol=0.003)


def test_importance_makes_the_errors_of_important_columns_smaller(tiny: Path, tmp_path: Path) -> None:
    name = "blk.0.ffn_up.weight"
    weight = np.ones(256, np.float32)
    weight[::32] = 10_000
    copy_with(tiny, tmp_path / "even.gguf", {name: "q4_0"})
    copy_with(tiny, tmp_path / "weighted.gguf", {name: "q4_0"}, {name: weight})
    original = values_of(tiny, name)
    even, weighted = (
        np.abs(values_of(tmp_path / f"{each}.gguf", name) - original)[:, ::32].mean() for each in ("even", "weighted")
    )
    assert weighted < 0.9 * even


def test_a_copy_replaces_an_older_one_but_never_the_original(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "old.gguf").write_bytes(b"old")
    copy_with(tiny, tmp_path / "old.gguf", {"output.weight": "q8_0"})
    assert formats_of(tmp_path / "old.gguf")["output.weight"] == "q8_0"
    before = tiny.read_bytes()
    (tmp_path / "link.gguf").symlink_to(tiny)
    for target in (tiny, tmp_path / "link.gguf"):
        with pytest.raises(ModelError, match="is the original; give another path"):
            copy_with(tiny, target, {"output.weight": "q8_0"})
    assert tiny.read_bytes() == before


def test_a_disk_without_room_is_told_before_anything_is_written(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 30, 1 << 30, 1000))
    with pytest.raises(OSError, match="has 0 MiB left, and the copy may take"):
        copy_with(tiny, tmp_path / "copy.gguf", {"output.weight": "q8_0"})
    assert list(tmp_path.iterdir()) == []


def test_a_failure_of_llama_cpp_leaves_nothing_behind(tiny: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(tiny.read_bytes()[:-1000])
    with pytest.raises(ModelError, match=r"broken\.gguf: llama\.cpp cannot quantize it: "):
        quantize(
            broken,
            tmp_path / "copy.gguf",
            {"output.weight": "q8_0"},
            importance={},
            n_threads=1,
            report=lambda _: None,
        )
    assert list(tmp_path.iterdir()) == [broken]


def test_a_model_is_like_itself_and_less_like_a_coarse_copy(tiny: Path, llama: llama_cpp.Llama, tmp_path: Path) -> None:
    copy_with(tiny, tmp_path / "copy.gguf", {name: "q4_0" for name, form in formats_of(tiny).items() if form == "f16"})
    other = load(tmp_path / "copy.gguf", 512, 0, 1, verbose=False)
    try:
        with llama_log():
            same, coarse = compare(llama, llama, TEXTS), compare(llama, other, TEXTS)
    finally:
        other.close()
    assert (same.agreement, same.perplexity[0]) == (1, same.perplexity[1])
    assert abs(same.divergence) < 1e-6
    assert coarse.divergence > 0.001
    assert coarse.agreement < 1
    assert same.n_tokens == sum(len(llama.tokenize(text.encode())) for text in TEXTS)


def test_a_comparison_can_be_limited(llama: llama_cpp.Llama) -> None:
    with llama_log():
        assert compare(llama, llama, TEXTS, 5).n_tokens == len(llama.tokenize(TEXTS[0].encode()))


def test_a_divergence_is_that_of_the_definition(llama: llama_cpp.Llama) -> None:
    with llama_log(), TextEvaluator(llama) as evaluator:
        tokens = evaluator.tokens(TEXTS[0])
        logits = np.concatenate(list(evaluator.logits(tokens))).astype(np.float64)
        found = compare(llama, llama, TEXTS[:1])
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    following = probabilities[np.arange(len(tokens) - 1), tokens[1:]]
    assert found.perplexity[0] == pytest.approx(np.exp(-np.log(following).mean()), rel=1e-4)


def test_long_texts_are_cut(llama: llama_cpp.Llama) -> None:
    with llama_log(), TextEvaluator(llama) as evaluator:
        assert len(evaluator.tokens("a" * 5000)) == MAX_TEXT_TOKENS


def test_importance_is_the_mean_square_of_the_activations(llama: llama_cpp.Llama, tiny: Path) -> None:
    with llama_log():
        found = measure_importance(llama, TEXTS)
    assert set(found) == {name for name, form in formats_of(tiny).items() if form == "f16"} - {"token_embd.weight"}
    assert found["blk.0.ffn_down.weight"].shape == (512,)
    # The input of the first layer is the embedding, divided by the root of its mean square.
    embedding = values_of(tiny, "token_embd.weight").astype(np.float64)
    with TextEvaluator(llama) as evaluator:
        rows = np.concatenate([embedding[evaluator.tokens(text)] for text in TEXTS])
    normed = rows / np.sqrt((rows**2).mean(1, keepdims=True) + 1e-5)
    assert np.allclose(found["blk.0.attn_q.weight"], (normed**2).mean(0), rtol=1e-3)


def test_an_error_of_the_callback_is_raised(llama: llama_cpp.Llama, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ArithmeticError("no sums today")

    monkeypatch.setattr("constrain.llama.weights.importance._Collector._add", fail)
    with llama_log(), pytest.raises(ArithmeticError, match="no sums today"):
        measure_importance(llama, TEXTS)


def test_costs_have_each_number_of_tokens(llama: llama_cpp.Llama) -> None:
    with llama_log():
        costs = measure_costs(llama)
    assert tuple(costs.every) == SIZES["every"]
    assert tuple(costs.last) == SIZES["last"]
    assert all(seconds > 0 for seconds in (*costs.every.values(), *costs.last.values()))
    assert costs.n_threads == (1, 1)


def test_texts_of_two_seeds_have_nothing_in_common() -> None:
    one, other = sample_texts(0), sample_texts(1)
    assert one == sample_texts(0)
    assert not set(one) & set(other)
    assert sum(map(len, one)) > 5000
