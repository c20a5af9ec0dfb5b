"""Prompts as a model reads them."""

from __future__ import annotations

from constrain.generation.planning import shown_prompt

__all__ = ["shown_prompt"]
