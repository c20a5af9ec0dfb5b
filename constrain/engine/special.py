"""Tokens that a grammar asks for by name or id, found in a vocabulary.

If a grammar asks for single special tokens only, each is read as its name, which the kernel's vocabulary has.
Otherwise the vocabulary is divided into *classes*: tokens that are in the same of the grammar's sets. Each class gets a
mark, and a set is read as the marks of its classes, so that its size costs nothing. ``classes`` has the result.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from constrain.engine.classes import Classes, complement, divide, joined, without
from constrain.errors import ConstrainError, GrammarError, LimitError
from constrain.language.emptiness import reached
from constrain.language.grammar import EPSILON, Terminal
from constrain.language.special import CLASS, numbered_mark, special_token, terminal_special, token_set
from constrain.language.tree import Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from constrain.engine.classes import Ranges
    from constrain.language.grammar import Edge, Grammar, Rule
    from constrain.vocabulary.vocabulary import Vocabulary

_Error = TypeVar("_Error", bound=ConstrainError)

_NUMBERED = re.compile(r"<\[([0-9]+)\]>")
_PLACE = re.compile(r" \(line ([0-9]+), column ([0-9]+)\)$")


class VocabularyTokens:
    """The tokens of a vocabulary, as ``Source.bound`` asks for them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @property
    def names(self) -> Collection[str]:
        """The names of the special tokens that a grammar may name."""
        return self._vocabulary.special_tokens

    def is_special(self, name: str) -> bool:
        """Returns whether a name, or ``<[id]>``, is a special token or one that ends a generation."""
        token = _token_number(name)
        if token is None:
            return name in self._vocabulary.special_tokens
        return token < self._vocabulary.n_vocab and not self._vocabulary.token_bytes(token)

    def ids(self, name: str) -> tuple[int, ...]:
        """Returns the ids of the tokens with that name or text, or of ``<[id]>``; none if it does not exist."""
        token = _token_number(name)
        if token is not None:
            return (token,) if token < self._vocabulary.n_vocab else ()
        return tuple(self._vocabulary._tokens_named(name))

    def text(self, name: str) -> bytes | None:
        """Returns the text of the token with that text, or ``<[id]>``; None if it is special or does not exist."""
        token = _token_number(name)
        if token is not None:
            return self._vocabulary.token_bytes(token) or None if token < self._vocabulary.n_vocab else None
        if name in self._vocabulary.special_tokens or not self._vocabulary._tokens_named(name):
            return None
        return name.encode()

    def close_to(self, name: str) -> str:
        """Returns a remark on special tokens with similar names, or an empty text."""
        close = difflib.get_close_matches(name, self._vocabulary.special_tokens, n=3)
        return f"; it has {', '.join(close)}" if close else ""


def _token_number(name: str) -> int | None:
    numbered = _NUMBERED.fullmatch(name)
    return int(numbered[1][:20]) if numbered else None


def resolve_special(grammar: Grammar, vocabulary: Vocabulary) -> tuple[Grammar, Classes | None]:
    """The grammar with the names or marks of the vocabulary's tokens, and the classes if there are marks.

    Raises GrammarError for tokens that the vocabulary does not have, or that cannot stand where they do; LimitError.
    """
    written = {index: name for index, each in enumerate(grammar.terminals) if (name := terminal_special(each))}
    if all(name in vocabulary.special_tokens for name in written.values()):
        return grammar, None
    sets = {index: _ids(grammar.terminals[index], name, vocabulary) for index, name in written.items()}
    names = {index: _only_name(ids, vocabulary) for index, ids in sets.items()}
    terminals = list(grammar.terminals)
    if all(names.values()):
        for index, name in names.items():
            terminals[index] = replace(terminals[index], expression=special_token(name or ""))
        return replace(grammar, terminals=tuple(terminals)), None
    _refuse_before_the_end(grammar, [index for index, ids in sets.items() if without(ids, vocabulary.eos) != ids])
    try:
        classes, parts = divide(list(sets.values()))
    except LimitError as error:
        raise terminal_error(LimitError, terminals[next(iter(sets))], error.message) from error
    return _with_marks(grammar, dict(zip(sets, parts, strict=True))), Classes(vocabulary, classes)


def token_ids(terminal: Terminal, vocabulary: Vocabulary) -> Ranges | None:
    """Returns the ids of the tokens that a terminal reads; None for a terminal that reads text. Raises GrammarError."""
    written = terminal_special(terminal)
    return None if written is None else _ids(terminal, written, vocabulary)


def some_token(written: str, vocabulary: Vocabulary) -> int:
    """Returns the first of the tokens for which a name or ids stand. Raises GrammarError."""
    return _ids(Terminal(written, special_token(written)), written, vocabulary)[0][0]


def terminal_error(kind: type[_Error], terminal: Terminal, message: str) -> _Error:
    """Returns an error about a terminal, whose name has its place in the grammar's text."""
    place = _PLACE.search(terminal.name)
    if place is None:
        return kind(f"terminal {terminal.name}: {message}", pointer=terminal.pointer or None)
    return kind(f"{terminal.name[: place.start()]}: {message}", line=int(place[1]), column=int(place[2]))


