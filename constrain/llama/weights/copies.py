"""Prepared copies of models in the cache directory: each is made once for a machine, and found again.

A copy and the record of how it was found have a name made of everything on which the search depends: the weights, the
processor, the threads, the build of llama.cpp, the texts and the limit. Copies are never removed; the folder ``models``
of the cache directory may be deleted while no program uses it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import llama_cpp
from pydantic import TypeAdapter, ValidationError

from constrain.errors import ModelError
from constrain.llama.prebuilt.finding import library_version
from constrain.llama.processor import processor_name
from constrain.llama.threads.counts import default_threads
from constrain.llama.weights.preparing import ALLOWED_DIVERGENCE, Preparation, Prepared
from constrain.private_folders import find_directory, make_private, replace_file
from constrain.vocabulary.gguf.files import fingerprint, model_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.private_folders import Directory

_FORMAT = 1
"""Version of the search; copies of another version are left alone."""

_PREPARED = TypeAdapter(Prepared)


def prepare(
    source: Path,
    target: Path | None = None,
    *,
    n_threads: int | None = None,
    max_divergence: float = ALLOWED_DIVERGENCE,
    texts: Sequence[str] | None = None,
    cache: Directory = None,
    report: Callable[[str, float], None] = lambda _step, _share: None,
) -> Prepared:
    """Returns a copy of a model that evaluates faster on this machine, or says why there is none.

    The search takes from a minute, for the smallest models, to an hour. Nothing else should use the processor.

    Args:
        source: the GGUF file, or the first of several. It is never changed.
        target: the file to write; ``None`` keeps the copy in the cache directory, where the next call finds it.
        n_threads: threads as ``Model`` takes them.
        max_divergence: nats per token by which the copy's probabilities may differ from the original's (their mean
            Kullback-Leibler divergence); ``math.inf`` for the fastest copy.
        texts: sample texts of prompts and answers, two or more; ``None`` for built-in ones.
        cache: the cache directory, as ``constrain.compile`` takes it.
        report: called with a step in words and the share of it that is done, 0 to 1.

    Raises ``ModelError`` if the file is no model or llama.cpp fails, ``OSError`` if the copy cannot be written, and
    ``ValueError`` for arguments that have no meaning.
    """
    if not max_divergence >= 0:
        raise ValueError(f"max_divergence is {max_divergence!r}; it must be a number of nats, 0 or more")
    if texts is not None and len(texts) < 2:
        raise ValueError("give two texts or more: some are for the quantizer, the others to compare the copy")
    if target is not None and target.exists() and any(target.samefile(part) for part in model_files(source)):
        raise ValueError(f"{target} is the original; give another path for the copy")
    search = Preparation(source, n_threads=n_threads, max_divergence=max_divergence, texts=texts, report=report)
    if target is not None:
        return search.write(target)
    folder = _folder(cache)
    name = _name(source, n_threads, max_divergence, texts)
    record, copy = folder / f"{name}.json", folder / f"{name}.gguf"
    if (known := _read(record)) is not None and (known.note or copy.is_file()):
        return replace(known, path=source if known.note else copy)
    found = search.write(copy)
    replace_file(record, json.dumps(asdict(found), default=str).encode())
    return found


def _folder(cache: Directory) -> Path:
    """Returns the folder for copies, which belongs to the user alone. Raises ``ValueError`` and ``OSError``."""
    directory = find_directory(cache)
    if directory is None:
        raise ValueError("there is no cache directory to keep a prepared copy in: CONSTRAIN_CACHE turns it off")
    return make_private(Path(directory) / "models")


def _name(source: Path, n_threads: int | None, max_divergence: float, texts: Sequence[str] | None) -> str:
    """Returns the name of a copy, without its ending."""
    facts = {
        "format": _FORMAT,
        "model": fingerprint(source).hex(),
        "processor": processor_name(),
        "n_threads": default_threads() if n_threads is None else n_threads,
        "build": [library_version(), llama_cpp.llama_print_system_info().decode("utf-8", "replace")],
        "max_divergence": max_divergence,
        "texts": texts if texts is None else list(texts),
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return f"{source.stem}-{digest[:16]}"


def _read(record: Path) -> Prepared | None:
    """Reads a record; a damaged one counts as missing, so that the copy is made anew."""
    try:
        return _PREPARED.validate_json(record.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    except OSError as error:
        raise ModelError(f"{record}: cannot be read: {error.strerror}") from error
