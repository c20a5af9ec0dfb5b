"""How long a label can get in Punycode (RFC 3492), at worst.

Punycode writes code points in ascending order, each as a delta of variable length. Its digits depend on the delta and
on a bias that the deltas before have left behind. Here an adversary chooses all deltas; between one code point and the
next greater one it has the code points of a range to spend, all in all. Its choices are searched by dynamic programming
over (bias, digits so far), where the least spending is best. Real labels are never longer, most are much shorter.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

_BASE, _T_MIN, _T_MAX, _SKEW, _DAMP, _INITIAL_BIAS, _INITIAL_N = 36, 1, 26, 38, 700, 72, 128


def _adapted(delta: int, count: int, *, first: bool) -> int:
    delta = delta // _DAMP if first else delta // 2
    delta += delta // count
    steps = 0
    while delta > (_BASE - _T_MIN) * _T_MAX // 2:
        delta //= _BASE - _T_MIN
        steps += _BASE
    return steps + (_BASE - _T_MIN + 1) * delta // (delta + _SKEW)


def _digits(delta: int, bias: int) -> int:
    count, k = 1, _BASE
    while True:
        threshold = min(max(k - bias, _T_MIN), _T_MAX)
        if delta < threshold:
            return count
        delta = (delta - threshold) // (_BASE - threshold)
        count, k = count + 1, k + _BASE


def _steps(function: object, end: int) -> list[tuple[int, int]]:
    """Of a monotonic function of numbers below ``end``: each value, and the first number that has it."""
    assert callable(function)
    found, start = [], 0
    while start < end:
        value = function(start)
        found.append((value, start))
        low, high = start + 1, end
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if function(middle) > value else (middle + 1, high)
        start = low
    return found


@cache
def _digit_steps(bias: int, end: int) -> list[tuple[int, int]]:
    return _steps(lambda delta: _digits(delta, bias), end)


@cache
def _bias_steps(count: int, end: int, *, first: bool) -> list[tuple[int, int]]:
    return _steps(lambda delta: _adapted(delta, count, first=first), end)


@cache
def _choices(bias: int, count: int, end: int, *, first: bool) -> list[tuple[int, int, int]]:
    """What a delta may lead to: its digits, the next bias, and how many code points it takes at least."""
    found = {}
    digit_steps = [*_digit_steps(bias, end), (0, end)]
    bias_steps = [*_bias_steps(count, end, first=first), (0, end)]
    for (digits, low), (_, high) in pairwise(digit_steps):
        for (after, low_bias), (_, high_bias) in pairwise(bias_steps):
            delta = max(low, low_bias)
            if delta < min(high, high_bias):
                # A delta of d * count + any difference of positions, which is below count, skips d code points.
                found[digits, after] = -(-max(0, delta - count + 1) // count)
    return [(digits, after, cost) for (digits, after), cost in found.items()]


def longest_label(last: int, length: int, others: int | None = None, span: int | None = None) -> int:
    """Octets, at most, of a label of ``length`` code points that are ASCII or up to ``last``.

    ``others``: no more that are not ASCII; ``span``: between the least and the greatest of these (default: any).
    """
    longest = 0
    for n_ascii in range(length):
        n_others = length - n_ascii if others is None else min(others, length - n_ascii)
        prefix = len("xn--") + n_ascii + (1 if n_ascii else 0)
        longest = max(longest, prefix + _most_digits(last - _INITIAL_N, n_ascii, n_others, span))
    return longest


def _most_digits(reach: int, n_ascii: int, n_others: int, span: int | None) -> int:
    spent = {(_INITIAL_BIAS, 0): 0}
    most = 0
    for count in range(n_ascii + 1, n_ascii + n_others + 1):
        first = count == n_ascii + 1
        budget = reach if span is None or first else span
        end = (budget + 2) * count
        best: dict[tuple[int, int], int] = {}
        for (bias, digits), before in spent.items():
            for more, after, cost in _choices(bias, count, end, first=first):
                total = before + cost
                if total <= budget:
                    key = (after, digits + more)
                    kept = 0 if first and span is not None else total
                    if kept < best.get(key, kept + 1):
                        best[key] = kept
        spent = best
        most = max(most, *(digits for _, digits in spent))
    return most
