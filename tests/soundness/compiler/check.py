"""``check_compiler``: whether the grammar in a certificate is the language of its source, by the word of others.

A certificate proves that a text is one of a grammar. That the grammar is the schema's is the compiler's word alone.
The check draws small values from the raw source, asks the grammar about each (``Acceptor``, no engine), asks
independent validators, and reports where they differ. It finds wrong compilers; it proves nothing about other values.

- Every value that the grammar accepts must be valid for all validators.
- So must every text that differs from an accepted one in a single character; one that is no JSON must be refused.
- Every valid value must be accepted in some order of its keys, or in each with ``property_order="any"``.
- Values on which validators do not agree among themselves are counted apart, as disputed.
- Values that a documented policy refuses are counted apart, as left out, with the policy.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from constrain.errors import deep_enough
from tests.soundness.compiler import strings
from tests.soundness.compiler.acceptor import Acceptor
from tests.soundness.compiler.spelling import count_orders, orders, spell
from tests.soundness.compiler.validators import Validators
from tests.soundness.compiler.values import EXTRA_KEY, Values

MAX_VALUES = 4_000
"""Values of one comparison: half of them the smallest, a quarter edited texts, the rest near values that are valid."""

MAX_SECONDS = 20.0
"""Seconds of one comparison; beyond, the report says that it was cut."""

MAX_ORDERS = 24
"""Orders of the keys of one value that are tried. Beyond: a valid value of which none is taken is left out."""

MAX_TEXT = 1_000
"""Bytes of a text that is compared. Beyond: it is left out."""

MAX_EDITED = 10
"""Texts of the shortest, and of the longest, that are edited byte by byte."""

MAX_REPORTED = 10
"""Differences and disputes that a report quotes; it counts all."""


_EDITS = ':,]}"0-\\'
"""Characters that edits put into texts."""


@dataclass(frozen=True)
class Difference:
    """A text on which grammar and validators differ.

    Attributes:
        text: the JSON text, or the text of a pattern's or grammar's language.
        problem: ``"accepted"`` if only the grammar takes the text, ``"refused"`` if only the grammar refuses it.
        judge: name of the validator whose word is quoted.
        place: place in the value at which the validator finds an error, or byte at which the grammar stops.
    """

    text: str
    problem: str
    judge: str
    place: str

    def __str__(self) -> str:
        verb = "takes" if self.problem == "accepted" else "refuses"
        return f"the grammar {verb} {self.text:.200}: {self.judge}: {self.place}"


@dataclass
class CompilerReport:
    """The result of ``check_compiler``.

    Attributes:
        kind: kind of the source.
        judges: names of the validators that were asked.
        not_compared: reason for which there was no comparison; ``""`` if there was one.
        values: number of values that were compared.
        accepted: number of values that the grammar takes.
        differences: first differences; empty if grammar and validators agree.
        counts: number of all differences, by problem.
        disputed: first values on which validators do not agree, with their words.
        disputes: number of all such values.
        left_out: number of values or parts that were not compared, by reason.
        complete_to: size up to which all drawn values were compared.
        cut: limit that ended the comparison early; ``""`` if none did.
        seconds: duration.
    """

    kind: str
    judges: tuple[str, ...] = ()
    not_compared: str = ""
    values: int = 0
    accepted: int = 0
    differences: list[Difference] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    disputed: list[str] = field(default_factory=list)
    disputes: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    complete_to: int = 0
    cut: str = ""
    seconds: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether values were compared and no difference was found."""
        return not self.not_compared and not self.counts and self.values > 0

    def add(self, difference: Difference) -> None:
        """Adds a difference."""
        self.counts[difference.problem] += 1
        if self.counts[difference.problem] <= MAX_REPORTED:
            self.differences.append(difference)

    def lines(self) -> Iterator[str]:
        """Yields the report for people, line by line."""
        if self.not_compared:
            yield f"compiler: not compared: {self.not_compared}"
        else:
            yield from self._compared_lines()
        for reason, count in sorted(self.left_out.items()):
            yield f"  left out: {reason}: {count}"

    def _compared_lines(self) -> Iterator[str]:
        verdict = "agrees" if self.agrees else f"DIFFERS ({sum(self.counts.values())} values)"
        yield (
            f"compiler: {verdict} with {', '.join(self.judges)}: {self.values} values, "
            f"{self.accepted} of them accepted, {self.seconds:.1f} s"
        )
        yield f"  all drawn values up to size {self.complete_to}" + (f"; cut: {self.cut}" if self.cut else "")
        for difference in self.differences:
            yield f"  {difference}"
        if self.disputes:
            yield f"  disputed: {self.disputes} values on which the validators do not agree"
            yield from (f"    {each}" for each in self.disputed)


