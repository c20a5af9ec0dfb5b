"""*Scopes*: rules with a limit on the tokens of all that they read, of which a matcher counts the tokens.

A scope is a language of its own, with a matcher and a budget of its own: it is complete within its tokens, as a whole
text is. In the language around it, the scope is read as a mark, once for each token that it has at least. Tokens do not
cross the borders of a scope. ``Reading`` is one way to read a text with scopes; ``readings`` follows all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain import kernel
from constrain.engine.classes import Classes
from constrain.errors import GrammarError
from constrain.language.emptiness import productive_rules
from constrain.language.grammar import EPSILON, Edge, Rule, Terminal
from constrain.language.tree import Literal
from constrain.vocabulary.marked import MARKED, mark_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from constrain.language.grammar import Grammar
    from constrain.vocabulary.vocabulary import Vocabulary


class Scope(NamedTuple):
    """A rule with a limit.

    Attributes:
        name: name of the rule.
        core: the language of the rule.
        most: the most tokens of its texts.
        completion: the tokens of a text with the fewest tokens that are known.
        text: the bytes of a shortest text, which may be another one.
        least: number of marks that stand for the rule: these tokens, at least 1.
        mark: id of the mark.
    """

    name: str
    core: kernel.CompiledGrammar
    most: int
    completion: list[int]
    text: bytes
    least: int
    mark: int


def with_marks_for(rules: Sequence[int], classes: Classes | None, vocabulary: Vocabulary) -> Classes:
    """Returns classes of tokens with further marks, one for each of some rules."""
    return Classes(vocabulary, [*([] if classes is None else classes.ranges), *(() for _ in rules)])


class Scopes:
    """The scopes of a grammar, and the language around them.

    Attributes:
        core: the language around the scopes, which has marks for them.
        scopes: the scopes.
        names: names of the terminals that marks add to those of the grammar.
        not_eos: mask of the tokens that do not end a generation, as 32-bit words.
        not_marks: mask of the tokens that are no marks of scopes, as 32-bit words.
    """

    def __init__(self, grammar: Grammar, classes: Classes) -> None:
        indices = scoped_rules(grammar)
        first = len(classes.ranges) - len(indices)
        self.classes = classes
        self.scopes = [
            _scope(grammar, index, classes, classes.marked.first + first + number)
            for number, index in enumerate(indices)
        ]
        self.names = [scope.name for scope in self.scopes]
        numbers = [first + number for number in range(len(indices))]
        around = _around(grammar, dict(zip(indices, self.scopes, strict=True)), numbers)
        self.core = kernel.CompiledGrammar(around, classes.marked.core, proved=False)
        self.by_mark = {scope.mark: scope for scope in self.scopes}
        size = classes.marked.first + classes.marked.count
        self.not_eos = _all_but(classes.vocabulary.eos, size)
        self.not_marks = _all_but(self.by_mark, size)

    def tokens(self, completion: Sequence[int]) -> list[int]:
        """Returns tokens with those of a shortest text in place of the marks of each scope."""
        found: list[int] = []
        at = 0
        while at < len(completion):
            scope = self.by_mark.get(completion[at])
            found += [completion[at]] if scope is None else scope.completion
            at += 1 if scope is None else scope.least
        return found

    def spelled(self, text: bytes) -> bytes:
        """Returns a text with that of a shortest text in place of the marks of each scope."""
        for scope in self.scopes:
            text = text.replace(mark_of(scope.mark - self.classes.marked.first) * scope.least, scope.text)
        return text


def scoped_rules(grammar: Grammar) -> list[int]:
    """Returns the rules with a limit that the start reads, outside others.

    Raises GrammarError if a limit is less than 1, or lower than that of a rule around it.
    """
    if all(rule.max_tokens is None for rule in grammar.rules):
        return []
    finished = productive_rules(grammar.rules)
    found: dict[int, None] = {}
    seen, waiting = {0}, [0]
    while waiting:
        index = waiting.pop()
        if grammar.rules[index].max_tokens is not None and index in finished:
            found[index] = None
            continue
        new = {other for edge in grammar.rules[index].edges for other in _called(edge)} - seen
        seen |= new
        waiting += new
    for index in found:
        rule = grammar.rules[index]
        assert rule.max_tokens is not None
        if rule.max_tokens < 1:
            raise _error(rule, f"rule {rule.name}: max_tokens is {rule.max_tokens}; it must be 1 or more")
        for other in sorted(_reached(grammar, index)):
            limit = grammar.rules[other].max_tokens
            if limit is not None and limit < rule.max_tokens:
                inner = grammar.rules[other]
                message = (
                    f"{inner.name} has a lower limit than the rule {rule.name} around it; leave out one of the two"
                )
                raise _error(inner, message)
    return sorted(found)


def _called(edge: Edge) -> list[int]:
    return [] if edge.symbol is EPSILON or edge.symbol >= 0 else [~edge.symbol]


def _reached(grammar: Grammar, start: int) -> set[int]:
    """Returns a rule and all rules inside it."""
    found, waiting = {start}, [start]
    while waiting:
        new = {other for edge in grammar.rules[waiting.pop()].edges for other in _called(edge)} - found
        found |= new
        waiting += new
    return found


def _from(grammar: Grammar, start: int) -> Grammar:
    """Returns the grammar that begins with a rule, of the rules inside it."""
    order = [start, *sorted(_reached(grammar, start) - {start})]
    numbers = {index: number for number, index in enumerate(order)}

    def moved(edge: Edge) -> Edge:
        return edge._replace(symbol=~numbers[~edge.symbol]) if edge.symbol is not EPSILON and edge.symbol < 0 else edge

    rules = (grammar.rules[index] for index in order)
    return replace(grammar, rules=tuple(replace(rule, edges=tuple(map(moved, rule.edges))) for rule in rules))


def _scope(grammar: Grammar, index: int, classes: Classes, mark: int) -> Scope:
    rule = grammar.rules[index]
    assert rule.max_tokens is not None
    compiled = kernel.CompiledGrammar(_from(grammar, index), classes.marked.core, proved=False)
    start = kernel.Matcher(compiled)
    completion = [token for token in start.completion_tokens() if token not in classes.vocabulary.eos]
    if len(completion) > rule.max_tokens:
        raise _error(
            rule,
            f"rule {rule.name}: max_tokens={rule.max_tokens} is too few: its shortest text takes {len(completion)} "
            f"tokens of this vocabulary; give it {len(completion)} or more",
        )
    text = start.shortest_completion()
    return Scope(rule.name, compiled, rule.max_tokens, completion, text, max(1, len(completion)), mark)


def _around(grammar: Grammar, scopes: dict[int, Scope], numbers: list[int]) -> Grammar:
    """Returns the grammar with marks in the places of scopes."""
    terminals, rules = list(grammar.terminals), list(grammar.rules)
    for number, (index, scope) in zip(numbers, scopes.items(), strict=True):
        terminals.append(Terminal(scope.name, Literal(mark_of(number))))
        edges = [Edge(at, len(terminals) - 1, at + 1) for at in range(scope.least)]
        if not scope.completion:
            edges.append(Edge(0, EPSILON, scope.least))
        rules[index] = Rule(scope.name, tuple(edges), (scope.least,))
    return _from(replace(grammar, terminals=tuple(terminals), rules=tuple(rules)), 0)


def _all_but(tokens: Iterable[int], count: int) -> NDArray[np.uint32]:
    """Returns a mask of so many tokens without some of them."""
    import numpy as np

    bits = np.ones(count, np.uint8)
    bits[list(tokens)] = 0
    return np.packbits(bits, bitorder="little").view(np.uint32)


def _error(rule: Rule, message: str) -> GrammarError:
    line, column = rule.place or (None, None)
    return GrammarError(message, line=line, column=column)


class Run(NamedTuple):
    """The limits of one text with scopes: its budget, and those of lexemes by kind."""

    scopes: Scopes
    max_tokens: int | None
    lexeme_limits: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class _Met:
    """Limits that ended scopes have met, as a matcher tells them."""

    is_narrowed: bool = False
    is_narrowed_by_budget: bool = False
    n_shortened: int = 0
    limited_masks: int = 0
    limits_met: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Reading:
    """One way to read a text with scopes, with the methods of ``kernel.Matcher`` that ``Readings`` needs.

    Attributes:
        run: the limits of the text.
        around: the place around scopes; inside a scope, the place behind it.
        spent: tokens of ended scopes, beyond the marks that stand for them.
        met: limits that ended scopes have met.
        scope: the scope around the place, if any.
        inside: the place in it.
    """

    run: Run
    around: kernel.Matcher
    spent: int = 0
    met: _Met = _Met()
    scope: Scope | None = None
    inside: kernel.Matcher | None = None

    def copy(self) -> Reading:
        """Returns the reading, to go on by itself."""
        inside = None if self.inside is None else kernel.Matcher(self.inside)
        return replace(self, around=kernel.Matcher(self.around), inside=inside)

    def others(self) -> list[Reading]:
        """Returns the readings that begin a scope here, or that end the scope here."""
        if self.inside is None:
            begun = [self._begin(scope) for scope in self.run.scopes.scopes]
            return [reading for reading in begun if reading is not None]
        assert self.scope is not None
        more = max(0, self.inside.n_accepted - self.scope.least)
        around = kernel.Matcher(self.around)
        if not self.inside.n_accepted or not self.inside.is_accepting or not around._spend(more):
            return []
        met = _Met(
            self.is_narrowed,
            self.is_narrowed_by_budget,
            self.met.n_shortened + self.inside.n_shortened,
            self.met.limited_masks + self.inside.limited_masks,
            self.limits_met,
        )
        return [Reading(self.run, around, self.spent + more, met)]

    def _begin(self, scope: Scope) -> Reading | None:
        """Returns the reading in a scope that begins here; ``None`` if the scope cannot stand here."""
        behind = kernel.Matcher(self.around)
        if behind.accept_many([scope.mark] * scope.least) < scope.least:
            return None
        left = self._left_for(scope, behind)
        most = scope.most if left is None else min(scope.most, left)
        inside = kernel.Matcher(scope.core, most, self.run.lexeme_limits)
        return Reading(self.run, behind, self.spent, self.met, scope, inside)

    def _left_for(self, scope: Scope, behind: kernel.Matcher) -> int | None:
        """Returns the tokens that the budget of the text leaves for a scope; ``behind``: the place after its marks."""
        if self.run.max_tokens is None:
            return None
        return scope.least + self.run.max_tokens - self.spent - behind.n_accepted - behind.min_tokens_left

    @property
    def _here(self) -> kernel.Matcher:
        return self.around if self.inside is None else self.inside

    def accept(self, token: int) -> bool:
        """Takes an allowed token; no token ends the generation inside a scope."""
        return (self.inside is None or token not in self._eos) and self._here.accept(token)

    @property
    def _eos(self) -> Sequence[int]:
        return self.run.scopes.classes.vocabulary.eos

    def rollback(self, count: int) -> None:
        """Takes back tokens that were accepted since the reading began."""
        self._here.rollback(count)

    @property
    def place(self) -> tuple[object, ...]:
        """The position: readings with the same one have the same future."""
        if self.inside is None or self.scope is None:
            return (self.around.place,)
        return (self.around.place, self.scope.mark, self.inside.place, self.inside.n_accepted)

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        return self.inside is None and self.around.is_accepting

    @property
    def is_finished(self) -> bool:
        """Whether nothing but the end of generation, or of the scope, is possible."""
        return self._here.is_finished

    def fill_bitmask(self, row: Any, unlimited: bool = False) -> None:  # noqa: FBT001, FBT002 - as in kernel.Matcher
        """Writes the mask of the next token; marks of scopes are not in it. The limit of the scope always applies."""
        self._here.fill_bitmask(row, unlimited and (self.inside is None or self._has_less_left()))
        if self.inside is not None:
            row &= self.run.scopes.not_eos
        row &= self.run.scopes.not_marks

    @property
    def near_limit(self) -> bool:
        """Whether the budget or a limit may narrow one of the next masks."""
        return self._here.near_limit

    @property
    def is_cut(self) -> bool:
        """Whether no token of the budget is left, and the text could go on."""
        return self._here.is_cut

    @property
    def knows_mask(self) -> bool:
        """Whether the current mask is known."""
        return self._here.knows_mask

    @property
    def is_quick(self) -> bool:
        """Whether the next ``fill_bitmask`` and ``accept`` only look up tables."""
        return self._here.is_quick

    def compute_mask(self) -> None:
        """Computes the current mask, if it is not known."""
        self._here.compute_mask()

    @property
    def temperature(self) -> float | None:
        """The temperature that the grammar asks for the next token."""
        return self._here.temperature

    def diagnose(self, token: int) -> tuple[bool, bool, bool, tuple[str, ...], int, list[int]]:
        """Finds whether a token is allowed, and if not, why."""
        allowed, at_end, at_limit, limits, offset, expected = self._here.diagnose(token)
        if self.inside is None or token not in self._eos:
            return allowed, at_end, at_limit, limits, offset, expected
        return False, True, False, (), offset, expected

    def expected(self) -> list[int]:
        """Returns the terminals that may continue or begin here."""
        return self._here.expected()

    @property
    def is_narrowed(self) -> bool:
        """Whether the budget or a limit has removed tokens from some mask on the way here."""
        return self.met.is_narrowed or self.around.is_narrowed or self._here.is_narrowed

    @property
    def is_narrowed_by_budget(self) -> bool:
        """Whether the budget of the text has removed tokens from some mask on the way here."""
        return self.met.is_narrowed_by_budget or self.around.is_narrowed_by_budget or self._is_short()

    def _is_short(self) -> bool:
        """Returns whether the budget of the text, rather than the limit of the scope, has removed tokens in it."""
        return self.inside is not None and self._has_less_left() and self.inside.is_narrowed_by_budget

    def _has_less_left(self) -> bool:
        """Returns whether the budget of the text leaves less for the scope than its own limit."""
        assert self.scope is not None
        left = self._left_for(self.scope, self.around)
        return left is not None and left < self.scope.most

    @property
    def n_shortened(self) -> int:
        """Number of lexemes that a limit on their tokens has ended, or is ending."""
        inside = 0 if self.inside is None else self.inside.n_shortened
        return self.met.n_shortened + self.around.n_shortened + inside

    @property
    def limited_masks(self) -> int:
        """Number of masks on the way here without some allowed tokens, because a limit of the kernel was met."""
        inside = 0 if self.inside is None else self.inside.limited_masks
        return self.met.limited_masks + self.around.limited_masks + inside

    @property
    def limits_met(self) -> tuple[str, ...]:
        """Names of the limits that ``limited_masks`` counts."""
        inside = () if self.inside is None else self.inside.limits_met
        return tuple(dict.fromkeys((*self.met.limits_met, *self.around.limits_met, *inside)))

    @property
    def min_tokens_left(self) -> int:
        """Number of tokens that ``completion_tokens`` returns."""
        return len(self.completion_tokens())

    def completion_tokens(self) -> list[int]:
        """Returns the tokens of a short text that finishes from here."""
        inside = [] if self.inside is None else self.inside.completion_tokens()
        return inside + self.run.scopes.tokens(self.around.completion_tokens())

    def shortest_completion(self) -> bytes:
        """Returns the bytes of a short text that finishes from here."""
        inside = b"" if self.inside is None else self.inside.shortest_completion()
        return inside + self.run.scopes.spelled(self.around.shortest_completion())

    def forced_bytes(self) -> bytes:
        """Returns the next bytes that every allowed text has, up to the end of the scope or the beginning of one."""
        return self._here.forced_bytes().partition(MARKED)[0]

    def forced_after(self, before: bytes) -> tuple[bytes, list[int]]:  # noqa: ARG002 - as in kernel.Matcher
        """Forces nothing: tokens do not cross the borders of scopes, which the tokenizer does not know."""
        return b"", []
