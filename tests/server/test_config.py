"""``server.toml``, and the flags that count before it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

import constrain
from constrain.errors import SchemaError
from constrain.llama.model import default_model_path
from constrain.server.config import ServerConfig, read_config
from constrain.server.http.account import Account, current
from constrain.server.logs import JsonLines, TextLines, log_config
from constrain.server.serving.model_files import find_models
from tests.support.server.asking import ask
from tests.support.server.asking import idle as application
from tests.support.server.tables import table

MODEL = default_model_path()


def config(folder: Path, text: str, **flags: Any) -> ServerConfig:
    path = folder / "server.toml"
    path.write_text(text)
    return read_config(path, flags)


def test_a_file_says_what_flags_say(tmp_path: Path) -> None:
    found = config(
        tmp_path,
        """
        host = "0.0.0.0"
        port = 9000
        memory_limit = "6 GiB"
        timeout = 30
        deterministic = true
        allowed_host = ["LLM.example", "[::1]"]
        cors_origin = "*"
        shared_cache = true
        log_format = "json"
        """,
    )
    assert (found.host, found.port, found.timeout, found.deterministic) == ("0.0.0.0", 9000, 30.0, True)
    assert (found.memory_limit, found.cors_origin, found.log_format) == (6 << 30, ["*"], "json")
    assert (found.allowed_host, found.shared_cache) == (["llm.example", "::1"], True)


@pytest.mark.slow
def test_a_byte_order_mark_in_front_of_files_is_ignored(tmp_path: Path, model_file: Path) -> None:
    (tmp_path / "template").write_text("\ufeffQ: {{ messages[0].content }}", encoding="utf-8")
    found = config(
        tmp_path, f'\ufeffport = 9000\n[[models]]\npath = "{model_file}"\nchat_template = "template"\nctx = 64'
    )
    assert found.port == 9000
    source = find_models(found, None, []).source("small")
    with source.load() as model:
        assert model.chat_template == "Q: {{ messages[0].content }}"


def test_flags_count_before_the_file(tmp_path: Path) -> None:
    text = 'port = 9000\nqueue = 3\nctx = 512\n[[models]]\npath = "a.gguf"\nctx = 1024'
    found = config(tmp_path, text, port=9001, ctx=2048)
    assert (found.port, found.queue, found.ctx, found.models[0].ctx) == (9001, 3, 2048, 2048)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    text = 'api_key_file = "keys"\n[[models]]\npath = "models/a.gguf"\n[[models]]\npath = "/b.gguf"'
    found = config(tmp_path, text)
    assert found.api_key_file == tmp_path / "keys"
    assert [table.path for table in found.models] == [tmp_path / "models" / "a.gguf", Path("/b.gguf")]
    assert config(tmp_path, text, api_key_file=Path("mine")).api_key_file == Path("mine")
    text = 'table = ["a=a.csv", "b=/crm.db:b", "c=sqlite:///c.db:c"]'
    assert config(tmp_path, text).table == [f"a={tmp_path}/a.csv", "b=/crm.db:b", "c=sqlite:///c.db:c"]
    assert config(tmp_path, text, table=["a=b.csv"]).table == ["a=b.csv"]


@pytest.mark.parametrize("case", table("config")["refused"])
def test_what_a_file_cannot_say_is_named(tmp_path: Path, case: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"server\.toml") as error:
        config(tmp_path, case["text"])
    assert case["says"] in str(error.value)


def test_what_a_flag_cannot_say_is_named() -> None:
    with pytest.raises(ValueError, match="--memory-limit: Value error, a size is a number of bytes"):
        read_config(None, {"memory_limit": "much"})
    with pytest.raises(ValueError, match=r"--allowed-host: Value error, a host is .*, not 'my_host/'"):
        read_config(None, {"allowed_host": ["my_host/"]})


def test_a_table_has_a_name_and_is_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--table: Value error, 'people' must be NAME=SOURCE"):
        read_config(None, {"table": ["people"]})
    with pytest.raises(ValueError, match="--sql: Value error, 'shop' is the name of two sources"):
        read_config(None, {"sql": ["shop=a.db", "shop=b.db"]})
    with pytest.raises(SchemaError, match=r"people\.csv cannot be read"):
        find_models(config(tmp_path, 'table = "people=people.csv"'), MODEL, [])


def test_the_prompt_cache_is_set_for_all_models(tmp_path: Path) -> None:
    found = config(tmp_path, 'prompt_cache_size = "500 MB"')
    assert (found.prompt_cache, found.prompt_cache_size) == (True, 500_000_000)
    assert config(tmp_path, "prompt_cache = false").prompt_cache is False


def test_models_have_names_of_their_own_and_aliases(tmp_path: Path) -> None:
    found = find_models(config(tmp_path, f'[[models]]\npath = "{MODEL}"\nalias = ["x", "y"]\nparallel = 3'), None, [])
    assert list(found) == [MODEL.stem, "x", "y"]
    assert found.parallel == 3
    assert found.source("y").created == int(MODEL.stat().st_mtime)


def test_a_flag_names_the_model_in_place_of_the_file(tmp_path: Path) -> None:
    assert list(find_models(config(tmp_path, '[[models]]\npath = "none.gguf"'), MODEL, ["x", "y"])) == ["x", "y"]


@pytest.mark.parametrize(
    ("aliases", "listed", "known", "unknown"),
    [
        (["claude-*"], [MODEL.stem], ["claude-", "claude-sonnet-4-5"], ["my-claude-1", "gpt"]),
        (["x", "*"], ["x"], ["anything", "claude/a:b"], []),
        (["a*c*e", "x"], ["x"], ["ace", "abcde"], ["abc", "b-ace"]),
        (["a.[b]*"], [MODEL.stem], ["a.[b]c"], ["aXb"]),
    ],
)
def test_names_may_be_patterns(
    tmp_path: Path, aliases: list[str], listed: list[str], known: list[str], unknown: list[str]
) -> None:
    found = find_models(config(tmp_path, ""), MODEL, aliases)
    assert list(found) == listed
    assert all(found.name_of(name) is not None for name in (*listed, *known))
    assert all(found.name_of(name) is None for name in unknown)


def test_names_win_over_patterns(tmp_path: Path) -> None:
    found = find_models(config(tmp_path, two(a='alias = "*"')), None, [])
    assert [found.name_of(name) for name in ("a", "b", "c")] == ["a", "b", "a"]


def two(**more: str) -> str:
    return "\n".join(f'[[models]]\npath = "{MODEL}"\nname = "{name}"\n{more.get(name, "")}' for name in ("a", "b"))


def test_names_are_those_of_one_model(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two models have the name a: "):
        find_models(config(tmp_path, two(b='alias = "a"')), None, [])


def test_an_alias_for_several_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--alias names one model, and the configuration has 2"):
        find_models(config(tmp_path, two()), None, ["x"])


def test_a_model_that_never_has_room_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"GiB, more than the memory_limit of 0\.1 GiB"):
        find_models(config(tmp_path, 'memory_limit = "100 MiB"\n' + two()), None, [])


def test_a_form_of_calls_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'morse' is not a form of tool calls"):
        find_models(config(tmp_path, two(b='tool_format = "morse"')), None, [])


@pytest.mark.parametrize("content", [None, b"", b"no model"])
def test_a_file_that_is_no_model_is_refused_at_start(tmp_path: Path, content: bytes | None) -> None:
    broken = tmp_path / "broken.gguf"
    if content is not None:
        broken.write_bytes(content)
    with pytest.raises((constrain.ModelError, OSError), match=r"broken\.gguf"):
        find_models(config(tmp_path, two() + f'\n[[models]]\npath = "{broken}"'), None, [])


def test_what_is_deterministic_is_written_one_at_a_time(tmp_path: Path) -> None:
    assert find_models(config(tmp_path, "deterministic = true\n" + two()), None, []).parallel == 2
    with pytest.raises(ValueError, match="parallel is 4, but a deterministic server"):
        find_models(config(tmp_path, "deterministic = true\nparallel = 4\n" + two()), None, [])


HOSTILE = "\x1b[31m\n2026-01-01 INFO forged\r\x00\u2028\u202e\x9b"


def record(message: str = "", *, error: Exception | None = None, **facts: Any) -> logging.LogRecord:
    info = (type(error), error, None) if error is not None else None
    made = logging.LogRecord("constrain.server", logging.INFO, __file__, 1, "%s", (message,), info)
    made.__dict__.update(facts)
    return made


def logged_of(caplog: pytest.LogCaptureFixture, response: httpx.Response) -> logging.LogRecord:
    """What is logged of a request; the server of an earlier test may still log a client that has just left."""
    requests: list[Any] = [one for one in caplog.records if one.name == "constrain.server.requests"]
    [logged] = [one for one in requests if one.request_id == response.headers["x-request-id"]]
    return logged


def test_every_request_is_logged_with_the_id_of_its_response(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "constrain.server"):
        response = ask(application(), "GET", "/v1/models")
    facts = json.loads(JsonLines().format(logged_of(caplog, response)))
    assert facts["event"] == "request"
    assert (facts["method"], facts["path"], facts["status"]) == ("GET", "/v1/models", 200)
    assert (facts["client"], facts["model"], facts["prompt_tokens"]) == ("127.0.0.1", None, 0)
    assert facts["seconds"] >= 0
    assert facts["request_id"] == response.headers["x-request-id"]


def test_the_reason_of_a_refusal_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "constrain.server"):
        refused = ask(application(), "POST", "/v1/chat/completions", json={"model": "small"})
        unknown = ask(application(), "GET", "/v1/nothing")
    for response in (refused, unknown):
        logged = logged_of(caplog, response)
        reason = json.loads(JsonLines().format(logged))["reason"]
        assert reason == response.json()["error"]["message"]
        assert f"because: {reason}" in logged.getMessage()


def test_an_id_is_logged_with_all_that_happens_meanwhile() -> None:
    handler = logging.StreamHandler()
    configured = log_config("json")
    filtering = configured["filters"]["request"]["()"]()
    handler.addFilter(filtering)
    made = record("something")
    token = current.set(Account(0.0, id="req_1"))
    try:
        assert handler.filter(made)
    finally:
        current.reset(token)
    assert json.loads(JsonLines().format(made))["request_id"] == "req_1"
    assert TextLines().format(made).endswith(" INFO    something (req_1)")


def test_keys_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for key in ("right-key", "wrong-key"):
            ask(
                application(api_keys=("right-key",)),
                "GET",
                "/v1/models?key=in-query",
                headers={"Authorization": f"Bearer {key}"},
            )
    ours = [one for one in caplog.records if one.name.startswith("constrain")]
    assert [one.__dict__["status"] for one in ours] == [200, 401]
    written = "\n".join(form.format(one) for one in ours for form in (TextLines(), JsonLines()))
    assert "right-key" not in written
    assert "wrong-key" not in written
    assert "in-query" not in written


@pytest.mark.parametrize("form", [TextLines(), JsonLines()])
def test_a_message_is_one_line_of_characters_that_print(form: logging.Formatter) -> None:
    written = form.format(record(f"before {HOSTILE} after", path=HOSTILE))
    assert written.isprintable()
    assert "before" in written
    assert "after" in written


def test_what_an_error_says_cannot_begin_a_line() -> None:
    written = TextLines().format(record("failed", error=ValueError(HOSTILE)))
    first, *others = written.splitlines()
    assert first.endswith("failed")
    assert any("forged" in line for line in others)
    for line in others:
        assert line.startswith("    ")
        assert line.isprintable()


def test_a_traceback_is_part_of_the_json_object() -> None:
    written = JsonLines().format(record("failed", error=ValueError(HOSTILE)))
    assert written.isprintable()
    assert HOSTILE in json.loads(written)["exc_info"]


def test_paths_that_clients_make_up_are_escaped(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "constrain.server"):
        response = ask(application(), "GET", "/v1/%1b%5b31m%0aINFO%20forged")
    logged = logged_of(caplog, response)
    assert r"GET /v1/\x1b[31m\nINFO forged 404" in TextLines().format(logged)
    assert json.loads(JsonLines().format(logged))["path"] == "/v1/\x1b[31m\nINFO forged"
