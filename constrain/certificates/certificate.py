"""``certify``: the certificate of an answer, from its constraint and its tokens; ``verify_certificate`` checks one."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, cast

from constrain.certificates.derivation import derive
from constrain.certificates.export import grammar_to_json, written
from constrain.engine.earley import Lexeme, Lexemes, Tables, as_graph, in_a_row
from constrain.engine.special import resolve_special
from constrain.language.special import mark
from constrain.notebooks import cut
from constrain.tables.keyword import bound_expressions
from constrain.verify import FORMAT, verify

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.engine.constraint import Constraint
    from constrain.language.grammar import Grammar

UNSEALED = ("sha256", "signature")
"""Members of a certificate that its hash does not cover."""


class Certificate(dict[str, Any]):
    """A certificate as JSON: a dict whose ``repr`` is one line."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Returns the answer, its number of tokens and the hash; ``dict(certificate)`` shows everything."""
        known = f"tokens={len(self.get('tokens', ()))}, sha256={self.get('sha256')!r}"
        return f"Certificate(text={cut(self.get('text'), 80)}, {known})"


class _Exported:
    """What the certificates of one constraint share: its grammar as JSON, the hash, and tables for derivations."""

    __slots__ = ("grammar", "sha256", "tables", "text")

    def __init__(self, constraint: Constraint) -> None:
        self.grammar = grammar_to_json(constraint.grammar, constraint.vocabulary)
        self.text = canonical(self.grammar)
        self.sha256 = hashlib.sha256(self.text.encode()).hexdigest()
        self.tables = Tables(constraint.grammar)


def canonical(value: object) -> str:
    """Returns canonical JSON: sorted keys, no white space, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: object) -> str:
    """Returns the SHA-256 of canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def certify(
    constraint: Constraint,
    tokens: Sequence[int],
    *,
    max_tokens: int | None = None,
    needed: Sequence[int] = (),
    facts: Mapping[str, Any] | None = None,
    previous: str | None = None,
) -> dict[str, Any]:
    """Returns the certificate of a complete answer. Certificates of one constraint share the member ``grammar``.

    Args:
        constraint: language of the answer.
        tokens: token ids of the answer, without the end of generation. A token that ends a generation and that the
            grammar reads is added.
        max_tokens: the budget of the answer, without the end of generation.
        needed: tokens that were enough to finish, before the first token and after each one.
        facts: further members, as JSON: the source, the prompt, the model, the sampling.
        previous: hash of the certificate before this one.

    Raises ValueError for tokens that are no answer, and LimitError.
    """
    vocabulary = constraint.vocabulary
    if constraint.staged is not None:
        constraint = constraint.staged.settled(b"".join(map(vocabulary.token_bytes, tokens)))
    tokens = _with_end(constraint, tokens)
    text, lexemes, starts = read_tokens(constraint, tokens)
    entries = []
    for token in tokens:
        data = vocabulary.token_bytes(token)
        entries.append([token, written(data)] if data else [token, "", vocabulary.names.get(token) or f"<[{token}]>"])
    exported = _export(constraint)
    body = {
        **(facts or {}),
        "format": FORMAT,
        "grammar": exported.grammar,
        "grammar_sha256": exported.sha256,
        "vocabulary": {
            "sha256": vocabulary.fingerprint.hex(),
            "eos": list(vocabulary.eos),
            "size": vocabulary.n_vocab,
        },
        "tokens": entries,
        "text": written(b"".join(map(vocabulary.token_bytes, tokens))),
        "derivation": derive(exported.tables, text, lexemes, starts),
        "budget": {"max_tokens": max_tokens, "needed": list(needed)},
        "previous": previous,
    }
    return Certificate(body, sha256=_digest_with(body, exported.text))


