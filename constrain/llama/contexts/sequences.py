"""A llama.cpp context of several sequences, made on the weights of a loaded model.

Each sequence has KV cells of its own, numbered from the first, as in a context of its own. So attention is summed in
the same order, and each of several simultaneous answers equals the answer that runs alone. Shared cells would save the
copying of prefixes, but rounding would differ, and with it many an answer of a quantized model.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import llama_cpp
from llama_cpp._internals import LlamaContext

from constrain.errors import ModelError
from constrain.llama.contexts.batch import FORCED_TOGETHER, Batch
from constrain.llama.contexts.logits import LogitRows
from constrain.llama.contexts.stored_states import ContextStates
from constrain.llama.threads.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from constrain.llama.contexts.batch import Piece
    from constrain.llama.decoding.sampler import Chain


class Sequences:
    """``count`` sequences of at most ``n_ctx`` tokens each. For one thread at a time.

    Args:
        llama: the loaded model; the context is made with its settings.
        count: number of sequences.
        n_ctx: the most tokens of one sequence.
        flash_attn: whether llama.cpp may choose flash attention: a batch of 16 costs an eighth to a fourth less.
            ``None`` takes the setting of the ``Llama``.

    Attributes:
        n_batch: the most tokens of one evaluation.
        n_outputs: the most tokens of one evaluation after which logits can be read.
        one_state: whether each sequence has only one state, after its last token (recurrent models).
        parameters: parameters of the context.
        pointer: the context, as llama.cpp's pointer.
        path: path of the model.
        threads: the threads that evaluate.

    Raises ``ModelError`` if llama.cpp cannot make the context.
    """

    def __init__(self, llama: llama_cpp.Llama, count: int, n_ctx: int, *, flash_attn: bool | None = None) -> None:
        self.count = count
        self.n_ctx = n_ctx
        self.n_vocab: int = llama.n_vocab()
        self.path: str = llama.model_path
        model = llama._model.model
        self._window: int = llama_cpp.llama_model_n_swa(model)
        self.one_state: bool = llama_cpp.llama_model_is_recurrent(model) or llama_cpp.llama_model_is_hybrid(model)
        self.parameters = _parameters(llama, count, n_ctx, flash_attn=flash_attn)
        self._context = _make_context(llama, self.parameters)
        try:
            self.pointer = self._context.ctx
            self._memory = llama_cpp.llama_get_memory(self.pointer)
            self._states = ContextStates(self.pointer)
            self.n_batch: int = llama_cpp.llama_n_batch(self.pointer)
            self.n_outputs = _most_outputs(count, self.n_batch)
            self._rows = LogitRows(self.pointer, self.n_vocab, self.path)
            self.threads = Threads(self.pointer)
            self._batch = Batch(self.n_batch)
        except BaseException:
            self.close()  # otherwise the model would keep the context
            raise

    @property
    def leaves_a_core(self) -> bool:
        """Whether a core is free for another thread during an evaluation."""
        return self.threads.leave_a_core

    def close(self) -> None:
        """Frees the context; no other method may be called afterwards."""
        self._context.close()  # type: ignore[no-untyped-call]

    def cut(self, sequence: int, length: int) -> bool:
        """Shortens a sequence to its first ``length`` tokens. Returns whether that worked; if not, it is empty."""
        if llama_cpp.llama_memory_seq_rm(self._memory, sequence, length, -1) and self._holds(sequence, length):
            return True
        self.clear(sequence)
        return False

    def copy(self, source: int, target: int, length: int) -> bool:
        """Replaces a sequence by the first ``length`` tokens of another one. Returns whether that worked, as ``cut``.

        The saved state is copied, at once. ``llama_memory_seq_cp`` does not copy before the next evaluation; if
        ``source`` were restored from another state in between, the target would get that state.
        """
        self.clear(target)
        state = self.save(source)
        if state is not None and self.restore(target, state):
            return self.cut(target, length)
        self.clear(target)  # a state that was not restored may leave anything
        return False

    def save(self, sequence: int) -> NDArray[np.uint8] | None:
        """See ``constrain.llama.contexts.stored_states.States``."""
        return self._states.save(sequence)

    def restore(self, sequence: int, state: NDArray[np.uint8]) -> bool:
        """See ``constrain.llama.contexts.stored_states.States``."""
        return self._states.restore(sequence, state)

    def clear(self, sequence: int) -> None:
        """Removes all tokens of a sequence from llama.cpp's KV cache."""
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def length(self, sequence: int) -> int:
        """The number of tokens of a sequence in llama.cpp's KV cache."""
        last: int = llama_cpp.llama_memory_seq_pos_max(self._memory, sequence)
        return last + 1

    def evaluate(self, pieces: Sequence[Piece]) -> list[int]:
        """Evaluates all pieces at once: at most ``n_batch`` tokens, at most one piece of each sequence.

        Returns for each piece the index of its logits. If llama.cpp fails, empties all sequences and
        raises ``ModelError``.
        """
        rows = self._batch.fill(pieces)
        status = self.threads.decode(self._batch.batch)
        if status:
            llama_cpp.llama_memory_clear(self._memory, True)  # noqa: FBT003
            raise ModelError(f"{self.path}: evaluation failed: llama_decode returned {status}")
        return rows

    def logits(self, index: int) -> NDArray[np.float32]:
        """Returns the logits at an index, float32 of shape (n_vocab,): a view, valid until the next evaluation."""
        return self._rows.at(index)

    def sample(self, index: int, chain: Chain) -> int:
        """Samples from the whole vocabulary; llama.cpp also updates the chain."""
        token: int = llama_cpp.llama_sampler_sample(chain.pointer, self.pointer, index)
        return token

    def _holds(self, sequence: int, length: int) -> bool:
        """Whether llama.cpp has exactly ``length`` tokens of a sequence, and all that the next tokens attend to.

        With a sliding window, tokens before a cut may be gone already.
        """
        if self.length(sequence) != length:
            return False
        oldest_needed = max(0, length - self._window) if self._window else 0
        first: int = llama_cpp.llama_memory_seq_pos_min(self._memory, sequence)
        return self.one_state or first <= oldest_needed


