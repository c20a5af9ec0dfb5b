"""DRY samplers of llama.cpp: copies of those made before, since texts that end repetitions take long to read."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import llama_cpp

if TYPE_CHECKING:
    from constrain.llama.decoding.sampling import Sampling

_KEPT = 8
"""Samplers that are kept for one model; beyond it, the least recently used are freed.

llama.cpp compares each text that ends repetitions with all tokens, which takes a tenth of a second and more.
"""


class DrySamplers:
    """Makes the DRY samplers for one model. ``vocabulary``: llama.cpp's pointer to its vocabulary."""

    def __init__(self, vocabulary: Any) -> None:
        self._vocabulary = vocabulary
        self._made: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._lock = threading.Lock()
        self._free = weakref.finalize(self, _free, self._made)

    def make(self, sampling: Sampling, window: int) -> Any:
        """Returns a sampler that looks for repetitions in the last ``window`` tokens; the caller frees it."""
        numbers = sampling.dry_multiplier, sampling.dry_base, sampling.dry_allowed_length, window
        key = (*numbers, sampling.dry_sequence_breakers)
        with self._lock:
            if key not in self._made:
                breakers = [each.encode() for each in sampling.dry_sequence_breakers]
                texts = (ctypes.c_char_p * len(breakers))(*breakers)
                self._made[key] = llama_cpp.llama_sampler_init_dry(self._vocabulary, *numbers, texts, len(breakers))
            self._made.move_to_end(key)
            if len(self._made) > _KEPT:
                llama_cpp.llama_sampler_free(self._made.popitem(last=False)[1])
            return llama_cpp.llama_sampler_clone(self._made[key])


def _free(made: OrderedDict[tuple[Any, ...], Any]) -> None:
    for sampler in made.values():
        llama_cpp.llama_sampler_free(sampler)
