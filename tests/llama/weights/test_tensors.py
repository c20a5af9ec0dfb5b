"""The tensors of a file are grouped by what they do, in the formats that they have."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import gguf
import pytest

from constrain.errors import ModelError
from constrain.llama.ggml import ggml
from constrain.llama.model import default_model_path
from constrain.llama.weights.tensors import bytes_of, fits, read_weights
from tests.support.gguf_files import write_gguf
from tests.support.llama.recurrent import write_mamba
from tests.support.llama.transformer import write_transformer

if TYPE_CHECKING:
    from pathlib import Path


def roles(path: Path) -> Counter[tuple[str, str]]:
    return Counter((each.role, each.format) for each in read_weights(path).tensors)


def test_tensors_have_the_role_of_their_name_and_shape(tiny: Path) -> None:
    assert roles(tiny) == {
        ("embedding", "f16"): 1,
        ("output", "f16"): 1,
        ("attention", "f16"): 8,
        ("feed-forward", "f16"): 6,
        ("small", "f32"): 5,
    }


def test_a_tied_embedding_is_the_output_layer(tmp_path: Path) -> None:
    path = write_transformer(tmp_path / "tied.gguf", tied=True)
    assert read_weights(path).is_tied
    assert roles(path)["output", "f16"] == 1
    assert "embedding" not in read_weights(path).by_role()


def test_matrices_of_other_architectures_have_a_role_too(tmp_path: Path) -> None:
    write_mamba(tmp_path / "mamba.gguf")
    assert roles(tmp_path / "mamba.gguf")["other", "f32"] > 0


def test_bytes_and_parameters_are_those_of_the_file() -> None:
    weights = read_weights(default_model_path())
    read = gguf.GGUFReader(default_model_path())
    assert weights.n_bytes == sum(int(each.n_bytes) for each in read.tensors)
    assert weights.n_parameters == sum(int(each.n_elements) for each in read.tensors)
    assert {each.name: each.format for each in weights.tensors} == {
        each.name: each.tensor_type.name.lower() for each in read.tensors
    }


def test_the_formats_of_ggml_have_the_sizes_that_the_gguf_package_says() -> None:
    known = {kind.name.lower(): sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    inner = {"q8_1", "q8_K"}  # formats of activations, never in a file
    shared = [name for name in ggml().kinds if name.lower() in known and name not in inner]
    assert len(shared) > 20
    for name in shared:
        block, size = known[name.lower()]
        assert bytes_of(name, (block, 3)) == 3 * size
        assert fits(name, 2 * block)
        assert block == 1 or not fits(name, block + 1)


def test_a_file_without_weights_is_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "vocabulary.gguf", "llama", [b"a", b"b"])
    with pytest.raises(ModelError, match=r"vocabulary\.gguf: this file holds a vocabulary and no weights"):
        read_weights(path)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "mask.gguf", "llama")
    writer.kv_data[0].pop("general.architecture")
    writer.add_uint32("some.number", 1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match="names no architecture, so it is no model"):
        read_weights(tmp_path / "mask.gguf")
