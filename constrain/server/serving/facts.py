"""The facts about a model that are in its GGUF file, read without loading it."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import llama_cpp

from constrain.chat.families.forms import detect_thinking
from constrain.errors import ModelError
from constrain.llama.embedding import can_pool
from constrain.server.http.errors import SERVER_ERROR, ApiError
from constrain.vocabulary.gguf.files import fingerprint, model_files
from constrain.vocabulary.gguf.metadata import read_metadata

if TYPE_CHECKING:
    from pathlib import Path

    from constrain.server.serving.generation import Generator
    from constrain.server.serving.models import ModelSource
    from constrain.vocabulary.gguf.metadata import Metadata

_log = logging.getLogger("constrain.server")

_TEMPLATE = "tokenizer.chat_template"

_UNITS = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "K"))

_FORMATS: dict[int, str] = {
    value: name.removeprefix("LLAMA_FTYPE_").removeprefix("MOSTLY_").removeprefix("ALL_")
    for name, value in vars(llama_cpp).items()
    if name.startswith("LLAMA_FTYPE_") and isinstance(value, int)
}
"""Names of the formats of weights, by the number in a file (``general.file_type``)."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts about a model's files.

    Attributes:
        digest: hexadecimal digits that identify its weights and metadata.
        size: bytes of all files.
        details: family, number of parameters and format of the weights, in Ollama's form.
        info: numbers, texts and truth values of the metadata, and the number of parameters.
        template: chat template; ``""`` for none.
        license: name of its license; ``""`` if the file has none.
        capabilities: names of the things that the model can do on this server.
    """

    digest: str = ""
    size: int = 0
    details: dict[str, Any] | None = None
    info: dict[str, Any] | None = None
    template: str = ""
    license: str = ""
    capabilities: tuple[str, ...] = ()


def read_facts(source: ModelSource) -> FileFacts:
    """Reads the facts about a model from its files. Raises ``ModelError``."""
    if source.path is None:
        return FileFacts()
    files = model_files(source.path)
    metadata = read_metadata(source.path)
    own = metadata.text(_TEMPLATE) or ""
    template = own if source.chat_template is None else source.chat_template
    parameters = sum(map(_count_weights, files))
    return FileFacts(
        digest=fingerprint(source.path).hex(),
        size=sum(_size(file) for file in files),
        details=_details(metadata, parameters),
        info={**_scalars(metadata), "general.parameter_count": parameters},
        template=template,
        license=metadata.text("general.license") or "",
        capabilities=_capabilities(metadata, template),
    )


def write_count(count: int) -> str:
    """Returns a number of parameters as people write it.

    >>> write_count(134_515_008), write_count(8_030_261_248), write_count(512)
    ('134.52M', '8.0B', '512')
    """
    for unit, letter in _UNITS:
        if count >= unit:
            return f"{count / unit:.{1 if letter == 'B' else 2}f}{letter}"
    return str(count)


def _details(metadata: Metadata, parameters: int) -> dict[str, Any]:
    family = metadata.text("general.architecture") or ""
    file_type = metadata.integer("general.file_type")
    return {
        "parent_model": "",
        "format": "gguf",
        "family": family,
        "families": [family],
        "parameter_size": write_count(parameters),
        "quantization_level": "unknown" if file_type is None else _FORMATS.get(file_type, "unknown"),
    }


def _scalars(metadata: Metadata) -> dict[str, Any]:
    """Returns the values of the metadata that JSON has, without the template, which has a field of its own."""
    return {
        key: value
        for key, value in metadata.values.items()
        if not key.startswith(_TEMPLATE)
        and isinstance(value, str | int | float)
        and (not isinstance(value, float) or math.isfinite(value))
    }


def _capabilities(metadata: Metadata, template: str) -> tuple[str, ...]:
    """Returns the capabilities of a model. All models that write can call tools, as answers are constrained."""
    family = metadata.text("general.architecture") or ""
    pooling = metadata.integer(f"{family}.pooling_type")
    found = ["completion", "tools"]
    if detect_thinking(template) is not None:
        found.append("thinking")
    if can_pool(llama_cpp.LLAMA_POOLING_TYPE_NONE if pooling is None else pooling):
        found.append("embedding")
    return tuple(found)


def _count_weights(file: Path) -> int:
    return sum(math.prod(tensor.shape) for tensor in read_metadata(file, tensors=None).tensors.values())


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror}") from error


class Facts:
    """The facts about the files of all models, each read once. ``generator``: has threads to read them."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._known: dict[str, FileFacts] = {}

    async def of(self, source: ModelSource) -> FileFacts:
        """Returns the facts about a model's files. Raises ``ApiError`` if they cannot be read."""
        name = source.names[0]
        if name not in self._known:
            try:
                self._known[name] = await self._generator.run_in_thread(partial(read_facts, source))
            except ModelError as error:
                _log.exception("the file of the model %s cannot be read", name)
                raise ApiError(
                    f"The file of the model '{name}' cannot be read; the server's log says why.",
                    status=500,
                    kind=SERVER_ERROR,
                    code="model_load_failed",
                ) from error
        return self._known[name]
