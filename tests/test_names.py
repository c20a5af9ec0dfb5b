"""The public names, and what importing them costs."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import constrain
from tests.support import for_each
from tests.support.type_checkers import CHECKERS, check

PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "python.md").read_text(encoding="utf-8")

MOST = 45
"""Names at the top: what one reads through to find one."""

MOVED = {name: module for module, names in constrain._MODULES.items() for name in names.split()}


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
    modules = re.findall(r"^\| `constrain\.([a-z]+)` \| .", PAGE, re.MULTILINE)
    assert set(dir(constrain)) == {*constrain.__all__, *modules}
    assert all(getattr(constrain, name).__name__ == f"constrain.{name}" for name in modules)


def test_names_at_the_top_are_few_and_each_says_when_to_use_it() -> None:
    table = PAGE.partition("\n## Names of constrain\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*`) \| (?:to|for|as) ", table, re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(names) == sorted(constrain.__all__)
    assert len(names) <= MOST


def test_the_names_that_an_error_places_are_those_of_their_modules() -> None:
    for module, names in constrain._MODULES.items():
        if names:
            found = importlib.import_module(f"constrain.{module}")
            assert set(names.split()) <= {*vars(found)}
            assert module in ("errors", "grammars") or sorted(found.__all__) == sorted(names.split())


@for_each("name", "ToolCall", "StructuralTag", "verify_certificate", "export")
def test_a_name_of_another_module_is_an_error_that_says_where_it_is(name: str) -> None:
    where = f"^{name} is in constrain.{MOVED[name]}: from constrain.{MOVED[name]} import {name}$"
    with pytest.raises(AttributeError, match=where):
        getattr(constrain, name)
    with pytest.raises(ImportError, match=where):
        exec(f"from constrain import {name}")
    assert not hasattr(constrain, name)


def test_an_unknown_name_is_a_plain_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'constrain' has no attribute 'generate_all'$"):
        _ = constrain.generate_all  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match=r"^cannot import name 'generate_all' from 'constrain'"):
        exec("from constrain import generate_all")


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
        BudgetError ModelError OutputValidationError DraftError MessageError PrefixError CertificateError choose Regex
        Lark Gbnf tool explain Quote Completion Finished TextDelta
    """
    assert set(expected.split()) <= set(constrain.__all__)


INSIDE = {
    *("ApiError", "RemoteTracebackError"),  # answers of the server
    *("FieldError", "LineError", "MissingExtraError", "QuoteError", "StoreError", "ValueTypeError"),  # of a batch
    *("DifferenceError", "NotCharactersError", "UncertainError", "UnknownPartError"),  # become public ones, or nothing
    *("FileError", "RejectedFileError"),  # the command line shows the first, and a cache warns of the second
}
"""Errors that leave no function of a public module."""


def test_every_error_that_a_caller_can_meet_has_a_public_name() -> None:
    texts = [path.read_text(encoding="utf-8") for path in Path(constrain.__file__).parent.rglob("*.py")]
    kinds = {name for text in texts for name in re.findall(r"^class ([A-Z]\w*(?:Error|Warning))\(", text, re.MULTILINE)}
    assert kinds - {*vars(constrain.errors), *constrain.mcp.__all__} == INSIDE


def test_public_things_say_where_they_are_public() -> None:
    for name in constrain.__all__:
        if name != "__version__":
            assert getattr(constrain, name).__doc__, name


@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_see_every_public_name_and_no_other(tmp_path: Path, checker: str) -> None:
    names = [f"constrain.{name}" for name in constrain.__all__]
    for module in constrain._MODULES:
        public = getattr(importlib.import_module(f"constrain.{module}"), "__all__", ())
        names += [f"constrain.{module}.{name}" for name in public]
    unknown = ["constrain.ToolCall", "constrain.generate_all", "constrain.tools.run_tool"]
    aliases = {"events.StreamEvent": "", "tools.ToolCall": "", "tools.ToolContext": "[int]"}
    plain = [name for name in names if name.removeprefix("constrain.") not in aliases]
    lines = ["import constrain", *(f"reveal_type({name})" for name in plain), *unknown]
    lines += [
        f"def f{n}(it: constrain.{name}{of}) -> None: reveal_type(it)" for n, (name, of) in enumerate(aliases.items())
    ]
    shown = check(checker, "\n".join(lines), tmp_path)
    assert len(re.findall(r"(?:-|:[0-9]+:) error: ", shown)) == len(unknown), shown
    revealed = re.findall(r'(?:Revealed type is|Type of ".*" is) "(.*)"$', shown, re.MULTILINE)
    assert len(revealed) == len(names), shown
    assert {"Any", "Unknown", "object", "builtins.object"}.isdisjoint(revealed), shown


@pytest.mark.slow
def test_import_brings_in_little_and_nothing_heavy() -> None:
    code = "import sys; before = {*sys.modules}; import constrain; print(*{*sys.modules} - before)"
    loaded = run_python("-c", code).split()
    heavy = {"llama_cpp", "numpy", "pydantic", "lark", "interegular", "rich", "typer", "jinja2", "asyncio"}
    assert not heavy & {name.partition(".")[0] for name in loaded}
    assert len(loaded) < 200, "modules; 150 take less than 100 ms"
