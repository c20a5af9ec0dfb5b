"""``StructuralTag``: free text, tags and schemas for answers, as XGrammar, vLLM and SGLang write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from constrain.errors import GrammarError
from constrain.language.policies import policy_defaults
from constrain.language.schema_text import parse_schema
from constrain.language.source import Source

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar
    from constrain.language.special import Tokens
    from constrain.language.tree import Expression

_INSTRUCTION = "Answer with a text of this form and nothing else; what is in brackets says what stands there"
_DESCRIBED = "Answer with a text of this kind, and nothing else"


@dataclass(frozen=True, slots=True, repr=False)
class StructuralTag(Source):
    """A structural tag that the whole answer matches; ``compile`` and ``generate`` take it instead of a schema.

    Args:
        tag: the tag as a dict or as JSON text: ``{"type": "structural_tag", "format": {...}}``, or the first form of
            XGrammar, ``{"structures": [{"begin", "schema", "end"}], "triggers": [...]}``.
        description: text that prompts show instead of the tag, for one that is long or hard to read.

    A name of a special token of the vocabulary stands for that token. Raises ``GrammarError`` with the place in the tag
    (``pointer``) for a tag that is malformed or not supported, ``PatternError`` for a pattern, and ``LimitError``.
    ``compile`` and ``generate`` raise the errors of the schemas and grammars inside.

    >>> from constrain import Vocabulary, compile
    >>> from constrain.parts import StructuralTag
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> call = {"begin": "<f>", "content": {"type": "json_schema", "json_schema": {"type": "integer"}}, "end": "</f>"}
    >>> tag = {"format": {"type": "triggered_tags", "triggers": ["<f"], "tags": [call]}}
    >>> calls = compile(StructuralTag(tag), vocabulary)
    >>> calls.accepts("So: <f>7</f>."), calls.accepts("no call"), calls.accepts("<f>x</f>")
    (True, True, False)
    """

    tag: Mapping[str, Any] | str
    description: str = field(default="", kw_only=True)
    _close_objects: bool = field(default=False, init=False)
    _special: tuple[str, ...] = field(default=(), init=False)
    _texts: tuple[tuple[str, bytes], ...] = field(default=(), init=False)
    _ids: tuple[tuple[str, tuple[int, ...]], ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.description, str):
            raise TypeError(f"description of a structural tag must be a str, not {self.description!r}")
        object.__setattr__(self, "tag", _json_text(self.tag))
        self._format()

    def grammar(self) -> Grammar:
        """Returns the grammar. Raises ``GrammarError``, ``LimitError``, and the errors of schemas and patterns."""
        from constrain.structural.grammar import tag_grammar
        from constrain.structural.marks import Names

        names = Names(frozenset(self._special), dict(self._texts), dict(self._ids))
        return tag_grammar(self._format(), names, close_objects=self._close_objects)

    def policies_in_force(self) -> Mapping[str, str | bool]:
        """Returns the policies of its schemas."""
        return policy_defaults(close_objects=self._close_objects) | {"close_objects": self._close_objects}

    def closed(self) -> StructuralTag:
        """Returns the tag with closed objects in all its schemas."""
        return self._changed(_close_objects=True)

    def bound(self, tokens: Tokens) -> StructuralTag:
        """Returns the tag for a vocabulary: a name of a special token stands for the token."""
        from constrain.structural.marks import names_in

        names = names_in(self._format(), tokens)
        return self._changed(
            _special=tuple(sorted(names.special)),
            _texts=tuple(sorted(names.texts.items())),
            _ids=tuple(sorted(names.ids.items())),
        )

    def render(self) -> str:
        """Returns the description, or else the tag as a short text."""
        from constrain.structural.showing import show

        return (self.description or show(self._format())).strip("\n")

    def describe(self) -> str:
        """Returns the instruction that is added to the prompt."""
        return f"{_DESCRIBED if self.description else _INSTRUCTION}:\n{self.render()}"

    def _format(self) -> Expression:
        from constrain.structural.reading import read_tag

        assert isinstance(self.tag, str)
        return read_tag(parse_schema(self.tag))

    def _changed(self, **values: object) -> StructuralTag:
        made = replace(self)
        for name in ("_close_objects", "_special", "_texts", "_ids"):
            object.__setattr__(made, name, values.get(name, getattr(self, name)))
        return made


def _json_text(tag: object) -> str:
    """Returns a tag as JSON text. Raises TypeError and GrammarError."""
    if isinstance(tag, str):
        return tag
    if not isinstance(tag, Mapping):
        raise TypeError(f"a structural tag is a dict or JSON text, not {tag!r:.200}")
    try:
        return json.dumps(dict(tag))
    except (TypeError, ValueError) as error:
        raise GrammarError(f"the structural tag contains a value that JSON cannot express: {error}") from error
    except RecursionError as error:
        raise GrammarError("the structural tag is nested too deeply to be read; make it flatter") from error
