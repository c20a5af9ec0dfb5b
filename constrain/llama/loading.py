"""Loading a GGUF file with llama.cpp."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import warnings
from typing import TYPE_CHECKING, Any

import llama_cpp

from constrain.errors import ModelError
from constrain.llama.binding import gpus
from constrain.llama.layouts.check import uses_extra_buffers
from constrain.llama.prebuilt.finding import why_no_gpu
from constrain.llama.threads.counts import default_threads
from constrain.vocabulary.gguf.metadata import read_metadata
from constrain.vocabulary.vocabulary import Vocabulary, tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from constrain.vocabulary.gguf.metadata import Metadata
    from constrain.vocabulary.tokenizer import Tokenizer

_DEFAULT_CONTEXT = 4096
"""Tokens of context if the caller gives no number: enough for most prompts, and small in memory."""

CONTEXT_SIZES = (0, 1 << 24)
"""Least and greatest ``n_ctx`` in tokens; 0 is the size of the model's own context.

For each token, llama.cpp writes some 50 bytes of main memory (800 MiB at this size) before it checks whether keys and
values fit; and it counts tokens in 32 bits. No model was trained for contexts of this size.
"""

_ALL_LAYERS = (1 << 31) - 1
"""Number of layers by which llama-cpp-python means all of a model: those for which there is a GPU."""

_LOG_ERROR, _LOG_CONTINUED = 4, 5
"""Values of ``ggml_log_level``: an error, and the continuation of the line before."""

_one_at_a_time = threading.Lock()
"""Guards llama.cpp's log callback, of which the process has only one."""


class Llama(llama_cpp.Llama):
    """A ``llama_cpp.Llama`` that uses llama.cpp's own layouts of weights only where they are known to work.

    llama.cpp chooses the layouts when it loads weights; turning off those for AMX also turns off all others.
    """

    @property
    def model_params(self) -> llama_cpp.llama_model_params:
        """The parameters with which the weights are loaded."""
        return self._model_params

    @model_params.setter
    def model_params(self, parameters: llama_cpp.llama_model_params) -> None:
        if not uses_extra_buffers():
            parameters.use_extra_bufts = False
        self._model_params = parameters


def load(
    path: Path,
    n_ctx: int | None,
    n_gpu_layers: int,
    n_threads: int | None,
    *,
    verbose: bool,
    lock_memory: bool = False,
    flash_attn: bool = False,
    receive: Callable[[str], None] = lambda _: None,
) -> llama_cpp.Llama:
    """Loads a model. Takes arguments as ``Model`` does.

    ``flash_attn``: whether the context uses flash attention. ``receive``: called with each message that llama.cpp logs,
    unless ``verbose``. Warns if layers are to go to a GPU, and there is none. Raises ``ModelError`` if llama.cpp cannot
    load the file or cannot lock its memory.
    """
    n_ctx = context_size(read_metadata(path), n_ctx)
    if n_threads is None:
        n_threads = default_threads()
    options = {"n_ctx": n_ctx, "n_gpu_layers": n_gpu_layers, "n_threads": n_threads, "n_threads_batch": n_threads}
    refusals: list[str] = []

    def hear(message: str) -> None:
        if "mlock" in message and message.startswith("warning"):
            refusals.append(message.removeprefix("warning: ").splitlines()[0])
        receive(message)

    if 0 < n_gpu_layers < _ALL_LAYERS and not gpus():
        why = f" ({reason})" if (reason := why_no_gpu()) else "; it may be built without a back-end for one"
        warnings.warn(
            f"n_gpu_layers is {n_gpu_layers}, but llama.cpp found no GPU{why}; the processor computes all layers",
            RuntimeWarning,
            stacklevel=3,  # the caller of Model
        )
    llama = _open(path, verbose=verbose, receive=hear, use_mlock=lock_memory, flash_attn=flash_attn, **options)
    if refusals:
        llama.close()
        raise ModelError(
            f"{path}: its memory cannot be locked: {refusals[0]}; let this user lock more memory (ulimit -l), or leave "
            "out lock_memory"
        )
    return llama


def context_size(metadata: Metadata, n_ctx: int | None) -> int:
    """The size of the context in tokens for an argument ``n_ctx`` of ``Model``."""
    trained = metadata.integer(f"{metadata.text('general.architecture')}.context_length") or _DEFAULT_CONTEXT
    if n_ctx is None:
        return min(trained, _DEFAULT_CONTEXT)
    if not CONTEXT_SIZES[0] <= n_ctx <= CONTEXT_SIZES[1]:
        raise ValueError(f"n_ctx is {n_ctx}; it must be between 0 (the model's own) and {CONTEXT_SIZES[1]}")
    return n_ctx or trained


def load_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary of a file, with ``encode``; reads no weights. Raises ``ModelError``."""
    read_metadata(path)
    return Vocabulary.from_llama(_open(path, vocab_only=True, verbose=False))


def load_tokenizer(path: Path) -> tuple[Tokenizer, str]:
    """The tokenizer of a file, and its template for tools; reads no weights. Raises ``ModelError``."""
    read_metadata(path)
    llama = _open(path, vocab_only=True, verbose=False)
    return tokenizer_of(llama), templates_of(llama)[1]


def templates_of(llama: llama_cpp.Llama) -> tuple[str, str]:
    """The chat template of a file, ``""`` for none, and the one for conversations with tools, if there is another."""
    own: str = llama.metadata.get("tokenizer.chat_template", "")
    return own, llama.metadata.get("tokenizer.chat_template.tool_use", own)


def _open(
    path: Path, *, verbose: bool, receive: Callable[[str], None] = lambda _: None, **options: Any
) -> llama_cpp.Llama:
    with collected_errors(verbose=verbose, receive=receive) as errors:
        try:
            return Llama(str(path), verbose=verbose, **options)
        except (ValueError, RuntimeError) as error:
            reason = " ".join("".join(errors).split()) or str(error)
            if "llama_context" in str(error):  # the model was loaded, but its context failed
                reason += f"; there may be too little memory for {options['n_ctx']} tokens: take a smaller n_ctx"
            raise ModelError(f"{path}: llama.cpp cannot load it: {reason}") from error


@contextlib.contextmanager
def collected_errors(*, verbose: bool, receive: Callable[[str], None] = lambda _: None) -> Iterator[list[str]]:
    """Collects the errors that llama.cpp logs instead of printing them, unless ``verbose``. One thread at a time."""
    if verbose:
        with _one_at_a_time:
            yield []
        return
    with llama_log(receive) as errors:
        yield errors


@contextlib.contextmanager
def llama_log(receive: Callable[[str], None] = lambda _: None) -> Iterator[list[str]]:
    """Has llama.cpp log to ``receive``, message by message; yields the list of its errors. One thread at a time."""
    errors: list[str] = []
    level = 0

    @llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
    def collect(new_level: int, text: bytes, _: Any) -> None:
        nonlocal level
        level = level if new_level == _LOG_CONTINUED else new_level
        message = text.decode("utf-8", "replace")
        if level == _LOG_ERROR:
            errors.append(message)
        receive(message)

    with _one_at_a_time:
        former = llama_cpp.llama_log_callback()
        data = ctypes.c_void_p()
        llama_cpp.llama_log_get(ctypes.byref(former), ctypes.byref(data))
        llama_cpp.llama_log_set(collect, None)
        try:
            yield errors
        finally:
            llama_cpp.llama_log_set(former, data)