def chain(certificate: Mapping[str, Any], previous: str | None) -> dict[str, Any]:
    """Returns an unsigned certificate with the hash of the one before it (``None`` for the first of a chain)."""
    if certificate["previous"] == previous:
        return Certificate(certificate)
    body = {**certificate, "previous": previous}
    del body["sha256"]
    return Certificate(body, sha256=digest(body))


def verify_certificate(
    certificate: Mapping[str, Any], previous: str | None = None, tables: Mapping[str, Any] | None = None
) -> str:
    """Checks a certificate as ``constrain/verify.py`` does, and returns its hash. Raises ValueError.

    The tokens spell the text, the text is one of the grammar, limits on tokens are kept, the hashes agree, and the
    certificate names ``previous`` or none before it. Whether the grammar is that of the schema, and whether the model
    wrote the tokens, only ``constrain verify`` can tell.

    Args:
        certificate: the certificate.
        previous: hash of the certificate before it; ``None`` for the first of a chain.
        tables: tables with more than 10,000 values that the schema names, as ``generate`` takes them. A certificate has
            only the digests of their values, which must agree.

    >>> from constrain import complete
    >>> answer = complete(None, "Is the sky blue?", schema={"enum": ["yes", "no"]}, certificate=True)
    >>> verify_certificate(answer.certificate) == answer.certificate["sha256"]
    True
    """
    try:
        return verify(dict(certificate), previous, _named_values(certificate, tables or {}))
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"the certificate is malformed: {error!r:.200}") from error


def _named_values(certificate: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, list[bytes]]:
    """Returns the values that a certificate names by digest, as far as the tables have them."""
    wanted = {each[1] for each in certificate["grammar"]["expressions"] if each[0] == "table"}
    expressions = bound_expressions(tables) if wanted else ()
    return {each.digest: list(each.texts) for each in expressions if each.digest in wanted}


def _export(constraint: Constraint) -> _Exported:
    if constraint._exported is None:
        constraint._exported = _Exported(constraint)
    return cast("_Exported", constraint._exported)


def _digest_with(body: Mapping[str, Any], grammar: str) -> str:
    """Returns the digest of a certificate whose grammar is known as canonical JSON."""
    members = [
        f"{canonical(name)}:{grammar if name == 'grammar' else canonical(value)}"
        for name, value in sorted(body.items())
    ]
    return hashlib.sha256(f"{{{','.join(members)}}}".encode()).hexdigest()


def _with_end(constraint: Constraint, tokens: Sequence[int]) -> list[int]:
    """Returns the tokens of an answer, with one that ends a generation if the grammar reads it."""
    classes = constraint._classes
    if classes is None:
        return list(tokens)
    ends = [token for token in constraint.vocabulary.eos if classes.has(token)]
    for last in ((), *((token,) for token in ends)):
        text, detours = classes.spell([*tokens, *last])
        if constraint._core.accepts(text, detours):
            return [*tokens, *last]
    return list(tokens)


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
            raise ValueError(f"these tokens are no complete answer: {_refused_place(constraint, tokens)}")
        return text, in_a_row(found), starts
    text, detours = classes.spell(tokens)
    graph = constraint._core.lexeme_graph(text, detours)
    if graph is None:
        raise ValueError(f"these tokens are no complete answer: {_refused_place(constraint, tokens)}")
    origin = _origins(constraint.grammar, resolve_special(constraint.grammar, vocabulary)[0])
    lexemes = as_graph(*graph)
    after = [
        [Lexeme(each.end, frozenset(origin.get(t, t) for t in each.terminals)) for each in row] for row in lexemes.after
    ]
    return text, Lexemes(lexemes.offsets, after), starts


def _refused_place(constraint: Constraint, tokens: Sequence[int]) -> str:
    """Returns the first token that the engine refuses, with its byte, or that the text is not complete."""
    count = constraint.matcher().accept_many(tokens)
    at = sum(len(constraint.vocabulary.token_bytes(token)) for token in tokens[:count])
    return f"they end too early, at byte {at}" if count == len(tokens) else f"token {count} is refused, at byte {at}"


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
