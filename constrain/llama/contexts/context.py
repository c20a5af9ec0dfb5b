"""A llama.cpp context with one sequence of tokens; successive calls reuse their common beginning."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np

from constrain.errors import ModelError
from constrain.llama.binding import Candidates
from constrain.llama.contexts.batch import Batch, Piece, next_group
from constrain.llama.contexts.logits import LogitRows
from constrain.llama.contexts.stored_states import ContextStates, StoredStates, match_groups, reusable_prefix
from constrain.llama.decoding.dry import DrySamplers
from constrain.llama.prompt_cache.prompts import WORTH_RESTORING
from constrain.llama.threads.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from constrain.llama.decoding.sampler import Chain
    from constrain.llama.prompt_cache.prompts import ContextPrompts

_ONLY_SEQUENCE = 0


class Context:
    """Evaluates tokens with the context of a ``llama_cpp.Llama``.

    The record of the tokens in the KV cache is the ``Llama``'s own (``input_ids``, ``n_tokens``). So calls of the
    ``Llama`` and calls of this class may alternate, and each reuses the tokens of the other. Without ``keep_prompts``
    this class evaluates every prompt from its beginning.

    Attributes:
        prompts: evaluated prompts on disk; ``None`` for none.
        pointer: the context, as llama.cpp's pointer.
    """

    def __init__(self, llama: llama_cpp.Llama, *, keep_prompts: bool = True) -> None:
        self._llama = llama
        self._keep_prompts = keep_prompts
        self.pointer = llama._ctx.ctx
        self._memory = llama_cpp.llama_get_memory(self.pointer)
        if llama.context_params.embeddings or self._memory is None:
            raise ModelError(
                f"{llama.model_path}: this model was loaded for embeddings, not to generate text; load it without "
                "embedding=True, or take a model that generates text"
            )
        if llama_cpp.llama_model_has_encoder(llama._model.model):
            raise ModelError(
                f"{llama.model_path}: models with an encoder, such as T5, are not supported; take a decoder-only "
                "model, such as a chat or instruct model"
            )
        self._window: int = llama_cpp.llama_model_n_swa(llama._model.model)
        self.one_state: bool = llama_cpp.llama_model_is_recurrent(
            llama._model.model
        ) or llama_cpp.llama_model_is_hybrid(llama._model.model)
        self._n_batch: int = llama_cpp.llama_n_batch(self.pointer)
        self.n_ctx: int = min(llama_cpp.llama_n_ctx_seq(self.pointer), len(llama.input_ids))
        self.n_vocab: int = llama.n_vocab()
        self._states = ContextStates(self.pointer)
        self._stored_states = StoredStates(self._states, self.n_ctx, one_state=self.one_state)
        self.threads = Threads(self.pointer)
        self.candidates = Candidates(self.n_vocab)
        self._token = (llama_cpp.llama_token * 1)()
        self._single = llama_cpp.llama_batch_get_one(self._token, 1)
        self._batch = Batch(self._n_batch)
        self._rows = LogitRows(self.pointer, self.n_vocab, llama.model_path)
        self.prompts: ContextPrompts | None = None
        self.dry = DrySamplers(llama_cpp.llama_model_get_vocab(llama._model.model))

    def clear(self) -> None:
        """Removes all tokens."""
        self._keep(0)

    @property
    def leaves_a_core(self) -> bool:
        """Whether a core is free for another thread during an evaluation."""
        return self.threads.leave_a_core

    def prefill(
        self,
        tokens: Sequence[int],
        deadline: float | None = None,
        *,
        n_forced: int = 0,
        read: Callable[[NDArray[np.float32]], None] | None = None,
        shared: Callable[[], int] | None = None,
    ) -> int:
        """Evaluates a prompt; returns how many of its tokens were known from earlier calls, or from disk.

        The last two tokens of the prompt are always evaluated (see ``reusable_prefix``), and the forced tokens. Returns
        early, with the logits of an inner token, once ``time.monotonic()`` is past ``deadline``.

        Args:
            tokens: the prompt, and perhaps the forced tokens that begin the answer.
            deadline: the ``time.monotonic()`` after which no further evaluation begins.
            n_forced: number of forced tokens at the end.
            read: called with the logits before each forced token, float32 of shape (n_vocab,): a view that the next
                evaluation overwrites. ``None`` has llama.cpp compute only the logits after the last token.
            shared: function that returns how many tokens other prompts begin with, too; their evaluation is kept on
                disk. ``None`` neither uses nor keeps anything there.
        """
        wanted = np.asarray(tokens, dtype=np.intc)
        n_prompt = len(wanted) - n_forced
        on_disk = self.prompts if self._keep_prompts and shared is not None else None
        known = self._keep(self._exchange(wanted[:n_prompt], on_disk) if self._keep_prompts else 0)
        done = known if on_disk is None else on_disk.end_to_keep(wanted[:n_prompt], known, shared) or known
        if on_disk is not None and done > known:
            self._evaluate(wanted[known:done], n_prompt - 1 - known, None, deadline)
            if self._llama.n_tokens < done or (deadline is not None and time.monotonic() > deadline):
                return known
            on_disk.keep(wanted[:done], self._states.save(_ONLY_SEQUENCE))
        self._evaluate(wanted[done:], n_prompt - 1 - done, read, deadline)
        return known

    def decode(self, tokens: Sequence[int], read: Callable[[NDArray[np.float32]], None] | None = None) -> None:
        """Evaluates further tokens, at most as many as the context has room for; ``logits`` are those of the last.

        ``read``: called with the logits before each token but the first, as in ``prefill``.
        """
        llama = self._llama
        position = llama.n_tokens
        if len(tokens) == 1:  # the common case, without an array
            self._token[0] = llama.input_ids[position] = tokens[0]
            self._decode(self._single)
            llama.n_tokens = position + 1
            return
        self._evaluate(np.asarray(tokens, dtype=np.intc), 0, read)

    def decode_with(self, tokens: Sequence[int], guesses: Sequence[int]) -> None:
        """Evaluates tokens and guesses behind them together: no more than fit into a batch.

        Then there are ``logits`` after the last of the tokens and after each guess.
        """
        llama = self._llama
        position = llama.n_tokens
        together = np.asarray([*tokens, *guesses], dtype=np.intc)
        self._batch.fill([Piece(_ONLY_SEQUENCE, position, together, 1 + len(guesses))])
        self._decode(self._batch.batch)
        llama.input_ids[position : position + len(together)] = together
        llama.n_tokens = position + len(together)

    def remove(self, count: int) -> None:
        """Removes the last tokens: guesses that did not come true. Raises ``ModelError`` if llama.cpp cannot."""
        length = self._llama.n_tokens - count
        if self._keep(length) != length:
            raise ModelError(f"{self._llama.model_path}: llama.cpp cannot remove tokens; load it without speculate")

    @property
    def can_remove(self) -> bool:
        """Whether ``remove`` works: recurrent models have only one state, and a small cache loses old tokens."""
        return not self.one_state and (not self._window or bool(self._llama.context_params.swa_full))

    def replace(self, groups: Sequence[Sequence[int]]) -> bool:
        """Makes the sequence consist of these tokens, for the logits after the last one.

        Groups that the sequence begins with are kept; the others are evaluated, one at a time. Returns whether any were
        kept. Only for a sequence that ``prefill`` began.
        """
        wanted, known, ends = match_groups(self._llama.input_ids[: self._llama.n_tokens], groups)
        done = kept = self._keep(known)
        for end in ends:
            self._evaluate(wanted[done:end], 0)
            done = end
        return kept > 0

    def logits(self, row: int = -1) -> NDArray[np.float32]:
        """The logits after a token of the last evaluation, float32 of shape (n_vocab,).

        ``row``: number of the token there; -1 for the last one. The view is valid until the next evaluation.
        """
        return self._rows.at(row)

    def sample(self, chain: Chain, row: int = -1) -> int:
        """Samples from the whole vocabulary; llama.cpp also updates the chain. ``row``: see ``logits``."""
        token: int = llama_cpp.llama_sampler_sample(chain.pointer, self.pointer, row)
        return token

    def _evaluate(
        self,
        tokens: NDArray[np.intc],
        first_read: int,
        read: Callable[[NDArray[np.float32]], None] | None = None,
        deadline: float | None = None,
    ) -> None:
        """Evaluates tokens in as few batches as possible; starts no batch after ``deadline``.

        The last batch has more than one token, unless it has no other: one token alone is rounded differently.

        ``read`` is called with the logits after each token from number ``first_read`` on, except the last one.
        """
        llama = self._llama
        done = 0
        while done < len(tokens) and not (deadline is not None and done > 0 and time.monotonic() > deadline):
            group = next_group(done, len(tokens), first_read)
            count = min(group, self._n_batch)
            count -= group - count == 1 and count > 1
            unread = count - 1 if read is None else min(count - 1, max(0, first_read - done))
            position = llama.n_tokens
            chunk = tokens[done : done + count]
            self._batch.fill([Piece(_ONLY_SEQUENCE, position, chunk, count - unread)])
            self._decode(self._batch.batch)
            llama.input_ids[position : position + count] = chunk
            llama.n_tokens = position + count
            if read is not None:
                for number in range(max(done, first_read), min(done + count, len(tokens) - 1)):
                    read(self._rows.at(number - done))
            done += count

    def _exchange(self, wanted: NDArray[np.intc], on_disk: ContextPrompts | None) -> int:
        """Makes room, and stores a sequence worth keeping; returns how many tokens of ``wanted`` are known."""
        llama = self._llama
        llama.n_tokens = min(llama.n_tokens, self._held())
        present = llama.input_ids[: llama.n_tokens]
        kept = None if on_disk is None else on_disk.find(wanted)
        least = 0 if kept is None else kept.usable - WORTH_RESTORING
        now = self._stored_states.exchange(_ONLY_SEQUENCE, present, wanted, least)
        if on_disk is not None and kept is not None and self._stored_states.usable(now, wanted) <= least:
            restored = on_disk.restore(kept, partial(self._states.restore, _ONLY_SEQUENCE))
            now = now if restored is None else restored
        if now is not present:
            llama.input_ids[: len(now)] = now
            llama.n_tokens = len(now)
        return reusable_prefix(now, wanted)

    def _held(self) -> int:
        """The number of tokens in llama.cpp's KV cache."""
        last: int = llama_cpp.llama_memory_seq_pos_max(self._memory, _ONLY_SEQUENCE)
        return last + 1

    def _keep(self, length: int) -> int:
        """Shortens the sequence to its first ``length`` tokens, or to none if llama.cpp's memory cannot do that.

        Recurrent models have only one state, after the last token. With a sliding window, tokens before the cut may be
        gone already.
        """
        llama = self._llama
        memory = self._memory
        usable = length > 0 and not (self.one_state and length != self._held())
        usable = usable and llama_cpp.llama_memory_seq_rm(memory, _ONLY_SEQUENCE, length, -1)
        if usable:
            first = llama_cpp.llama_memory_seq_pos_min(memory, _ONLY_SEQUENCE)
            oldest_needed = max(0, length - self._window) if self._window else 0
            usable = self._held() == length and (self.one_state or first <= oldest_needed)
        if not usable:
            llama_cpp.llama_memory_clear(memory, True)  # noqa: FBT003
            length = 0
        llama.n_tokens = length
        llama._requires_eval = True
        return length

    def _decode(self, batch: llama_cpp.llama_batch) -> None:
        status = self.threads.decode(batch)
        if status:
            llama_cpp.llama_memory_clear(self._memory, True)  # noqa: FBT003
            self._llama.n_tokens = 0
            reason = "no room is left in the context" if status == 1 else f"llama_decode returned {status}"
            raise ModelError(f"{self._llama.model_path}: evaluation failed: {reason}")
