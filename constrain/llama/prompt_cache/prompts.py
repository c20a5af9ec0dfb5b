"""Evaluated prompts on disk: a context continues some of them and adds others.

Only the beginning that other requests share is kept: see ``chat.prompt.conversation``. A context looks here when a
prompt comes, and restores a state if it has clearly more of the prompt than main memory. If a long beginning has to be
evaluated now, evaluation stops at its end, the state is copied, and a thread of its own writes the file. Splitting an
evaluation does not change its rounding, as long as no token is evaluated alone.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import ModelError
from constrain.llama.contexts.stored_states import ALWAYS_EVALUATED, common_prefix
from constrain.llama.prompt_cache.files import RejectedFileError, file_bytes, map_state, read_tokens
from constrain.llama.prompt_cache.folder import PROMPT_CACHE_BYTES, PromptFolder
from constrain.private_folders import touch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Tokens = NDArray[np.intc]

MIN_KEPT_TOKENS = 256
"""Tokens of a shared beginning that must have been evaluated now, for it to be kept on disk: at least 256. Fewer are
evaluated again in the time of a few tokens of an answer."""

WORTH_RESTORING = 64
"""Tokens more than main memory has, for which a state on disk is restored: reading a file takes as long as evaluating
some 30 tokens."""

WAITING_STATES = 2
"""Evaluated prompts of one model that wait in main memory to be written to disk; further ones are not kept."""

_FIRST_TOKENS = 64
"""Tokens whose digest begins the name of a file. Prompts that differ in them share nothing worth restoring."""

_TOUCH_SECONDS = 60
"""Seconds between two updates of a used file's modification time."""

_SETTLED_SECONDS = 2
"""Seconds after its last change from which the list of a folder is trusted: file systems count time in steps."""


@dataclass(frozen=True, slots=True)
class KeptPrompt:
    """An evaluated prompt on disk.

    Attributes:
        path: path of the file.
        identity: identity that the file has.
        tokens: its tokens.
        usable: how many of the wanted tokens need no evaluation if its state is restored.
    """

    path: str
    identity: bytes
    tokens: Tokens = field(repr=False)
    usable: int


class PromptCache:
    """The evaluated prompts of one model on disk. Any thread may use it.

    Args:
        directory: cache directory; a folder in it holds the files.
        limit: bytes that all files in the folder may have together.
    """

    def __init__(self, directory: str, limit: int = PROMPT_CACHE_BYTES) -> None:
        self.folder = PromptFolder(directory, limit)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, Callable[[], None]]] = deque()
        self._writing: str | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def has_room(self) -> bool:
        """Whether a state would be written, as far as is known."""
        in_memory = len(self._waiting) + (self._writing is not None)
        return not (self._closed or self.folder.has_failed or in_memory >= WAITING_STATES)

    def is_waiting(self, name: str) -> bool:
        """Whether a file of this name is about to be written."""
        with self._lock:
            return name == self._writing or any(name == each for each, _ in self._waiting)

    def write_later(self, name: str, write: Callable[[], None]) -> None:
        """Has a thread call ``write``, unless the cache is closed or too many states wait already."""
        with self._lock:
            if not self.has_room():
                return
            self._waiting.append((name, write))
            if self._thread is not None:
                return
            # Not a daemon: the interpreter waits at exit until the file is whole. It ends when nothing waits.
            self._thread = threading.Thread(target=self._write_all, name="constrain-prompts", daemon=False)
            try:
                self._thread.start()
            except RuntimeError:  # the system has no thread, or the interpreter ends
                self._thread = None
                self._waiting.clear()

    def _write_all(self) -> None:
        try:
            while True:
                with self._lock:
                    if not self._waiting:
                        self._thread = self._writing = None
                        return
                    self._writing, write = self._waiting.popleft()
                write()
                del write  # frees the state
        except BaseException:  # such as a warning that the program has made an error
            with self._lock:
                self._thread = self._writing = None
                self._waiting.clear()
            raise

    def join(self) -> None:
        """Waits until all states are written."""
        while (thread := self._thread) is not None:
            thread.join()

    def close(self) -> None:
        """Waits until all states are written; further ones are not kept."""
        with self._lock:
            self._closed = True
        self.join()


