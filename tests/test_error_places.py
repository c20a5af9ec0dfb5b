"""The place in front of an error's message: in words for a root, whose JSON Pointer is empty."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pydantic import BaseModel, model_validator

import constrain
from constrain.errors import ExportError
from constrain.language.result import result_type
from tests.support import byte_vocabulary


def test_the_root_of_a_schema_is_named_in_words() -> None:
    with pytest.raises(constrain.UnsatisfiableSchemaError, match=r"^at the root of the schema: ") as caught:
        constrain.compile(False, byte_vocabulary())
    assert caught.value.pointer == ""


def test_a_member_with_an_empty_name_is_not_the_root() -> None:
    with pytest.raises(constrain.SchemaError, match=r"^at /properties/: ") as caught:
        constrain.compile({"properties": {"": 5}}, byte_vocabulary())
    assert caught.value.pointer == "/properties/"


def test_the_root_of_an_answer_is_named_in_words() -> None:
    class Rejected(BaseModel):
        @model_validator(mode="after")
        def reject(self) -> Rejected:
            raise ValueError("never")

    with pytest.raises(constrain.OutputValidationError, match=r"^at the root of the answer: ") as caught:
        result_type(Rejected).parse("{}")
    assert caught.value.pointer == ""


@pytest.mark.parametrize(("divisor", "spelled"), [(1010, "1010"), (10.1, "10.1"), (101, "101")])
def test_a_divisor_is_named_as_the_schema_has_it(divisor: Any, spelled: str) -> None:
    schema = {"type": "number", "multipleOf": divisor, "not": {"multipleOf": 2 * divisor}}
    with pytest.raises(constrain.LimitError, match=f"multiples of {spelled} cannot be enforced .* list the numbers"):
        constrain.compile(schema, byte_vocabulary())


def test_errors_are_the_same_in_another_process() -> None:
    made = [
        constrain.SchemaError("bad", pointer="/a"),
        constrain.GrammarError("bad", line=2, column=3),
        constrain.BudgetError("few", needed=7),
        constrain.OutputValidationError("wrong", text="5", pointer=""),
        ExportError("not regular", target="regex", pointer="/b"),
    ]
    for error in made:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
