"""The list of ready grammars, in Python and on the command line."""

from __future__ import annotations

import doctest

import pytest

import constrain
from constrain import grammars
from tests.support.command_line import run


def test_a_name_that_is_not_there_gets_an_error_with_near_names() -> None:
    with pytest.raises(constrain.GrammarError, match=r"no grammar 'sql'; near it are sql_select") as caught:
        grammars.load("sql")
    assert "uuid" not in str(caught.value)


def test_a_name_that_is_like_none_gets_an_error_with_all_names() -> None:
    with pytest.raises(constrain.GrammarError, match=r"there are arithmetic, .*, yaml_flow"):
        grammars.load("???")


def test_the_examples_of_the_docstrings_run() -> None:
    assert doctest.testmod(grammars) == (0, 5)


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
def test_the_command_lists_every_grammar_with_its_example() -> None:
    listed = run("grammars")
    assert listed.returncode == 0
    for name in grammars.names():
        assert name in listed.stdout
        assert grammars.describe(name).example.splitlines()[0][:20] in listed.stdout


@pytest.mark.slow
def test_the_command_prints_a_grammar_as_it_is() -> None:
    assert run("grammars", "uuid").stdout == grammars.load("uuid").text


@pytest.mark.slow
def test_the_command_fails_for_an_unknown_name() -> None:
    failed = run("grammars", "jsn")
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert "near it are json" in failed.stderr
