"""Continuations of a prompt, evaluated together as a tree: what the model thinks of each.

    prompt --+-- pos --+-- itive <end>
             |         +-- t <end>
             +-- neg ---- ative <end>

The cells of the prompt are shared by all branches, and so are those of a beginning that several have in common. Each
branch is a sequence of llama.cpp; a token that several branches share belongs to all of their sequences.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np
from llama_cpp._internals import LlamaContext

from constrain.errors import ModelError
from constrain.llama.decoding.distribution import log_sum
from constrain.llama.threads.openmp import release_workers
from constrain.llama.threads.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

_BRANCHES = 32
"""Continuations evaluated together; more come one group after the other."""

_PIECE = 64
"""Tokens evaluated at once; llama.cpp keeps the logits of each, a megabyte for the largest vocabularies."""


@dataclass(eq=False, slots=True)
class Node:
    """A token of a tree.

    Attributes:
        token: id of the token; -1 for the root, which stands for the prompt.
        depth: number of tokens from the prompt to this one.
        branches: numbers of the continuations that have the token.
        ends: numbers of the continuations that end with it.
        following: the tokens that follow.
        logprob: logarithm of the probability of all tokens from the prompt to this one.
    """

    token: int
    depth: int
    branches: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    following: dict[int, Node] = field(default_factory=dict)
    logprob: float = 0.0


def make_tree(continuations: Sequence[Sequence[int]]) -> Node:
    """Returns the root of the prefix tree of some continuations, each of which may be empty."""
    root = Node(-1, 0)
    for number, tokens in enumerate(continuations):
        node = root
        node.branches.append(number)
        for token in tokens:
            node = node.following.setdefault(token, Node(token, node.depth + 1))
            node.branches.append(number)
        node.ends.append(number)
    return root


class TokenTrees:
    """A context for trees, on the weights of a loaded model. Any thread may use it; trees come one at a time.

    Args:
        llama: the loaded model; the context has the same settings.
        n_ctx: the most tokens of a prompt and a tree.

    Raises ``ModelError`` if llama.cpp cannot make the context, and for recurrent models, whose states have no tree.
    """

    def __init__(self, llama: llama_cpp.Llama, n_ctx: int) -> None:
        self._path: str = llama.model_path
        self._n_ctx = n_ctx
        self._n_vocab: int = llama.n_vocab()
        self._piece = min(_PIECE, n_ctx)
        self._in_use = threading.Lock()
        self._is_closed = False
        self._prompt: list[int] = []  # in the cells of every sequence
        self._context = _make_context(llama, n_ctx, self._piece)
        self._memory = llama_cpp.llama_get_memory(self._context.ctx)
        self._threads = Threads(self._context.ctx)
        self._batch = llama_cpp.llama_batch_init(self._piece, 0, _BRANCHES)

    def close(self) -> None:
        """Frees the context once no thread uses it; after that, ``logprobs`` raises ``ModelError``."""
        with self._in_use:
            if not self._is_closed:
                llama_cpp.llama_batch_free(self._batch)
            self._is_closed = True
            self._context.close()  # type: ignore[no-untyped-call]

    def logprobs(
        self, prompt: Sequence[int], continuations: Sequence[Sequence[int]], ends: Collection[int]
    ) -> list[float]:
        """Returns the logarithm of the probability that the model writes each continuation and then ends.

        Args:
            prompt: token ids of the prompt, at least one.
            continuations: token ids of each continuation.
            ends: tokens that end a generation; their probabilities add up.

        Raises ``ModelError`` if prompt and tree do not fit into the context, or llama.cpp fails.
        """
        longest = max(map(len, continuations))
        groups = [continuations[begin : begin + _BRANCHES] for begin in range(0, len(continuations), _BRANCHES)]
        trees = [make_tree(group) for group in groups]
        room = self._n_ctx - len(prompt)
        if (needed := max(sum(1 for _ in _below(tree)) for tree in trees)) > room or longest > room:
            raise ModelError(
                f"{self._path}: the prompt has {len(prompt)} tokens and the options {needed}, but the context holds "
                f"{self._n_ctx}; load the model with a larger n_ctx, or give fewer options"
            )
        with self._in_use:
            if self._is_closed:
                raise ModelError(f"the model {self._path} is closed")
            try:
                logits = self._evaluate_prompt(prompt)
                return [each for tree in trees for each in self._walk(tree, logits, len(prompt), sorted(ends))]
            except BaseException:
                self._prompt = []
                raise
            finally:
                release_workers()

    def _evaluate_prompt(self, prompt: Sequence[int]) -> NDArray[np.float32]:
        """Evaluates the tokens of a prompt that are not known from the last one; returns the logits after it."""
        known = 0
        while known < min(len(prompt) - 1, len(self._prompt)) and prompt[known] == self._prompt[known]:
            known += 1
        if not self._cut(known):
            known = 0
        every = list(range(_BRANCHES))
        for begin in range(known, len(prompt), self._piece):
            piece = prompt[begin : begin + self._piece]
            self._decode([(token, begin + at, every) for at, token in enumerate(piece)], only_last=True)
        self._prompt = list(prompt)
        logits: NDArray[np.float32] = self._logits((len(prompt) - known - 1) % self._piece).copy()
        return logits

    def _cut(self, length: int) -> bool:
        """Removes all tokens behind a position from all sequences; returns whether those before it are still there."""
        kept = length > 0 and bool(llama_cpp.llama_memory_seq_rm(self._memory, -1, length, -1))
        if kept and llama_cpp.llama_memory_seq_pos_min(self._memory, 0) == 0:
            return True
        llama_cpp.llama_memory_clear(self._memory, False)  # noqa: FBT003 - the data may stay
        return False

    def _walk(self, root: Node, logits: NDArray[np.float32], start: int, ends: list[int]) -> list[float]:
        """Evaluates a tree behind the prompt; returns the result of each continuation, in their order."""
        found = [0.0] * len(root.branches)
        self._judge(root, logits, ends, found)
        waiting = list(_below(root))
        for begin in range(0, len(waiting), self._piece):
            piece = waiting[begin : begin + self._piece]
            self._decode([(node.token, start + node.depth - 1, node.branches) for node in piece])
            for row, node in enumerate(piece):
                self._judge(node, self._logits(row), ends, found)
        if not self._cut(start):
            self._prompt = []
        return found

    def _judge(self, node: Node, logits: NDArray[np.float32], ends: list[int], found: list[float]) -> None:
        """Sets the results of continuations that end with a token, and the probabilities of the next tokens."""
        total = log_sum(logits)
        for token, following in node.following.items():
            following.logprob = node.logprob + float(logits[token]) - total
        for number in node.ends:
            found[number] = node.logprob + log_sum(logits[ends]) - total

    def _decode(self, tokens: Sequence[tuple[int, int, list[int]]], *, only_last: bool = False) -> None:
        """Evaluates tokens with their positions and sequences; ``only_last``: only the last one's logits are read."""
        batch = self._batch
        batch.n_tokens = len(tokens)
        for at, (token, position, sequences) in enumerate(tokens):
            batch.token[at], batch.pos[at], batch.n_seq_id[at] = token, position, len(sequences)
            for number, sequence in enumerate(sequences):
                batch.seq_id[at][number] = sequence
            batch.logits[at] = not only_last or at == len(tokens) - 1
        status = self._threads.decode(batch)
        if status:
            raise ModelError(f"{self._path}: evaluation failed: llama_decode returned {status}")

    def _logits(self, index: int) -> NDArray[np.float32]:
        pointer = llama_cpp.llama_get_logits_ith(self._context.ctx, index)
        if not pointer:
            raise ModelError(f"{self._path}: llama.cpp has no logits for the token {index} of its last evaluation")
        return np.ctypeslib.as_array(pointer, shape=(self._n_vocab,))


