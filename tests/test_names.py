"""The public names, and what importing them costs."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_dir_has_the_public_names_and_modules_and_no_others() -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    modules = set(re.findall(r"constrain\.([a-z]+)\b(?!_)", page.partition("## ")[0])) | {
        "language"
    }  # of grammars in code
    assert set(dir(constrain)) == {*constrain.__all__, *modules}
    assert all(getattr(constrain, name).__name__ == f"constrain.{name}" for name in modules)


def test_a_module_without_its_extra_is_no_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    """``help(constrain)`` asks for all of them."""
    monkeypatch.delattr(constrain, "mcp", raising=False)
    monkeypatch.setitem(sys.modules, "constrain.mcp", None)  # as if an import in it failed
    with pytest.raises(AttributeError, match=r"constrain\.mcp: "):
        _ = constrain.mcp
    assert not hasattr(constrain, "mcp")


def test_dir_of_a_model_has_what_its_docstring_has() -> None:
    described = inspect.cleandoc(constrain.Model.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    attributes = re.findall(r"^    (\w+):", described, re.MULTILINE)
    shown = dir(constrain.Model.__new__(constrain.Model))
    assert {name for name in shown if name[0] != "_"} == {*attributes, "close"}


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


@pytest.mark.slow
def test_import_brings_in_little_and_nothing_heavy() -> None:
    code = "import sys; before = {*sys.modules}; import constrain; print(*{*sys.modules} - before)"
    loaded = run_python("-c", code).split()
    heavy = {"llama_cpp", "numpy", "pydantic", "lark", "interegular", "rich", "typer", "jinja2", "asyncio"}
    assert not heavy & {name.partition(".")[0] for name in loaded}
    assert len(loaded) < 200, "modules; 150 take less than 100 ms"
