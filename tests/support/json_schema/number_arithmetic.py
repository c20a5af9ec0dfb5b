"""Random number shapes, texts near them, and what exact arithmetic says of both: the reference of several tests."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from random import Random

from constrain.json_schema.numbers.shape import Number, NumberShape
from constrain.language.tree import Expression

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STEPS = [Fraction(step) for step in ("1/100", "1/4", "1/2", "1", "3/2", "2", "3", "5/2", "10")]


def value_of(text: str) -> Fraction | None:
    """The number a JSON text stands for; ``None`` if it is no number."""
    return Fraction(text) if _NUMBER.fullmatch(text) else None


def holds(shape: NumberShape, value: Fraction) -> bool:
    """Whether the value is one of the shape's numbers."""
    if shape.values is not None:
        return value in [Fraction(listed) for listed in shape.values]
    low, high = shape.minimum, shape.maximum
    return (
        (not shape.integer or value.denominator == 1)
        and (low is None or value > Fraction(low) or (value == Fraction(low) and not shape.exclusive_minimum))
        and (high is None or value < Fraction(high) or (value == Fraction(high) and not shape.exclusive_maximum))
        and (shape.multiple is None or value % shape.multiple == 0)
        and all(value % divisor for divisor in shape.not_multiples)
        and value not in [Fraction(listed) for listed in shape.excluded]
    )


def number(value: Fraction | float) -> Number:
    """As the compiler represents it."""
    value = Fraction(value)
    if value.denominator == 1:
        return value.numerator
    return (Decimal(value.numerator) / Decimal(value.denominator)).normalize()


def random_bound(rng: Random) -> Number:
    return number(Fraction(rng.randrange(-24, 25), rng.choice([1, 1, 4, 100]) if rng.random() < 0.8 else 8))


def random_shape(rng: Random, *, exclusions: bool = True) -> NumberShape:
    """Bounds of small numbers, so that emptiness and single values are met by chance; may be empty."""
    if exclusions and rng.random() < 0.2:
        return NumberShape(values=tuple({random_bound(rng): None for _ in range(rng.randrange(1, 6))}))
    has_low, has_high = rng.random() < 0.6, rng.random() < 0.6
    return NumberShape(
        integer=rng.random() < 0.4,
        minimum=random_bound(rng) if has_low else None,
        exclusive_minimum=has_low and rng.random() < 0.4,
        maximum=random_bound(rng) if has_high else None,
        exclusive_maximum=has_high and rng.random() < 0.4,
        multiple=rng.choice(_STEPS) if rng.random() < 0.3 else None,
        not_multiples=tuple(rng.sample(_STEPS, rng.randrange(1, 3))) if exclusions and rng.random() < 0.3 else (),
        excluded=tuple(random_bound(rng) for _ in range(4)) if exclusions and rng.random() < 0.3 else (),
    )


def points(shapes: tuple[NumberShape, ...]) -> list[Fraction]:
    """Values on, between and beyond all bounds, on and off all multiples."""
    found = {Fraction(factor, 8) for factor in range(-8 * 27, 8 * 27)}
    found |= {Fraction(factor, 100) for factor in range(-300, 300, 7)}
    for shape in shapes:
        for bound in (shape.minimum, shape.maximum, *(shape.values or ()), *shape.excluded):
            if bound is not None:
                found |= {Fraction(bound) + Fraction(offset, 1000) for offset in (-10, -1, 0, 1, 10)}
    return sorted(found)


def spellings(rng: Random, value: Fraction) -> list[str]:
    """Some texts of one value: plain, with zeros, and with exponents that move the point either way."""
    plain = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    texts = [plain, plain + ("0" if "." in plain else ".0"), plain + "e0", plain + "E+00", plain + "e-0"]
    for _ in range(3):
        shift = rng.randrange(-6, 7)
        moved = Decimal(plain).scaleb(-shift)
        text = f"{moved:f}"
        texts.append(f"{text}{rng.choice('eE')}{shift:{rng.choice(['', '+'])}d}")
        texts.append(f"{text}{'' if '.' in text else '.'}0e{'-' if shift < 0 else ''}{abs(shift):03d}")
    if value == 0:
        texts += ["-0", "-0.0", "-0e7", "0.00E-5"]
    return texts


class Language:
    """One expression in the kernel."""

    def __init__(self, expression: Expression) -> None:
        from constrain import kernel
        from constrain.language.grammar import Edge, Grammar, Rule, Terminal

        rule = Rule("text", (Edge(0, 0, 1),), (1,))
        grammar = Grammar((Terminal("number", expression),), (rule,), self_delimiting=True)
        tokens = [bytes([byte]) for byte in range(256)] + [b""]
        self._compiled = kernel.CompiledGrammar(grammar, kernel.Vocabulary(tokens, [256], [256]))

    def accepts(self, text: str) -> bool:
        return self._compiled.accepts(text.encode())
