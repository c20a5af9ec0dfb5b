"""Ready grammars: each is listed, documented, and accepts and rejects what its table says."""

from __future__ import annotations

import ast
import configparser
import contextlib
import csv
import datetime as dt
import doctest
import ipaddress
import json
import re
import sqlite3
import sys
import urllib.parse
import uuid
import warnings
from collections.abc import Callable
from email.parser import BytesHeaderParser
from random import Random

import email_validator
import numpy as np
import pytest

import constrain
from constrain import grammars
from constrain.cli.program import main
from tests.support import LONG, allowed, tomllib
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


WALKS = 2_000 if LONG else 40
MUTATIONS = 100_000 if LONG else 1_000
END = 256
LONGEST = 60
"""Random bytes of a walk, before it takes the shortest way to an end."""


def read_toml(text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if not re.match("Cannot (overwrite|declare|mutate|redefine)|Duplicate", str(error)):  # defined twice
            raise


def read_ini(text: str) -> None:
    configparser.ConfigParser(strict=False, interpolation=None, default_section="\0").read_string(text)


def read_csv_row(text: str) -> None:
    assert len(list(csv.reader([text], strict=True))) == 1


def read_email(text: str) -> None:
    email_validator.validate_email(text, check_deliverability=False, test_environment=True)


def read_url(text: str) -> None:
    parts = urllib.parse.urlsplit(text)
    assert parts.hostname
    assert parts.port != 0


def read_http_headers(text: str) -> None:
    headers = BytesHeaderParser().parsebytes(text.encode("ascii"))
    assert not headers.defects
    assert len(headers.items()) == len(text.splitlines())


def read_python_expression(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        ast.parse(text, mode="eval")


UNREAD_BY_SQLITE = re.compile(
    r"(^|[()]|\b(union|all|except|intersect)\b)\s*[(]\s*(select|[(])|\b(date|timestamp|interval)\s+'", re.IGNORECASE
)
"""Operands of UNION and the like in parentheses, and literals with a type, which other databases have."""


def read_sql(text: str) -> None:
    """Parses only: errors about tables that are not there come after those of syntax."""
    if UNREAD_BY_SQLITE.search(text):
        return
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute(text)
        except sqlite3.OperationalError as error:
            if re.search("syntax|unrecognized|incomplete", str(error)):
                raise


def read_date_time(text: str) -> None:
    fraction = re.sub(r"\.(\d{1,6})\d*", lambda found: f".{found[1]:0<6}", text)  # all that Python 3.10 reads
    dt.datetime.fromisoformat(fraction.upper().replace("Z", "+00:00"))


READERS: dict[str, Callable[[str], object]] = {
    "csv_row": read_csv_row,
    "email": read_email,
    "http_headers": read_http_headers,
    "ini": read_ini,
    "ip_address": ipaddress.ip_address,
    "json": json.loads,
    "python_expression": read_python_expression,
    "rfc3339": read_date_time,
    "sql_select": read_sql,
    "toml": read_toml,
    "url": read_url,
    "uuid": uuid.UUID,
}
"""Raise if a text is not in the format."""

if sys.version_info < (3, 11):  # it has no reader of TOML
    del READERS["toml"]


@pytest.mark.slow
@pytest.mark.parametrize("name", grammars.names())
def test_every_walk_ends_in_an_accepted_text(name: str) -> None:
    """Walks set out from anywhere in the texts of the table."""
    begun = [text.encode() for text in table(name).accepted]
    row = constraint(name).allocate_bitmask()[0]
    for walk in range(WALKS):
        rng = Random(f"{name} {walk}")
        whole = rng.choice(begun)
        text = walk_from(name, whole[: rng.randrange(len(whole) + 1)], rng, row)
        assert constraint(name).accepts(text), (walk, text)
        if name in READERS:
            READERS[name](text.decode())


def walk_from(name: str, text: bytes, rng: Random, row: np.ndarray) -> bytes:
    """Goes on from a text with random bytes, and then along the shortest way to an end."""
    matcher = constraint(name).matcher()
    assert matcher.accept_many(list(text)) == len(text)
    for _ in range(rng.randrange(LONGEST)):
        token = int(rng.choice(allowed(matcher, row)))
        assert matcher.accept(token), (text, token)
        if token == END:
            return text
        text += bytes([token])
    return text + bytes(matcher.shortest_completion())


@pytest.mark.parametrize("name", READERS)
def test_other_readers_take_the_accepted_texts(name: str) -> None:
    for text in table(name).accepted:
        READERS[name](text)


@pytest.mark.parametrize("name", READERS)
def test_other_readers_take_whatever_mutation_is_accepted(name: str) -> None:
    """Pieces of texts of the table, put in place of other pieces."""
    texts = table(name).accepted + table(name).rejected
    rng = Random(name)
    for _ in range(MUTATIONS):
        text, other = rng.choice(texts), rng.choice(texts)
        start, begin = rng.randrange(len(text) + 1), rng.randrange(len(other) + 1)
        mutant = text[:start] + other[begin : begin + rng.randrange(6)] + text[start + rng.randrange(4) :]
        if constraint(name).accepts(mutant):
            READERS[name](mutant)