class ContextPrompts:
    """The evaluated prompts on disk for one context. For one thread at a time.

    Args:
        cache: the cache of the model.
        identify: function that returns the identity of model and context; raises ``ModelError``.
        n_ctx: the most tokens of a sequence.
        one_state: whether a sequence can only continue after its last token (recurrent models).
    """

    def __init__(self, cache: PromptCache, identify: Callable[[], bytes], n_ctx: int, *, one_state: bool) -> None:
        self._cache = cache
        self._folder = cache.folder
        self._identify = identify
        self._identity: bytes | None = None
        self._n_ctx = n_ctx
        self._one_state = one_state
        self._lists: dict[str, _List] = {}

    def find(self, wanted: Tokens, partition: str = "") -> KeptPrompt | None:
        """The evaluated prompt on disk that has most of the beginning of ``wanted``; None if none has enough."""
        if len(wanted) <= WORTH_RESTORING or not self._folder.open():
            return None
        found = self._place(partition)
        if found is None:
            return None
        path, identity = found
        listed = self._list(path)
        best = None
        for name in () if listed is None else listed.names.get(_digest(wanted[:_FIRST_TOKENS]), ()):
            tokens = self._tokens(listed, f"{path}/{name}", identity)
            usable = 0 if tokens is None else self._usable(tokens, wanted)
            if tokens is not None and usable > (best.usable if best is not None else WORTH_RESTORING):
                best = KeptPrompt(f"{path}/{name}", identity, tokens, usable)
        return best

    def restore(self, kept: KeptPrompt, restore: Callable[[NDArray[np.uint8]], bool]) -> Tokens | None:
        """Restores the state of an evaluated prompt from the mapped file; returns the tokens that are there now.

        None if the file cannot be used; no tokens if llama.cpp does not take the state: see ``States.restore``.
        """
        state = self._load(kept)
        if state is None:
            return None
        if restore(state):
            return kept.tokens
        self._folder.discard(kept.path, f"{kept.path} does not fit the model")
        return kept.tokens[:0]

    def _load(self, kept: KeptPrompt) -> NDArray[np.uint8] | None:
        """The state of an evaluated prompt, as a view of the mapped file; None if the file cannot be used."""
        try:
            tokens, state, used = map_state(kept.path, kept.identity)
        except FileNotFoundError:  # another process has made room
            return None
        except OSError as error:
            self._folder.warn_unused(error)
            return None
        except RejectedFileError as error:
            self._folder.discard(kept.path, error)
            return None
        if not np.array_equal(tokens, kept.tokens):
            return None
        touch(kept.path, used, _TOUCH_SECONDS)
        return state

    def end_to_keep(self, prompt: Tokens, known: int, shared: Callable[[], int] | None, partition: str = "") -> int:
        """The number of tokens of a prompt after which its state is to be kept; 0 for none.

        Args:
            prompt: tokens of the prompt.
            known: how many of them need no evaluation.
            shared: function that returns how many of them other requests share; None if nothing may be kept.
            partition: the partition of the request.
        """
        most = len(prompt) - ALWAYS_EVALUATED
        if shared is None or most - known < MIN_KEPT_TOKENS or not self._cache.has_room():
            return 0
        end = min(shared(), most)
        if end - known < MIN_KEPT_TOKENS or not self._is_identified():
            return 0
        return 0 if self._is_there(prompt[:end], partition) else end

    def keep(self, tokens: Tokens, state: NDArray[np.uint8] | None, partition: str = "") -> None:
        """Has a state written to disk by another thread; None, for no state, does nothing."""
        if state is None or not self._is_identified() or file_bytes(len(tokens), len(state)) > self._folder.limit:
            return
        assert self._identity is not None
        name = _file_name(tokens)
        write = partial(self._folder.write, self._identity, partition, name, tokens.copy(), state)
        self._cache.write_later(_waiting_name(partition, name), write)

    def _is_there(self, tokens: Tokens, partition: str) -> bool:
        name = _file_name(tokens)
        if self._cache.is_waiting(_waiting_name(partition, name)):
            return True
        found = self._place(partition)
        return found is not None and os.path.exists(f"{found[0]}/{name}")  # noqa: PTH110

    def _usable(self, tokens: Tokens, wanted: Tokens) -> int:
        length = common_prefix(tokens, wanted[:-ALWAYS_EVALUATED])
        return 0 if len(tokens) > self._n_ctx or (self._one_state and length < len(tokens)) else length

    def _is_identified(self) -> bool:
        """Whether model and context are known to be those of the files."""
        if self._identity is None and not self._folder.has_failed:
            try:
                self._identity = self._identify()
            except ModelError as error:
                self._folder.has_failed = True
                self._folder.warn_unused(error)
        return self._identity is not None

    def _place(self, partition: str) -> tuple[str, bytes] | None:
        if not self._is_identified():
            return None
        assert self._identity is not None
        return self._folder.find(self._identity, partition)

    def _list(self, path: str) -> _List | None:
        """The names of the files in a folder, read again if it has changed."""
        try:
            changed = os.stat(path).st_mtime_ns  # noqa: PTH116 - every request comes by
            known = self._lists.get(path)
            if known is not None and known.changed == changed:
                return known
            names = os.listdir(path)  # noqa: PTH208
        except OSError:
            self._lists.pop(path, None)
            return None
        is_settled = time.time_ns() - changed > _SETTLED_SECONDS * 10**9
        listed = _List(changed if is_settled else 0)
        for name in names:
            if not name.endswith(".tmp"):
                listed.names.setdefault(name.partition("-")[0], []).append(name)
        if known is not None:
            paths = {f"{path}/{name}" for name in names}
            listed.tokens = {each: tokens for each, tokens in known.tokens.items() if each in paths}
        self._lists[path] = listed
        return listed

    def _tokens(self, listed: _List | None, path: str, identity: bytes) -> Tokens | None:
        """The tokens of a file; None if it cannot be used."""
        assert listed is not None
        if path not in listed.tokens:
            try:
                listed.tokens[path] = read_tokens(path, identity)
            except FileNotFoundError:
                return None
            except OSError as error:
                self._folder.warn_unused(error)
                return None
            except RejectedFileError as error:
                self._folder.discard(path, error)
                return None
        return listed.tokens[path]


@dataclass(slots=True)
class _List:
    """The files of a folder: names by the digest of their first tokens, and tokens by path, as far as they were read.

    ``changed``: modification time of the folder, in nanoseconds; 0 if it may be changed without changing its time.
    """

    changed: int
    names: dict[str, list[str]] = field(default_factory=dict)
    tokens: dict[str, Tokens] = field(default_factory=dict)


def _file_name(tokens: Tokens) -> str:
    return f"{_digest(tokens[:_FIRST_TOKENS])}-{len(tokens)}-{_digest(tokens)}"


def _waiting_name(partition: str, name: str) -> str:
    return f"{partition}/{name}"


def _digest(tokens: Tokens) -> str:
    return hashlib.blake2b(tokens.tobytes(), digest_size=12).hexdigest()
