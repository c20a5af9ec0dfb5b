"""The public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import constrain


def run_python(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout


def test_all_lists_exactly_the_public_names() -> None:
    ours = {name for name, value in vars(constrain).items() if getattr(value, "__module__", "").startswith("constrain")}
    assert len(set(constrain.__all__)) == len(constrain.__all__)
    assert {name for name in ours if not name.startswith("_")} <= set(constrain.__all__)
    assert set(constrain.__all__) <= set(dir(constrain))
    for name in set(constrain.__all__) - {"__version__"}:  # known once the distribution is installed
        assert getattr(constrain, name) is not None


def test_names_of_the_design_are_there() -> None:
    expected = """
        generate complete stream compile Model Vocabulary Constraint Matcher Grammar
        ConstrainError SchemaError UnsupportedSchemaError UnsatisfiableSchemaError GrammarError PatternError LimitError
        BudgetError ModelError OutputValidationError
    """
    assert set(expected.split()) <= set(constrain.__all__)


def test_public_things_say_where_they_are_public() -> None:
    for name in constrain.__all__:
        if name != "__version__":
            assert getattr(constrain, name).__doc__, name


def test_import_brings_in_nothing_heavy() -> None:
    code = "import sys, constrain; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    heavy = {"llama_cpp", "numpy", "pydantic", "lark", "interegular", "rich", "typer", "jinja2", "asyncio"}
    assert not heavy & set(run_python("-c", code).split())


def test_import_takes_less_than_100_ms() -> None:
    code = (
        "import time; start = time.process_time(); import constrain; constrain.compile, constrain.Vocabulary;"
        "print(time.process_time() - start)"
    )
    assert min(float(run_python("-c", code)) for _ in range(5)) < 0.1
