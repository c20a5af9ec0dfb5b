"""Models by name: a ``Model``, a ``llama_cpp.Llama``, a path, or ``None`` for the default model."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from llama_cpp import Llama

    from constrain.llama.model import Model

    AnyModel: TypeAlias = Model | Llama | str | os.PathLike[str] | None

_loading = threading.Lock()
_loaded: dict[Path, Model] = {}


def as_model(model: AnyModel) -> Model:
    """The ``Model`` for any argument that names one. Raises ``TypeError`` and ``ModelError``."""
    from llama_cpp import Llama

    from constrain.errors import ModelError
    from constrain.llama.model import Model, default_model_path

    if isinstance(model, Model):
        return model
    if not (model is None or isinstance(model, (str, os.PathLike, Llama))):
        raise TypeError(f"the model is {model!r:.80}; it must be a Model, the path of one, a llama_cpp.Llama, or None")
    with _loading:
        if isinstance(model, Llama):
            # The Llama holds its Model, so both live equally long.
            known: Model | None = model.__dict__.get("_constrain_model")
            if known is None or known.is_closed:
                known = model.__dict__["_constrain_model"] = Model(model)
            return known
        is_missing = isinstance(model, str) and not os.path.exists(model)  # noqa: PTH110 - it may be too long for a path
        if is_missing and Path(os.path.abspath(str(model))) not in _loaded:  # noqa: PTH100 - resolve() refuses some texts
            raise ModelError(
                f"{model!r:.80} cannot be opened: there is no such file; the first argument is the model: a Model, the "
                "path of a GGUF file on this machine, or None for the demo model; the prompt comes second"
            )
        path = Path(default_model_path() if model is None else model).resolve()
        if path not in _loaded or _loaded[path].is_closed:
            _loaded.clear()
            _loaded[path] = Model(path)
        return _loaded[path]