def _most_outputs(count: int, n_batch: int) -> int:
    """Returns after how many tokens of one evaluation logits can be read: one of each sequence, or a forced group."""
    return min(n_batch, max(count, FORCED_TOGETHER))


def _parameters(
    llama: llama_cpp.Llama, count: int, n_ctx: int, *, flash_attn: bool | None
) -> llama_cpp.llama_context_params:
    """The settings of the ``Llama``, for several sequences."""
    parameters = llama_cpp.llama_context_params.from_buffer_copy(llama.context_params)
    parameters.n_ctx = n_ctx * count
    parameters.n_seq_max = count
    parameters.n_batch = max(parameters.n_batch, count)
    parameters.n_outputs_max = _most_outputs(count, parameters.n_batch)
    parameters.kv_unified = False
    if flash_attn and parameters.flash_attn_type == llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED:
        parameters.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_AUTO
    elif flash_attn is False:
        parameters.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.swa_full = True  # otherwise a sequence can be cut only near its end
    return parameters


def _make_context(llama: llama_cpp.Llama, parameters: llama_cpp.llama_context_params) -> LlamaContext:
    """A context for several sequences. Freed with the model at the latest."""
    try:
        context = LlamaContext(model=llama._model, params=parameters, verbose=False)
    except ValueError as error:
        raise ModelError(
            f"{llama.model_path}: llama.cpp cannot make a context of {parameters.n_ctx} tokens for "
            f"{parameters.n_seq_max} sequences at once; if there is too little memory, load the model with a smaller "
            "n_ctx or parallel"
        ) from error
    if llama._lora_adapter is not None:
        adapters = (ctypes.c_void_p * 1)(llama._lora_adapter)
        scales = (ctypes.c_float * 1)(llama.lora_scale)
        if llama_cpp.llama_set_adapters_lora(context.ctx, adapters, 1, scales):
            context.close()  # type: ignore[no-untyped-call]
            raise ModelError(f"{llama.model_path}: llama.cpp cannot use {llama.lora_path} for several sequences")
    return context
