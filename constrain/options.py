"""Types of keyword arguments, for functions that pass them on: ``**options: Unpack[ChatOptions]``."""

from __future__ import annotations

from constrain.generation.options import ChatOptions, Options
from constrain.language.policies import CompileOptions

__all__ = ["ChatOptions", "CompileOptions", "Options"]
