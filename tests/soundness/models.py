"""Random Pydantic models, which read texts with floats."""

from __future__ import annotations

import json
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Annotated, Any, Literal, Optional, Union

import pydantic
from pydantic import BaseModel, ConfigDict, Field

import constrain
from constrain.language.result import result_type
from tests.soundness.schemas import decimals

FLOATS = (0.0, 1.0, -1.0, 0.1, 0.3, 0.5, 100.0, 2.5, 1e22, 9007199254740992.0, 1e-7, 123456.789, 0.30000000000000004)
INTEGERS = (0, 1, -1, 3, 10, 100, 2**31, 2**53, 2**53 + 1, 2**63 - 1)
DIVISORS = (2, 3, 5, 10, 7)
FRACTIONS = (0.5, 0.25, 0.1, 0.01, 0.3, 1.5, 2.0)


class Colour(Enum):
    RED = "red"
    GREEN = "green"
    ONE = 1


class Models:
    """Makes models, and reads texts with them."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.made = 0

    def model(self, depth: int) -> type[BaseModel]:
        rng = self.rng
        self.made += 1
        fields: dict[str, Any] = {}
        for name in rng.sample(("a", "b", "name", "x1", "value", "é"), rng.randint(1, 4)):
            kind = self.kind(depth)
            if rng.random() < 0.25:
                fields[name] = (Optional[kind], None)  # noqa: UP045
            else:
                fields[name] = (kind, ...)
        config = ConfigDict(extra=rng.choice(("ignore", "forbid", "allow")))
        return pydantic.create_model(f"M{self.made}", __config__=config, **fields)

    def kind(self, depth: int) -> Any:
        rng = self.rng
        scalars = (self.integer, self.floating, self.floating, self.decimal, self.decimal, self.string, self.choice)
        if depth == 0 or rng.random() < 0.6:
            return rng.choice(scalars)()
        return rng.choice((self.list, self.dict, self.union, self.tuple, self.model))(depth - 1)

    def bounds(self, pool: tuple[Any, ...]) -> dict[str, Any]:
        rng = self.rng
        low, high = sorted(rng.sample(pool, 2))
        found = {rng.choice(("ge", "gt")): low, rng.choice(("le", "lt")): high}
        for name in list(found):
            if rng.random() < 0.35:
                del found[name]
        return found

    def integer(self) -> Any:
        rng = self.rng
        bounds = self.bounds(INTEGERS)
        if rng.random() < 0.2:
            bounds = {name: value for name, value in bounds.items() if value < 2**53} | {
                "multiple_of": rng.choice(DIVISORS)
            }
        return Annotated[int, Field(**bounds)]

    def floating(self) -> Any:
        rng = self.rng
        bounds = self.bounds(FLOATS)
        if rng.random() < 0.15:
            bounds = {"ge": 0, "multiple_of": rng.choice(FRACTIONS)}
        return Annotated[float, Field(**bounds)]

    def decimal(self) -> Any:
        rng = self.rng
        bounds: dict[str, Any] = {}
        if rng.random() < 0.7:
            bounds["max_digits"] = rng.randint(2, 20)
        if rng.random() < 0.7:
            bounds["decimal_places"] = rng.randint(0, min(bounds.get("max_digits", 6), 6))
        if rng.random() < 0.15:
            bounds["multiple_of"] = rng.choice(decimals("0.5 0.01 3"))
        elif rng.random() < 0.4:
            bounds |= self.bounds(decimals("0 1 -1 0.1 0.01 100 99.99 1e15"))
        return Annotated[Decimal, Field(**bounds)]

    def string(self) -> Any:
        rng = self.rng
        kind = rng.randrange(3)
        if kind == 0:
            return Annotated[str, Field(min_length=rng.randrange(3), max_length=rng.randint(3, 6))]
        return str if kind == 1 else Annotated[str, Field(pattern=rng.choice((r"^[a-c]{1,3}$", r"^\d+$", "^x?y*$")))]

    def choice(self) -> Any:
        rng = self.rng
        return rng.choice((Literal["a", "b", 1], Literal[True, 2], Colour, bool, None))

    def list(self, depth: int) -> Any:
        rng = self.rng
        if rng.random() < 0.2:
            return set[Annotated[int, Field(ge=0, le=rng.randint(1, 30))]]
        return Annotated[list[self.kind(depth)], Field(min_length=rng.randrange(2), max_length=rng.randint(1, 3))]  # type: ignore[misc]

    def dict(self, depth: int) -> Any:
        key = self.rng.choice((str, str, int, Annotated[Decimal, Field(max_digits=3, decimal_places=2)]))
        return Annotated[dict[key, self.kind(depth)], Field(max_length=self.rng.randint(1, 3))]  # type: ignore[misc]

    def tuple(self, depth: int) -> Any:
        return tuple[self.kind(depth), self.kind(depth)]  # type: ignore[misc]

    def union(self, depth: int) -> Any:
        return Union[self.kind(depth), self.list(depth), None]  # noqa: UP007

    # Reading

    def error(self, model: type[BaseModel], text: str) -> str:
        """Why a text is none of the model, read with floats or with exact decimals; empty if it is one."""
        try:
            model.model_validate_json(text)
            exact = model.model_validate(json.loads(text, parse_float=Decimal))
            value = result_type(model).parse(text)
        except (ValueError, constrain.OutputValidationError) as error:
            return str(error)[:500]
        return "" if same(value, exact) else f"{value} differs from {exact}"

    def described(self, model: type[BaseModel]) -> str:
        return json.dumps(model.model_json_schema())


def same(one: Any, other: Any) -> bool:
    """Whether the decimals of two values are equal, where both have decimals: a union may read others differently."""
    if isinstance(one, BaseModel) and type(one) is type(other):
        return all(same(getattr(one, name), getattr(other, name)) for name in type(one).model_fields)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(same(one[key], other.get(key)) for key in one)
    return one == other or not (isinstance(one, Decimal) and isinstance(other, Decimal))
