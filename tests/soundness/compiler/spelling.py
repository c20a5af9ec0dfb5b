"""JSON texts of values whose numbers may be decimals: compact, one spelling for each number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice, permutations, product
from typing import Any


def spell(value: Any) -> str:
    """Returns the compact JSON text of a value, its keys in their order."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{spell(key)}:{spell(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(spell, value)) + "]"
    if isinstance(value, Decimal):
        return _digits(value)
    return json.dumps(value, ensure_ascii=False)


def _digits(value: Decimal) -> str:
    """Returns a decimal without exponent and without a fraction of zeros."""
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def orders(value: Any, most: int) -> Iterator[Any]:
    """Yields a value with its keys in other orders, the given one first; ``most``: the most to yield."""
    yield from islice(_orders(value, most), most)


def _orders(value: Any, most: int) -> Iterator[Any]:
    if isinstance(value, dict):
        inner = {key: list(orders(member, most)) for key, member in value.items()}
        for keys in permutations(value):
            for members in product(*(inner[key] for key in keys)):
                yield dict(zip(keys, members, strict=True))
    elif isinstance(value, list):
        yield from (list(items) for items in product(*(list(orders(item, most)) for item in value)))
    else:
        yield value


def count_orders(value: Any) -> int:
    """Returns in how many orders the keys of a value can stand."""
    if not isinstance(value, dict | list):
        return 1
    count = 1
    for index, member in enumerate(value.values() if isinstance(value, dict) else value, start=1):
        count *= count_orders(member) * (index if isinstance(value, dict) else 1)
    return count
