"""Databases of a server's operator, which custom tools of requests name, and those of the command line."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.chat.tools.openai import tool_from_json
from constrain.queries.served import Served, sql_at
from constrain.server.app import Application
from constrain.server.config import read_config
from constrain.server.sandbox.workers import workers
from constrain.server.serving.model_files import find_models
from constrain.server.settings import Settings
from tests.support import each_row
from tests.support.command_line import call
from tests.support.llama.transformer import tiny_file
from tests.support.server.asking import ask, chat, error_of, idle, served_as

CREATED = "CREATE TABLE books (title TEXT, pages INTEGER);\nCREATE TABLE authors (name TEXT);\n"


@pytest.fixture(autouse=True)
def _nothing_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.queries.served._SERVED", {})


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(CREATED)
    connection.close()
    return path


def tool(name: str) -> dict[str, Any]:
    return {"name": "query", "format": {"type": "grammar", "syntax": "sql", "definition": name}}


@each_row(
    "served, name, words",
    ((), "shop", "are off until the operator of the server names one, as in constrain serve --sql shop=shop.db"),
    (("shop", "stock"), "shp", r"there is no database 'shp' \(did you mean shop\?\)"),
    (("shop",), "sqlite:////etc/passwd", "there is no database 'sqlite:////etc/passwd'; there are 'shop'"),
)
def test_a_tool_names_a_database_of_the_operator(served: tuple[str, ...], name: str, words: str) -> None:
    for each in served:
        Served(each, constrain.sql(CREATED))
    with pytest.raises(constrain.GrammarError, match=words):
        tool_from_json({"type": "custom", **tool(name)})


def test_another_name_is_refused_with_its_place() -> None:
    error = error_of(chat(idle(), tools=[{"type": "custom", "custom": tool("nobody")}]))
    assert "there is no database" in error["message"]
    assert error["param"] == "tools[0].custom.format"


@pytest.mark.slow
def test_custom_tools_write_queries_that_run(model: constrain.Model, database: Path) -> None:
    workers().keep([Served("shop", sql_at(str(database)))])
    application = Application(served_as(model, "small"), Settings())
    nested = {"type": "grammar", "grammar": {"syntax": "sql", "definition": "shop"}}
    asked: dict[str, Any] = {"tools": [{"type": "custom", "custom": {"name": "query", "format": nested}}]}
    answer = chat(application, tool_choice="required", max_tokens=60, **asked).json()
    queries = [call["custom"]["input"] for call in answer["choices"][0]["message"]["tool_calls"]]
    body = {"model": "small", "input": "Which?", "tools": [{"type": "custom", **tool("shop")}]}
    body |= {"tool_choice": "required", "max_output_tokens": 60}
    answer = ask(application, "POST", "/v1/responses", json=body).json()
    queries += [item["input"] for item in answer["output"] if item["type"] == "custom_tool_call"]
    assert len(queries) >= 2
    connection = sqlite3.connect(database)
    for query in queries:
        connection.execute(f"EXPLAIN {query}")
    connection.close()


@pytest.mark.usefixtures("database")
def test_the_configuration_names_databases(tmp_path: Path) -> None:
    (tmp_path / "created.sql").write_text(CREATED)
    (tmp_path / "server.toml").write_text('sql = ["shop=shop.db", "texts=created.sql"]')
    find_models(read_config(tmp_path / "server.toml", {}), tiny_file(), [])
    for name in ("shop", "texts"):
        made: Any = tool_from_json({"type": "custom", **tool(name)})
        assert "books(title, pages)" in made.format.describe()
    (tmp_path / "latin.sql").write_bytes(b"CREATE TABLE b\xfccher (titel TEXT);")
    with pytest.raises(constrain.GrammarError, match=r"latin\.sql is not UTF-8: .* at byte 14"):
        sql_at(str(tmp_path / "latin.sql"))
    with pytest.raises(constrain.GrammarError, match=r"there is no file 'missing\.db'"):
        find_models(read_config(None, {"sql": ["shop=missing.db"]}), tiny_file(), [])


def test_the_command_line_names_one_database(database: Path) -> None:
    assert (
        "a shortest way to finish from here: 'oks'" in call("explain", "--sql", database, "SELECT title FROM bo").stdout
    )
    assert "exclude each other" in call("generate", "x", "--sql", database, "--regex", "a").stderr
