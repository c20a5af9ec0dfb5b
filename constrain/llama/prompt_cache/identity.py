"""The facts on which an evaluation depends: equal bytes mean that a state of one context is valid in another.

n_ctx and the numbers of threads are left out: they do not change a state. The number of sequences is a fact, because
llama.cpp's states have a part for each: the single context and the scheduler's have files of their own.
"""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_cpp

from constrain.errors import ModelError
from constrain.llama.binding import PROCESSOR, devices
from constrain.llama.prebuilt.finding import library_version
from constrain.vocabulary.gguf.files import fingerprint, has_tensor, model_files

if TYPE_CHECKING:
    import ctypes

_CONTEXT_SIZED = "rope_factors_long"
"""Beginning of the tensors of models that rotate positions by other factors in larger contexts (LongRoPE)."""

_NO_FACTS = frozenset(
    (
        *("n_ctx", "n_batch", "n_seq_max", "n_outputs_max", "n_outputs_max_per_seq", "n_threads", "n_threads_batch"),
        *("cb_eval", "cb_eval_user_data", "abort_callback", "abort_callback_data", "no_perf", "samplers", "n_samplers"),
        *("ctx_other", "devices", "tensor_buft_overrides", "progress_callback", "progress_callback_user_data"),
        *("tensor_split", "kv_overrides", "vocab_only", "check_tensors", "load_mode", "lazy_mode"),
    )
)
"""Fields of llama.cpp's parameters that do not change a state, and pointers. Fields of later versions are facts."""


class ModelFacts:
    """The facts about a loaded model. Its files are read at first use, which takes some hundredths of a second.

    Attributes:
        llama: the model.
    """

    def __init__(self, llama: llama_cpp.Llama) -> None:
        self.llama = llama
        self._files = [Path(llama.model_path)]
        if llama.lora_path is not None:
            self._files.append(Path(llama.lora_path))
        self._loaded = self._stamps()

    def identity(self, context: llama_cpp.llama_context_params, streams: int, n_ctx: int) -> bytes:
        """32 bytes for a context of the model. Raises ``ModelError`` if its files cannot be read or have changed.

        ``streams``: number of sequences with cells of their own; ``n_ctx``: the most tokens of one.
        """
        self.files()
        llama = self.llama
        facts = {
            "files": [fingerprint(path).hex() for path in self._files],
            "lora_scale": llama.lora_scale,
            "kv_overrides": repr(llama.kv_overrides),
            "tensor_split": repr(llama.tensor_split),
            "model": _fields(llama.model_params),
            "context": _fields(context),
            "streams": streams,
            "n_ctx": n_ctx if has_tensor(self._files[0], _CONTEXT_SIZED) else 0,
            "build": [library_version(), llama_cpp.llama_print_system_info().decode(), platform.machine()],
            "devices": [about for _, about, kind in devices() if kind != PROCESSOR],
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).digest()

    def files(self) -> list[Path]:
        """Returns the files of the model. Raises ``ModelError`` if they are no longer the ones that were loaded."""
        if self._loaded is None or self._stamps() != self._loaded:
            raise ModelError(f"{self._files[0]} is no longer the file that was loaded")
        return [file for path in self._files for file in model_files(path)]

    def _stamps(self) -> list[tuple[int, int]] | None:
        """The size and time of each file; None if one cannot be found."""
        try:
            found = [file.stat() for path in self._files for file in model_files(path)]
        except OSError:
            return None
        return [(status.st_size, status.st_mtime_ns) for status in found]


def _fields(parameters: ctypes.Structure) -> dict[str, Any]:
    """The numbers in a structure by the names of their fields, without fields that leave states unchanged."""
    names = [field[0] for field in parameters._fields_ if field[0] not in _NO_FACTS]
    values = {name: getattr(parameters, name) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}
