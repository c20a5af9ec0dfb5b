"""States and edges of a rule under construction, where some edges read regular texts.

Regular texts that meet are joined to one expression wherever the first one does not end by itself, as free text does
not: then it need not be read byte by byte. Other texts meet at a state, which many edges may share.
"""

from __future__ import annotations

from dataclasses import dataclass

from constrain import kernel
from constrain.composition.texts import NO_TEXT, Text, Texts
from constrain.errors import LimitError
from constrain.language.tree import Intersection, Literal
from constrain.regex.anchors import sequence
from constrain.regex.free_text import SOME_BYTES
from constrain.work import asked, spend

START, END = 0, 1
"""The first state, to which no edge leads, and the last one, from which none does."""

MAX_JOINED = 4
"""Edges after a text that are joined to it one by one; with more of them, texts meet at a state."""

MAX_JOINS = 2_000
"""Joins of texts in one rule; beyond it, the remaining texts meet at states."""

CLOSED_WORK = 100_000
"""Derivatives that one question may take whether a text ends by itself; beyond it, the answer is no."""

Label = Text | int
"""What an edge reads: a text, or the symbol of a terminal or rule."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrow:
    """An edge from state to state; each edge is an object of its own."""

    source: int
    label: Label
    target: int


class Graph:
    """The states and edges of one rule. ``kept``: states that are not removed."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.kept = {START, END}
        self._arrows: dict[Arrow, None] = {}
        self._in: dict[int, dict[Arrow, None]] = {}
        self._out: dict[int, dict[Arrow, None]] = {}
        self._states = 2
        self._joins = 0
        self._closed: dict[Text, bool] = {}

    @property
    def arrows(self) -> list[Arrow]:
        """The edges, in the order in which they were added."""
        return list(self._arrows)

    def state(self) -> int:
        """Adds a state and returns it."""
        self._states += 1
        return self._states - 1

    def add(self, source: int, label: Label, target: int) -> None:
        """Adds an edge."""
        arrow = Arrow(source, label, target)
        self._arrows[arrow] = None
        self._out.setdefault(source, {})[arrow] = None
        self._in.setdefault(target, {})[arrow] = None

    def join(self) -> None:
        """Joins texts that meet, until none is left that should be joined."""
        steps = (self._contract, self._merge_parallel, self._remove_between, self._unroll, self._push)
        changed = True
        while changed and self._joins < MAX_JOINS:
            changed = False
            for step in steps:
                before = self._joins
                step()
                changed |= self._joins > before

    def _remove(self, arrow: Arrow) -> None:
        del self._arrows[arrow]
        del self._out[arrow.source][arrow]
        del self._in[arrow.target][arrow]
        self._joins += 1

    def _into(self, state: int) -> list[Arrow]:
        return list(self._in.get(state, ()))

    def _out_of(self, state: int) -> list[Arrow]:
        return list(self._out.get(state, ()))

    def _contract(self) -> None:
        """Removes states with one edge, an empty one, on one side."""
        for arrow in self.arrows:
            if arrow not in self._arrows or arrow.label is not NO_TEXT or arrow.source == arrow.target:
                continue
            source, target = arrow.source, arrow.target
            if target not in self.kept and len(self._in[target]) == 1:
                self._remove(arrow)
                for other in self._out_of(target):
                    self._remove(other)
                    self.add(source, other.label, other.target)
            elif source not in self.kept and len(self._out[source]) == 1:
                self._remove(arrow)
                for other in self._into(source):
                    self._remove(other)
                    self.add(other.source, other.label, target)

    def _merge_parallel(self) -> None:
        """Makes one text of the texts between the same states."""
        groups: dict[tuple[int, int], list[tuple[Arrow, Text]]] = {}
        for arrow in self.arrows:
            if isinstance(arrow.label, Text) and arrow.label is not NO_TEXT:
                groups.setdefault((arrow.source, arrow.target), []).append((arrow, arrow.label))
        for (source, target), group in groups.items():
            if len(group) > 1:
                for arrow, _ in group:
                    self._remove(arrow)
                self.add(source, self.texts.either(*(text for _, text in group)), target)

    def _remove_between(self) -> None:
        """Removes states between two texts."""
        for state in sorted(set(self._in) - self.kept):
            before, after = self._into(state), self._out_of(state)
            if len(before) != 1 or len(after) != 1 or before[0] is after[0]:
                continue
            one, two = before[0].label, after[0].label
            if isinstance(one, Text) and isinstance(two, Text):
                self._remove(before[0])
                self._remove(after[0])
                self.add(before[0].source, self.texts.joined(one, two), after[0].target)

    def _unroll(self) -> None:
        """Joins texts from a state to itself, which do not end by themselves, to the texts that follow them."""
        for arrow in self.arrows:
            if arrow not in self._arrows or arrow.source != arrow.target:
                continue
            if not isinstance(arrow.label, Text) or self._ends(arrow.label):
                continue
            others = [other for other in self._out_of(arrow.source) if other is not arrow]
            texts = [other.label for other in others if isinstance(other.label, Text)]
            if len(texts) < len(others):
                continue
            self._remove(arrow)
            loop = self.texts.repeated(arrow.label, 0, None)
            for other, text in zip(others, texts, strict=True):
                self._remove(other)
                self.add(other.source, self.texts.joined(loop, text), other.target)

    def _push(self) -> None:
        """Joins texts that do not end by themselves to each text that follows them."""
        for arrow in self.arrows:
            state = arrow.target
            if arrow not in self._arrows or state in self.kept:
                continue
            if not isinstance(arrow.label, Text) or self._ends(arrow.label):
                continue
            after = self._out_of(state)
            texts = [(other.label, other.target) for other in after if isinstance(other.label, Text)]
            if not 0 < len(texts) <= MAX_JOINED or any(other.target == state for other in after):
                continue
            self._remove(arrow)
            if len(texts) < len(after):
                apart = self.state()
                self.add(arrow.source, arrow.label, apart)
                for other in after:
                    if not isinstance(other.label, Text):
                        self.add(apart, other.label, other.target)
            for text, target in texts:
                self.add(arrow.source, self.texts.joined(arrow.label, text), target)
            if not self._in[state]:
                for other in after:
                    self._remove(other)

    def _ends(self, text: Text) -> bool:
        """Returns whether no text is the beginning of another one; the empty text counts as such a beginning."""
        if text is NO_TEXT or isinstance(text.expression, Literal):
            return True
        if text not in self._closed:
            longer = Intersection((sequence(text.expression, SOME_BYTES), text.expression))
            try:
                self._closed[text] = asked(kernel.is_empty, longer, kernel.Allowance(CLOSED_WORK))
            except LimitError:
                spend(0)  # raises if the compilation has no steps left
                self._closed[text] = False
        return self._closed[text]
