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
    from constrain.llama.names import model_path

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
        given = default_model_path() if model is None else model
        # resolve() refuses some texts, which are no paths
        key = Path(os.path.realpath(given) if os.path.exists(given) else os.path.abspath(given))  # noqa: PTH100, PTH110
        if key not in _loaded or _loaded[key].is_closed:
            path = model_path(given)
            if isinstance(model, str) and path == Path(model) and not os.path.exists(model):  # noqa: PTH110
                raise ModelError(
                    f"{model!r:.80} cannot be opened: there is no such file; the first argument is the model: a Model, "
                    "the path of a GGUF file on this machine, a name in the list of `constrain models`, or None for "
                    "the demo model; the prompt comes second"
                )
            _loaded.clear()
            _loaded[key] = Model(path)
        return _loaded[key]
