"""The tensors of a model file, with their formats, grouped by what they do in a decode."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from constrain.errors import ModelError
from constrain.llama.ggml import ggml
from constrain.vocabulary.gguf.files import model_files
from constrain.vocabulary.gguf.metadata import read_metadata

if TYPE_CHECKING:
    from pathlib import Path

EMBEDDING, OUTPUT, ATTENTION, FEED_FORWARD, EXPERTS, OTHER, SMALL = (
    "embedding", "output", "attention", "feed-forward", "experts", "other", "small",
)  # fmt: skip
"""Roles of tensors. ``embedding`` is looked up, not multiplied. ``small``: norms, biases and other vectors."""

MULTIPLIED = (OUTPUT, ATTENTION, FEED_FORWARD, EXPERTS, OTHER)
"""Roles of the matrices that a decode multiplies, and that can be quantized."""

_EMBEDDING_NAME, _OUTPUT_NAME = "token_embd.weight", "output.weight"

_OF_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.weight")

_EXPERT_DIMENSIONS = 3


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor of a model.

    Attributes:
        name: its name in the file.
        role: what it is for, one of the roles above.
        format: name of its format, such as ``q4_K``.
        shape: its extents, columns first.
    """

    name: str
    role: str
    format: str
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        """Size in bytes."""
        return bytes_of(self.format, self.shape)

    @property
    def matrix(self) -> tuple[int, int]:
        """Columns and rows of the matrix, or of each of several."""
        return self.shape[0], self.shape[1] if len(self.shape) > 1 else 1


@dataclass(frozen=True, slots=True)
class Weights:
    """The tensors of a model.

    Attributes:
        path: the file, or the first of several.
        architecture: the name of the architecture, such as ``llama``.
        tensors: the tensors in the order of the file.
        uses: products of one expert's matrices per token, for mixtures of experts; otherwise 1.
        is_tied: whether the output layer is the embedding.
    """

    path: Path
    architecture: str
    tensors: tuple[Weight, ...]
    uses: int
    is_tied: bool

    @property
    def n_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(each.n_bytes for each in self.tensors)

    @property
    def n_parameters(self) -> int:
        """Number of all weights."""
        return sum(prod(each.shape) for each in self.tensors)

    def by_role(self) -> dict[str, list[Weight]]:
        """The tensors of each role, in the order of the roles."""
        return {
            role: found
            for role in (EMBEDDING, *MULTIPLIED, SMALL)
            if (found := [each for each in self.tensors if each.role == role])
        }


def read_weights(path: Path) -> Weights:
    """Reads the tensors of a model, but not their values. Raises ``ModelError`` for a file that is no model."""
    metadata = read_metadata(path)
    architecture = metadata.text("general.architecture")
    if architecture is None:
        raise ModelError(f"{path}: this GGUF file names no architecture, so it is no model")
    kinds = {kind: name for name, kind in ggml().kinds.items()}
    found: dict[str, tuple[tuple[int, ...], str]] = {}
    for part in model_files(path):
        for name, tensor in read_metadata(part, tensors=None).tensors.items():
            if tensor.kind not in kinds:
                raise ModelError(f"{part}: {name} has a format that the installed llama.cpp does not know")
            found[name] = tensor.shape, kinds[tensor.kind]
    if not found:
        raise ModelError(f"{path}: this file holds a vocabulary and no weights")
    is_tied = _OUTPUT_NAME not in found and _EMBEDDING_NAME in found
    tensors = tuple(
        Weight(name, _role(name, shape, is_tied=is_tied), kind, shape) for name, (shape, kind) in found.items()
    )
    return Weights(path, architecture, tensors, metadata.integer(f"{architecture}.expert_used_count") or 1, is_tied)


def _role(name: str, shape: tuple[int, ...], *, is_tied: bool) -> str:
    if name == _EMBEDDING_NAME:
        return OUTPUT if is_tied else EMBEDDING
    if name == _OUTPUT_NAME:
        return OUTPUT
    if len(shape) < 2 or not name.endswith(".weight") or "norm" in name:
        return SMALL
    layer = _OF_LAYER.fullmatch(name)
    if layer is None:
        return OTHER
    kind = layer.group(2)
    if len(shape) >= _EXPERT_DIMENSIONS:
        return EXPERTS
    if kind.startswith("attn"):
        return ATTENTION
    return FEED_FORWARD if kind in ("ffn_up", "ffn_gate", "ffn_down") else OTHER


def bytes_of(form: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor in a format."""
    return int(ggml().row_size(ggml().kinds[form], shape[0])) * prod(shape[1:])


def fits(form: str, columns: int) -> bool:
    """Whether a row of so many columns is a whole number of blocks of a format."""
    return columns % int(ggml().blck_size(ggml().kinds[form])) == 0
