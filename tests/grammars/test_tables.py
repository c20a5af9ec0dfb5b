"""Ready grammars: each is listed, documented, and accepts and rejects what its table says."""

from __future__ import annotations

import doctest

import pytest

import constrain
from constrain import grammars
from constrain.cli.program import main
from tests.support.grammars.reserved_words import TABLE, Names, definition
from tests.support.grammars.tables import FOLDER, constraint, table

FEWEST = 8
"""Texts of each kind in a table."""


@pytest.mark.parametrize("name", grammars.names())
def test_texts_are_accepted_and_rejected(name: str) -> None:
    assert [text for text in table(name).accepted if not constraint(name).accepts(text)] == []
    assert [text for text in table(name).rejected if constraint(name).accepts(text)] == []
    assert constraint(name).accepts(grammars.describe(name).example)


@pytest.mark.parametrize("name", grammars.names())
def test_every_grammar_says_what_it_is_and_where_the_format_is_defined(name: str) -> None:
    text = grammars.load(name).text
    header = text[: text.index("\n\n")].splitlines()
    assert all(line == "//" or line.startswith("// ") for line in header)
    assert header[0].endswith(".")
    assert header[1] == "//"
    assert header[2].startswith("// Source: ")
    assert header.count("// Example:") == 1


@pytest.mark.parametrize("name", grammars.names())
def test_every_table_has_enough_texts_and_none_twice(name: str) -> None:
    for texts in table(name):
        assert len(texts) == len(set(texts)) >= FEWEST
    assert not set(table(name).accepted) & set(table(name).rejected)


def test_every_table_has_a_grammar() -> None:
    assert {path.stem for path in (FOLDER / "tests").iterdir()} == set(grammars.names())


@pytest.mark.parametrize("names", TABLE, ids=lambda names: names.grammar)
def test_names_exclude_exactly_the_reserved_words(names: Names) -> None:
    assert definition(names) in grammars.load(names.grammar).text


def test_a_name_that_is_not_there_gets_an_error_with_near_names() -> None:
    with pytest.raises(constrain.GrammarError, match=r"no grammar 'sql'; near it are sql_select") as caught:
        grammars.load("sql")
    assert "uuid" not in str(caught.value)


def test_a_name_that_is_like_none_gets_an_error_with_all_names() -> None:
    with pytest.raises(constrain.GrammarError, match=r"there are arithmetic, .*, yaml_flow"):
        grammars.load("???")


def test_the_examples_of_the_docstrings_run() -> None:
    assert doctest.testmod(grammars) == (0, 4)


def test_a_path_is_no_name() -> None:
    with pytest.raises(constrain.GrammarError):
        grammars.load("../grammars/json")


@pytest.mark.parametrize("name", grammars.names())
def test_prompts_show_no_example(name: str) -> None:
    about, example = grammars.describe(name)
    assert grammars.load(name).render() == about
    shown = constrain.Lark(grammars.load(name).text).render()
    assert shown.startswith(f"// {about}\n")
    assert example.splitlines()[-1] not in shown.partition("\n\n")[0]


def test_descriptions_hold_examples_of_several_lines() -> None:
    assert grammars.describe("lisp") == (
        "S-expressions: a program or data in Lisp notation.",
        "(define (square x) ; its own product\n  (* x x))",
    )


@pytest.mark.slow
def test_the_command_lists_grammars_and_prints_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> tuple[int | str | None, str, str]:
        monkeypatch.setattr("sys.argv", ["constrain", "grammars", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code, *capsys.readouterr())

    status, listed, _ = run()
    assert status == 0
    assert [name for name in grammars.names() if name not in listed] == []
    assert run("uuid")[1] == grammars.load("uuid").text
    status, printed, told = run("jsn")
    assert (status, printed) == (1, "")
    assert "near it are json" in told
