"""The native kernel: regular expressions, lexing, parsing and token masks (see README.md in this folder)."""

from constrain.core._kernel import CompiledGrammar, Matcher, Vocabulary

__all__ = ["CompiledGrammar", "Matcher", "Vocabulary"]