def _ids(terminal: Terminal, written: str, vocabulary: Vocabulary) -> Ranges:
    """Returns the ids of the tokens that a terminal reads. Raises GrammarError."""
    if written in vocabulary.special_tokens:
        return joined([(vocabulary.special_tokens[written],) * 2])
    try:
        wanted = token_set(written)
    except GrammarError as error:
        raise terminal_error(GrammarError, terminal, error.message) from error
    spans, kept = wanted.ranges, wanted.single_ids
    if wanted.name is not None:
        kept = frozenset(_named(terminal, wanted.name, vocabulary))
        spans = tuple((token, token) for token in kept)
    for limit in (first if last is None else last for first, last in spans):
        if limit >= vocabulary.n_vocab:
            raise terminal_error(GrammarError, terminal, f"there is no token {limit}; {_about(vocabulary)}")
    ids = joined((first, vocabulary.n_vocab - 1 if last is None else last) for first, last in spans)
    if wanted.is_negated:
        ids, kept = complement(ids, vocabulary.n_vocab), frozenset()
    if ids := without(ids, set(vocabulary.eos) - kept):
        return ids
    ends = "tokens that end a generation count only where their name or id is written out"
    raise terminal_error(GrammarError, terminal, f"no token is left in this set; {_about(vocabulary)}, and {ends}")


def _about(vocabulary: Vocabulary) -> str:
    return f"the vocabulary has {vocabulary.n_vocab} tokens, with ids from 0 to {vocabulary.n_vocab - 1}"


def _named(terminal: Terminal, name: str, vocabulary: Vocabulary) -> list[int]:
    if found := vocabulary._tokens_named(name):
        return found
    close = difflib.get_close_matches(name, vocabulary.names.values(), n=3)
    known = f"; it has {', '.join(close)}" if close else ""
    raise terminal_error(GrammarError, terminal, f"this vocabulary has no token of this name{known}")


def _only_name(ids: Ranges, vocabulary: Vocabulary) -> str | None:
    """Returns the name of the one token, if it is a special token that is known by its name."""
    (first, last), *others = ids
    name = vocabulary.names.get(first)
    is_known = name is not None and vocabulary.special_tokens.get(name) == first
    return name if first == last and not others and is_known else None


def _class(number: int) -> Literal:
    return Literal(numbered_mark(CLASS, number))


def _with_marks(grammar: Grammar, parts: dict[int, list[int]]) -> Grammar:
    """Returns the grammar in which terminals read the marks of their classes; each further mark is a new terminal."""
    terminals = list(grammar.terminals)
    also: dict[int, list[int]] = {}
    for index, (first, *others) in parts.items():
        also[index] = list(range(len(terminals), len(terminals) + len(others)))
        terminals += [replace(terminals[index], expression=_class(number)) for number in others]
        terminals[index] = replace(terminals[index], expression=_class(first))

    def edges(rule: Rule) -> Iterable[Edge]:
        for edge in rule.edges:
            yield edge
            if edge.symbol is not EPSILON and edge.symbol >= 0:
                yield from (edge._replace(symbol=other) for other in also.get(edge.symbol, ()))

    rules = tuple(replace(rule, edges=tuple(edges(rule))) for rule in grammar.rules)
    return replace(grammar, terminals=tuple(terminals), rules=rules)


def _refuse_before_the_end(grammar: Grammar, ends: Iterable[int]) -> None:
    """Raises GrammarError if a lexeme may follow one of these terminals, which end the generation."""
    reads = [_states_before_lexemes(rule) for rule in grammar.rules]
    followed = _followed_rules(grammar.rules, reads)
    for terminal in ends:
        for index, rule in enumerate(grammar.rules):
            after = [edge.target for edge in rule.edges if edge.symbol == terminal]
            if after and (index in followed or not reads[index].isdisjoint(after)):
                message = "this ends the generation, but more may follow it here; let the grammar end with it"
                raise terminal_error(GrammarError, grammar.terminals[terminal], message)


def _states_before_lexemes(rule: Rule) -> set[int]:
    """Returns the states of a rule from which it can read something; rules inside count as lexemes."""
    before: dict[int, list[int]] = {}
    for edge in rule.edges:
        before.setdefault(edge.target, []).append(edge.source)
    return reached(before, [edge.source for edge in rule.edges if edge.symbol is not EPSILON])


def _followed_rules(rules: tuple[Rule, ...], reads: list[set[int]]) -> set[int]:
    """Returns the rules after which something may be read."""
    inside: dict[int, set[int]] = {index: set() for index in range(len(rules))}
    found: set[int] = set()
    for index, rule in enumerate(rules):
        for edge in rule.edges:
            if edge.symbol is not EPSILON and edge.symbol < 0:
                inside[index].add(~edge.symbol)
                if edge.target in reads[index]:
                    found.add(~edge.symbol)
    return reached(inside, found)
