"""The files of a model: the parts of a split one, and a fingerprint that tells the weights of two models apart."""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from constrain.vocabulary.gguf.metadata import map_model, tensor_places

if TYPE_CHECKING:
    from pathlib import Path

_FIRST_PART = re.compile(r"(.*)-00001-of-(\d{5})\.gguf")

_SAMPLE_BYTES = 4096
"""Bytes of each sample of a tensor: a page. Three pages of each tensor are read: at its beginning, middle and end."""


def model_files(path: Path) -> list[Path]:
    """The files of a model; a split model has several."""
    split = _FIRST_PART.fullmatch(path.name)
    if split is None:
        return [path]
    name, count = split.groups()
    parts = [path.with_name(f"{name}-{number:05}-of-{count}.gguf") for number in range(1, int(count) + 1)]
    return [part for part in parts if part.is_file()]


def fingerprint(path: Path) -> bytes:
    """32 bytes that identify a model by its weights and metadata; names of files do not count.

    SHA-256 of all metadata, the sizes of the files, and three samples of each tensor. Training, merging and quantizing
    change nearly all numbers of a tensor, so samples suffice; reading all weights would take seconds. Raises
    ``ModelError``.
    """
    digest = hashlib.sha256()
    for part in model_files(path):
        buffer = map_model(part)
        places = sorted({min(place, len(buffer)) for place in tensor_places(part, buffer).values()})
        digest.update(len(buffer).to_bytes(8, "little"))
        digest.update(buffer[: places[0] if places else len(buffer)])
        for begin, end in pairwise([*places, len(buffer)]):
            for place in (begin, (begin + end) // 2, max(begin, end - _SAMPLE_BYTES)):
                digest.update(buffer[place : min(end, place + _SAMPLE_BYTES)])
    return digest.digest()


def has_tensor(path: Path, beginning: str) -> bool:
    """Whether a model has a tensor whose name begins so. Raises ``ModelError``."""
    found = (tensor_places(part, map_model(part)) for part in model_files(path))
    return any(name.startswith(beginning) for places in found for name in places)