def check_compiler(
    grammar: dict[str, Any],
    source: Mapping[str, Any],
    *,
    answer: str | None = None,
    max_values: int = MAX_VALUES,
    max_seconds: float = MAX_SECONDS,
) -> CompilerReport:
    """Compares a certificate's grammar with its source on small values; returns a ``CompilerReport``.

    Args:
        grammar: exported grammar, ``certificate["grammar"]``.
        source: the certificate's member ``source``. Of its kinds, ``"json_schema"``, ``"regex"`` and ``"lark"`` are
            compared; for others the report says that they are not.
        answer: text of the answer, near which further values are drawn.
        max_values: most values to compare.
        max_seconds: seconds after which to stop; loading the validators does not count.

    Raises ``LimitError`` for schemas and answers that are nested too deeply.
    """
    begin = time.monotonic()
    kind = source["kind"]
    with deep_enough():
        if kind == "json_schema":
            report = _Schema(grammar, source, max_values).compared(answer, max_seconds)
        elif kind in ("regex", "lark"):
            report = _compare_texts(grammar, source, answer, max_values, max_seconds)
        else:
            report = CompilerReport(kind, not_compared=f"there is no independent judge for sources of kind {kind}")
    if not report.values and not report.not_compared:
        report.not_compared = f"no value could be compared{f' ({report.cut})' if report.cut else ''}"
    report.seconds = time.monotonic() - begin
    return report