def _below(root: Node) -> Iterator[Node]:
    """The tokens of a tree, level by level."""
    level = list(root.following.values())
    while level:
        yield from level
        level = [following for node in level for following in node.following.values()]


def _make_context(llama: llama_cpp.Llama, n_ctx: int, piece: int) -> LlamaContext:
    """A context with the settings of the ``Llama``, for sequences that share cells. Freed with the model."""
    model = llama._model.model
    if llama_cpp.llama_model_is_recurrent(model) or llama_cpp.llama_model_is_hybrid(model):
        raise ModelError(f"{llama.model_path}: recurrent models cannot choose among options; use generate with an enum")
    parameters = llama_cpp.llama_context_params.from_buffer_copy(llama.context_params)
    parameters.n_ctx = n_ctx
    parameters.n_batch = parameters.n_ubatch = parameters.n_outputs_max = piece
    parameters.n_seq_max = _BRANCHES
    parameters.kv_unified = True
    parameters.swa_full = True  # otherwise the prompt could not be kept
    try:
        return LlamaContext(model=llama._model, params=parameters, verbose=False)
    except ValueError as error:
        raise ModelError(
            f"{llama.model_path}: llama.cpp cannot make a context of {n_ctx} tokens for options; if there is too "
            "little memory, load the model with a smaller n_ctx"
        ) from error
