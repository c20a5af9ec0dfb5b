"""A constraint is compiled once, by the program that starts a job, and sent to all actors through the object store."""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain.batch.answering import compile_ahead, depends_on_task
from constrain.engine.compiling import grammar_of, to_compile
from constrain.errors import deep_enough
from constrain.generation.options import compile_options
from constrain.llama.model import default_model_path
from constrain.vocabulary.vocabulary import Vocabulary
from constrain.work import compilation

if TYPE_CHECKING:
    import os

    from constrain.engine.constraint import Packed
    from constrain.generation.options import Options
    from constrain.llama.model import Model

_log = logging.getLogger("constrain.ray")


@dataclass(frozen=True, slots=True)
class Shipped:
    """A compiled constraint on its way to actors.

    Attributes:
        identity: 32 bytes that are equal for equal schemas, options and vocabularies.
        reference: reference to its bytes (``Packed``) in the object store.
    """

    identity: bytes
    reference: Any


def ship(model: str | os.PathLike[str] | None, schema: object, options: Options) -> Shipped | None:
    """Compiles the schema of a job and puts it into the object store. Raises the errors of ``constrain.compile``.

    Returns ``None`` if there is nothing to send: without a schema, with one whose language depends on each row, or if
    the model file is on the nodes only; then actors compile it.
    """
    if schema is None or depends_on_task(schema, options):
        return None
    path = default_model_path() if model is None else Path(model)
    policies = compile_options(options, schema)
    if not path.exists():
        grammar_of(schema, close_objects=True, **policies)
        return None
    with deep_enough(), compilation():
        wanted = to_compile(schema, Vocabulary.from_gguf(path), close_objects=True, **policies)
        constraint = wanted.find() or wanted.compile()
        ray: Any = importlib.import_module("ray")
        return Shipped(wanted.identity(), ray.put(constraint._packed()))


def receive(model: Model, schema: object, options: Options, shipped: Shipped | None) -> None:
    """Prepares the schema of a job for a model: from the bytes that were sent, if they are for its vocabulary."""
    if shipped is None or schema is None:
        compile_ahead(model, schema, options)
        return
    policies = compile_options(options, schema)
    with deep_enough(), compilation():
        wanted = to_compile(schema, model.vocabulary, close_objects=True, **policies)
        if wanted.identity() != shipped.identity:
            _log.warning("this node's model file has another vocabulary than that of the program that sent the job")
            compile_ahead(model, schema, options)
        elif wanted.find() is None:
            ray: Any = importlib.import_module("ray")
            packed: Packed = ray.get(shipped.reference)
            wanted.unpack(packed)