class _Schema:
    """The comparison of a grammar with a JSON Schema."""

    def __init__(self, grammar: dict[str, Any], source: Mapping[str, Any], max_values: int) -> None:
        self._policies = source["policies"]
        self._closes = source["close_objects"]
        self._quotes = '"x-quote"' in source["text"]
        self._years = self._policies.get("years", "any") != "any" and '"date' in source["text"]
        self._integers = self._policies.get("integers", "any") != "any" and '"integer"' in source["text"]
        self._acceptor = Acceptor(grammar)
        self._validators = Validators(source["text"], formats=self._policies.get("formats") != "annotation")
        self._drawn = Values(json.loads(source["text"], parse_float=Decimal))
        self._max_values, self._until, self._half = max_values, 0.0, 0.0
        self._met: set[str] = set()
        self._taken: list[str] = []
        self._report = CompilerReport("json_schema", self._validators.names)
        for package, reason in self._validators.missing.items():
            self._report.left_out[f"judge {package}: {reason}"] += 1

    def compared(self, answer: str | None, max_seconds: float) -> CompilerReport:
        """Compares all values and returns the report. The validators are loaded by now, which takes seconds."""
        begin = time.monotonic()
        self._until, self._half = begin + max_seconds, begin + max_seconds / 2
        if not self._validators.names:
            missing = "; ".join(f"{package}: {reason}" for package, reason in self._validators.missing.items())
            self._report.not_compared = f"there is no validator ({missing})"
            return self._report
        waiting = [] if answer is None else [json.loads(answer, parse_float=Decimal)]
        waiting += self._drawn.seeds()
        try:
            seeds = [value for value in waiting if self._compare(value)]
            self._compare_by_size(self._max_values // 2)
            self._compare_edited(self._max_values // 4)
            self._compare_near(seeds)
        except _CutError as cut:
            self._report.cut = str(cut)
        except RecursionError:
            self._report.cut = "a validator or the generator went too deep into the schema"
        except ValueError as error:
            self._report.not_compared = str(error)
        self._report.left_out.update(self._drawn.left_out)
        return self._report

    def _compare_by_size(self, most: int) -> None:
        size = 0
        while size < 6 and self._report.values < most:
            size += 1
            for value in self._drawn.of_size(self._drawn.root, size):
                self._compare(value)
                if self._report.values >= most or time.monotonic() > self._half:
                    return
            self._report.complete_to = size

    def _compare_edited(self, most: int) -> None:
        """Compares texts that differ in one byte from texts that the grammar takes: many are no JSON."""
        least, longest = self._report.values, sorted(self._taken, key=len)[-MAX_EDITED:]
        for text in [*self._taken[:MAX_EDITED], *longest]:
            for edited in _edited(text):
                if edited in self._met:
                    continue
                self._met.add(edited)
                self._require_time()
                self._report.values += 1
                if self._acceptor.accepts(edited.encode()):
                    self._report.accepted += 1
                    self._compare_taken(edited)
                if self._report.values - least >= most:
                    return

    def _compare_taken(self, text: str) -> None:
        """Compares a text that the grammar takes, and that may be no JSON."""
        if error := _json_error(text):
            self._report.add(Difference(text, "accepted", "RFC 8259", error))
            return
        verdicts = self._validators.judge(text)
        if verdicts.are_invalid:
            judge, error = next(iter(verdicts.errors.items()))
            self._report.add(Difference(text, "accepted", judge, error))
        elif not verdicts.are_valid:
            self._dispute(text, verdicts.errors, is_taken=True)

    def _require_time(self) -> None:
        if time.monotonic() > self._until:
            raise _CutError("time")

    def _compare_near(self, seeds: list[Any]) -> None:
        """Compares values near valid ones, the answer first, and near those found so."""
        waiting = list(seeds)
        spread = {spell(value) for value in waiting}
        for value in waiting:
            for other in self._drawn.near(value):
                if self._compare(other) and (text := spell(other)) not in spread:
                    spread.add(text)
                    waiting.append(other)

    def _compare(self, value: Any) -> bool | None:
        """Compares one value; returns whether validators take it, and None if it is not compared."""
        self._require_time()
        text = spell(value)
        if text in self._met:
            return None
        self._met.add(text)
        if len(self._met) > 10 * self._max_values or self._report.values >= self._max_values:
            raise _CutError(f"{self._max_values} values")
        if len(text.encode()) > MAX_TEXT:
            self._report.left_out[f"texts of more than {MAX_TEXT} bytes"] += 1
            return None
        self._report.values += 1
        verdicts = self._validators.judge(text)
        needs_all = self._policies.get("property_order") == "any"
        taken, refused, furthest = self._try_orders(value, needs_all=needs_all)
        self._report.accepted += bool(taken)
        for written in taken[:1]:
            self._taken.append(written)
            self._compare_repeated_key(value, written)
        if not verdicts.are_valid and not verdicts.are_invalid:
            self._dispute(text, verdicts.errors, is_taken=bool(taken))
        elif taken and verdicts.are_invalid:
            judge, error = next(iter(verdicts.errors.items()))
            self._report.add(Difference(taken[0], "accepted", judge, error))
        elif verdicts.are_valid and (refused if needs_all else not taken):
            reason = self._excuse(value, taken)
            if reason:
                self._report.left_out[reason] += 1
            else:
                place = f"valid for all, the grammar stops at byte {furthest}"
                self._report.add(Difference(refused[0], "refused", ", ".join(verdicts.errors), place))
        return verdicts.are_valid

    def _dispute(self, text: str, errors: Mapping[str, str], *, is_taken: bool) -> None:
        self._report.disputes += 1
        if len(self._report.disputed) < MAX_REPORTED:
            words = "; ".join(f"{name}: {error or 'valid'}" for name, error in errors.items())
            verb = "takes" if is_taken else "refuses"
            self._report.disputed.append(f"{text:.120} (the grammar {verb} it): {words:.300}")

    def _try_orders(self, value: Any, *, needs_all: bool) -> tuple[list[str], list[str], int]:
        """Returns texts of a value that the grammar takes and refuses, and the furthest byte that it reads.

        With ``needs_all`` all orders of keys are tried, otherwise only up to the first that is taken.
        """
        taken: list[str] = []
        refused: list[str] = []
        furthest = 0
        for order in orders(value, MAX_ORDERS):
            written = spell(order)
            is_taken = self._acceptor.accepts(written.encode())
            (taken if is_taken else refused).append(written)
            furthest = max(furthest, self._acceptor.furthest)
            if is_taken and not needs_all:
                break
        return taken, refused, furthest

    def _compare_repeated_key(self, value: Any, written: str) -> None:
        """Repeats the last member of an object, which the grammar must refuse: keys stand once."""
        if not isinstance(value, dict) or not value:
            return
        key, member = list(json.loads(written, parse_float=Decimal).items())[-1]
        twice = f"{written[:-1]},{spell({key: member})[1:]}"
        if self._acceptor.accepts(twice.encode()):
            self._report.add(Difference(twice, "accepted", "RFC 8259, section 4", f"$: the key {key!r} stands twice"))

    def _excuse(self, value: Any, taken: list[str]) -> str:
        """Returns why the grammar may refuse a valid value, such as a documented policy; ``""`` for no reason."""
        if not taken and count_orders(value) > MAX_ORDERS:
            return f"valid values refused in the first {MAX_ORDERS} orders of their keys, which have more"
        if self._quotes:
            return "valid values of a schema with x-quote, which validators do not know"
        if self._closes and _holds(value, _has_unnamed_key):
            return "valid values with keys that the schema does not name, refused by close_objects"
        if self._years and _holds(value, _has_far_year):
            return "valid values with dates before 1000 or after 2999, refused by years"
        if self._integers and _holds(value, _is_beyond_64_bits):
            return "valid values with integers of more than 64 bits, refused by integers"
        return ""


def _holds(value: Any, test: Callable[[Any], bool]) -> bool:
    """Returns whether a value, or a part of it, passes a test."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return test(value) or any(_holds(part, test) for part in parts)


def _has_unnamed_key(value: Any) -> bool:
    return isinstance(value, dict) and EXTRA_KEY in value


def _has_far_year(value: Any) -> bool:
    return isinstance(value, str) and re.match(r"[03-9]\d{3}-\d\d-\d\d", value) is not None


def _is_beyond_64_bits(value: Any) -> bool:
    is_whole = isinstance(value, int) or (isinstance(value, Decimal) and value == value.to_integral_value())
    return is_whole and not -(2**63) <= value < 2**63


def _edited(text: str) -> Iterator[str]:
    """Yields a text with one character less, another, or one more."""
    for at in range(len(text)):
        yield text[:at] + text[at + 1 :]
        for character in _EDITS:
            yield text[:at] + character + text[at + 1 :]
            yield text[:at] + character + text[at:]
    yield from (text + character for character in _EDITS)


def _json_error(text: str) -> str:
    """Returns why a text is no JSON, or has a key twice; ``""`` if it is sound."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError(f"a key stands twice among {[key for key, _ in pairs]}")
        return dict(pairs)

    try:
        json.loads(text, parse_constant=refuse, object_pairs_hook=read)
    except ValueError as error:
        return f"$: {error}"
    return ""


class _CutError(Exception):
    """The comparison has met a limit."""


def _compare_texts(
    grammar: dict[str, Any], source: Mapping[str, Any], answer: str | None, max_values: int, max_seconds: float
) -> CompilerReport:
    """Compares a grammar with a regular expression or a Lark grammar on all short texts."""
    made = strings.judge_of(source)
    if isinstance(made, str):
        return CompilerReport(source["kind"], not_compared=made)
    report, acceptor = CompilerReport(source["kind"], (made.name,)), Acceptor(grammar)
    until = time.monotonic() + max_seconds
    if any("max_tokens" in each for each in (*grammar["rules"], *grammar["terminals"])):
        report.left_out["limits on tokens, which texts alone do not show"] += 1
    for size, text in strings.texts(made.pieces, [*([] if answer is None else [answer]), *made.likely[:3]]):
        if report.values >= max_values or time.monotonic() > until:
            report.cut = "time" if time.monotonic() > until else f"{max_values} values"
            break
        report.complete_to = max(report.complete_to, size - 1)
        report.values += 1
        is_taken, is_valid = acceptor.accepts(text.encode()), made.accepts(text)
        report.accepted += is_taken
        if is_taken and not is_valid:
            report.add(Difference(repr(text), "accepted", made.name, "no match"))
        elif is_valid and not is_taken:
            if any(acceptor.accepts(each.encode()) for each in made.without_ends(text)):
                report.left_out["matches with ignored text at an end, which the dialect does not allow"] += 1
                continue
            place = f"a match, the grammar stops at byte {acceptor.furthest}"
            report.add(Difference(repr(text), "refused", made.name, place))
    return report
