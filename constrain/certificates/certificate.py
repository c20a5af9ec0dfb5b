"""``certify``: the certificate of an answer, from its constraint and its tokens."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from constrain.certificates.derivation import derive
from constrain.certificates.export import grammar_to_json, written
from constrain.engine.derivation import Lexeme, Lexemes, as_graph, in_a_row
from constrain.engine.special import resolve_special
from constrain.language.special import mark, without_special

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.engine.constraint import Constraint
    from constrain.language.grammar import Grammar

FORMAT = "constrain certificate 1"


def digest(value: object) -> str:
    """Returns the SHA-256 of canonical JSON: sorted keys, no white space, ASCII."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def certify(
    constraint: Constraint,
    tokens: Sequence[int],
    *,
    max_tokens: int | None = None,
    needed: Sequence[int] = (),
    claims: Mapping[str, Any] | None = None,
    previous: str | None = None,
    grammar_json: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns the certificate of a complete answer.

    Args:
        constraint: language of the answer.
        tokens: token ids of the answer, without the end of generation unless the grammar reads it.
        max_tokens: the budget of the answer.
        needed: tokens needed to finish, before the first token and after each one.
        claims: what else is known: source, prompt, model, sampling.
        previous: hash of the certificate before this one.
        grammar_json: the constraint's grammar as JSON, if it is known.

    Raises ValueError for tokens that are no answer, and LimitError.
    """
    vocabulary = constraint.vocabulary
    text, lexemes, starts = read_tokens(constraint, tokens)
    entries = []
    for token in tokens:
        data = vocabulary.token_bytes(token)
        entries.append([token, written(data)] if data else [token, "", vocabulary.names.get(token) or f"<[{token}]>"])
    exported = grammar_to_json(constraint.grammar, vocabulary) if grammar_json is None else grammar_json
    body = {
        "format": FORMAT,
        "claims": dict(claims or {}),
        "grammar": exported,
        "grammar_sha256": digest(exported),
        "vocabulary": {"sha256": vocabulary.fingerprint.hex(), "eos": list(vocabulary.eos)},
        "tokens": entries,
        "text": written(without_special(text)),
        "derivation": derive(constraint.grammar, text, lexemes, starts),
        "budget": {"max_tokens": max_tokens, "needed": list(needed)},
        "previous": previous,
    }
    return {**body, "sha256": digest(body)}


def read_tokens(constraint: Constraint, tokens: Sequence[int]) -> tuple[bytes, Lexemes, list[int]]:
    """Returns the text of tokens, its lexemes by the terminals of the constraint's grammar, and where tokens begin."""
    vocabulary, classes = constraint.vocabulary, constraint._classes
    starts = [0]
    for token in tokens:
        data = vocabulary.token_bytes(token) or mark(vocabulary.names.get(token) or f"<[{token}]>")
        starts.append(starts[-1] + len(data))
    if classes is None:
        text = b"".join(map(vocabulary.marked_bytes, tokens))
        found = constraint._core.lexemes(text)
        if found is None:
            raise ValueError("these tokens are no complete answer")
        return text, in_a_row(found), starts
    text, detours = classes.spell(tokens)
    graph = constraint._core.lexeme_graph(text, detours)
    if graph is None:
        raise ValueError("these tokens are no complete answer")
    origin = _origins(constraint.grammar, resolve_special(constraint.grammar, vocabulary)[0])
    lexemes = as_graph(*graph)
    after = [
        [Lexeme(each.end, frozenset(origin.get(t, t) for t in each.terminals)) for each in row] for row in lexemes.after
    ]
    return text, Lexemes(lexemes.offsets, after), starts


def _origins(grammar: Grammar, resolved: Grammar) -> dict[int, int]:
    """Returns the terminal of a grammar for each further terminal that ``resolve_special`` has made of it."""
    count, found = len(grammar.terminals), dict[int, int]()
    for rule in resolved.rules:
        last = -1
        for edge in rule.edges:
            symbol = edge.symbol
            if symbol is not None and symbol >= count:
                found[symbol] = last
            elif symbol is not None:
                last = symbol
    return found
