"""The generated pages of the documentation are current; the reference has every public name and every limit."""

from __future__ import annotations

import ast
import re

import pytest
import typer.main

import constrain
from constrain.cli.program import app
from tests.support import for_each
from tools.pages import command_line
from tools.pages.__main__ import DOCS, outdated
from tools.pages.keywords import KEYWORDS, REFUSALS, is_refused
from tools.pages.limits import KERNEL, kernel_limits, modules, named_in_texts, package_limits

LONGEST = 1_200
"""Words of a page that is read from beginning to end."""

PLACE = re.compile(
    r"^\.\. (?:auto\w+|py:data):: constrain\.([\w.]+)|^- \[`constrain\.(\w+)`\]|^`constrain\.(\w+)`:", re.MULTILINE
)
"""A public name where the reference has it: a directive, an item of the list of errors, or the version."""

INTEGRATIONS = (
    "engine.torch_masks.apply_token_bitmask",
    "integrations.mlx.logits_processor",
    "integrations.transformers.logits_processor",
)
"""Public names of modules that are imported from where they stand."""

FILE = re.compile(
    r"(?<![\w/.-])(?:constrain|kernel|core|tests|docs|benchmarks|tools)/[\w/.-]*[a-z0-9_-]\.(?:py|h|cpp|md)\b(?!/)"
)
"""The path of a file: relative to the repository, to the package, or to the folder of the text that names it."""


@pytest.mark.slow
def test_pages_and_plots_are_current() -> None:
    assert list(outdated()) == [], "run python -m tools.pages"


def test_every_public_name_has_one_place_in_the_reference() -> None:
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    places = ["".join(groups) for groups in PLACE.findall(text)]
    modules = {name: getattr(constrain, name) for name in constrain._MODULES}
    names = [f"{module}.{name}" for module, value in modules.items() for name in getattr(value, "__all__", ())]
    assert sorted(places) == sorted([*constrain.__all__, *names, "errors.SchemaWarning", *INTEGRATIONS])


@pytest.mark.slow
def test_flags_on_the_page_are_those_that_the_program_takes() -> None:
    program = typer.main.get_command(app)
    for name, run in command_line._commands():
        taken = {
            flag
            for parameter in program.commands[name].params  # type: ignore[attr-defined]
            for flag in (*parameter.opts, *parameter.secondary_opts)
            if flag.startswith("-")
        }
        shown = {flag for flags in command_line.flags_of(name).values() for flag in re.split("/|, ", flags)}
        assert shown == taken - {"--help"}, run


def test_every_keyword_of_every_draft_is_on_the_page() -> None:
    listed = set(re.findall(r"^\| `([^`]+)` \|", (DOCS / "reference" / "keywords.md").read_text("utf-8"), re.MULTILINE))
    assert KEYWORDS.records.keys() <= listed


@for_each("refusal", REFUSALS)
def test_refused_schemas_are_refused(refusal: object) -> None:
    assert is_refused(refusal)  # type: ignore[arg-type]


def test_pages_that_are_read_are_short() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md") if path.parent.name != "reference"}
    words = {str(path.relative_to(DOCS)): len(re.findall(r"\S*\w\S*", text)) for path, text in texts.items()}
    assert {name: number for name, number in words.items() if number > LONGEST} == {}


def test_files_that_texts_name_exist() -> None:
    root = DOCS.parent
    texts = [root / "README.md", root / "CONTRIBUTING.md", *root.glob("tests/**/README.md"), *DOCS.rglob("*.md")]
    texts += [path for path in (root / "constrain").rglob("*.*") if path.suffix in {".py", ".h", ".cpp", ".md"}]
    for path in texts:
        for name in FILE.findall(path.read_text(encoding="utf-8")):
            assert any((place / name).exists() for place in (root, root / "constrain", path.parent)), f"{path}: {name}"


if not KERNEL.exists():
    pytest.skip("the sources are not there", allow_module_level=True)

OF_DEFINITIONS = {"MAX_LABEL_LENGTH", "MAX_WARNING_LENGTH", "MAX_CODE_POINT"}
"""Parts of expressions, and of texts that are cut: no errors name these."""


@pytest.fixture(scope="module")
def listed() -> list[str]:
    return [limit.name for limit in (*kernel_limits(), *package_limits())]


def test_every_limit_of_the_kernel_is_there() -> None:
    assert len(list(kernel_limits())) == KERNEL.read_text(encoding="utf-8").count("constexpr NamedLimit ")


@pytest.mark.slow
def test_every_limit_that_a_message_names_is_there_and_in_use(listed: list[str]) -> None:
    missing, wrong = [], []
    for path, tree in modules():
        known = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        named = set(named_in_texts(tree))
        missing += [(path, name) for name in named - {*listed, *OF_DEFINITIONS}]
        wrong += [(path, name) for name in named - known]
    assert not missing, 'say in the docstring of the constant, behind "Beyond:", what happens'
    assert not wrong, "a message names a constant that its module does not use"


@pytest.mark.slow
def test_limits_are_few_and_no_two_share_a_name(listed: list[str]) -> None:
    assert len(listed) <= 70, "a limit is named where a user can act on it; most inputs meet MAX_COMPILE_WORK"
    assert sorted(set(listed)) == sorted(listed)
