"""What Ollama's clients learn about models, and what they cannot do with them here."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.llama.model import default_model_path
from constrain.server.app import Application
from constrain.server.config import read_config
from constrain.server.serving.model_files import find_models
from constrain.server.serving.models import Models, ModelSource
from constrain.server.settings import Settings
from tests.support import for_each
from tests.support.llama.small import WIDTH
from tests.support.server.asking import NoModel, ask, idle
from tests.support.server.ollama import LINES, THINKING, answer_of, error_of, post

KEY = {"Authorization": "Bearer secret"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Application:
    """Two models of one file, none of them loaded; the second one reasons."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "thinking.jinja").write_text(THINKING)
    path = default_model_path()
    (folder / "server.toml").write_text(
        f'[[models]]\npath = "{path}"\nname = "demo"\nalias = ["qwen3:8b"]\n'
        f'[[models]]\npath = "{path}"\nname = "thinker"\nchat_template = "{folder / "thinking.jinja"}"\n'
    )
    return Application(find_models(read_config(folder / "server.toml", {}), None, []), Settings())


def test_models_are_listed_with_the_facts_of_their_files(served: Application) -> None:
    models = answer_of(ask(served, "GET", "/api/tags"))["models"]
    assert [each["name"] for each in models] == ["demo:latest", "qwen3:8b", "thinker:latest"]
    path = default_model_path()
    for each in models:
        assert each["model"] == each["name"]
        assert each["size"] == path.stat().st_size
        assert re.fullmatch("[0-9a-f]{64}", each["digest"])
        modified = datetime.fromisoformat(each["modified_at"].replace("Z", "+00:00"))
        assert abs(modified - datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)) <= timedelta(seconds=1)
        assert each["details"] == {
            "parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"],
            "parameter_size": "134.52M", "quantization_level": "Q4_1",
        }  # fmt: skip


def test_no_model_is_loaded_to_be_described(served: Application) -> None:
    for name in ("demo", "demo:latest", "qwen3:8b", "thinker"):
        assert answer_of(post(served, "show", model=name))["details"]["family"] == "llama"
    assert answer_of(ask(served, "GET", "/api/ps")) == {"models": []}


def test_a_description_has_the_file_and_what_the_model_can(served: Application, model: constrain.Model) -> None:
    shown = answer_of(post(served, "show", model="demo"))
    assert shown["capabilities"] == ["completion", "tools", "embedding"]
    assert shown["template"] == model.chat_template
    assert shown["license"] == "apache-2.0"
    info = shown["model_info"]
    assert (info["general.architecture"], info["llama.block_count"]) == ("llama", 30)
    assert info["general.parameter_count"] == 134_515_008
    assert not any(key.startswith("tokenizer.chat_template") for key in info)
    assert all(isinstance(value, str | int | float) for value in info.values())


def test_a_template_of_the_configuration_is_the_one_described(served: Application) -> None:
    shown = answer_of(ask(served, "POST", "/api/show", json={"name": "thinker"}))
    assert shown["template"] == THINKING
    assert shown["capabilities"] == ["completion", "tools", "thinking", "embedding"]


def test_loaded_models_are_listed(application: Application, model: constrain.Model) -> None:
    [found] = answer_of(ask(application, "GET", "/api/ps"))["models"] or [{}]
    if not found:
        assert answer_of(post(application, "generate"))["done_reason"] == "load"
        [found] = answer_of(ask(application, "GET", "/api/ps"))["models"]
    assert (found["name"], found["model"], found["context_length"]) == ("small:latest", "small:latest", model.n_ctx)
    assert datetime.fromisoformat(found["expires_at"].replace("Z", "+00:00")).year == 9999


def test_a_misspelt_prompt_is_told_by_the_answer_that_loads_the_model(application: Application) -> None:
    loaded = answer_of(post(application, "generate", promt="Hi"))
    assert loaded["done_reason"] == "load"
    assert loaded["constrain"] == {"warnings": ["'promt' is not read; is 'prompt' meant?"]}


def test_a_file_that_cannot_be_read_is_an_error_of_the_server() -> None:
    model: Any = NoModel()
    source = ModelSource(("x",), 1, 1, 0, lambda: model, path=Path("/none.gguf"))
    application = Application(Models([source]), Settings())
    response = post(application, "show", model="x")
    assert response.status_code == 500
    assert "/none.gguf" not in error_of(response)
    listed = ask(application, "GET", "/api/tags")  # the other models can be listed
    assert [one["name"] for one in listed.json()["models"]] == ["x:latest"]


@pytest.mark.parametrize("fields", [{"model": "none"}, {"name": "none"}])
def test_unknown_models_have_no_description(fields: dict[str, Any]) -> None:
    response = ask(idle(), "POST", "/api/show", json=fields)
    assert response.status_code == 404
    assert error_of(response) == "model 'none' not found; this server has 'small'"


@for_each(
    "fields, says",
    ({}, "'model'"),
    ({"model": ""}, "'model'"),
    ({"model": 3}, "a string"),
    ({"model": "small", "verbose": True}, "tokens"),
)
def test_descriptions_need_a_name(fields: dict[str, Any], says: str) -> None:
    response = ask(idle(), "POST", "/api/show", json=fields)
    assert response.status_code == 400
    assert says in error_of(response)


def test_pulling_a_served_model_succeeds() -> None:
    for fields in ({"model": "small"}, {"name": "small:latest", "insecure": True}):
        response = ask(idle(), "POST", "/api/pull", json=fields)
        assert response.headers["content-type"] == LINES
        assert response.text == '{"status":"success"}\n'
    assert answer_of(ask(idle(), "POST", "/api/pull", json={"model": "small", "stream": False})) == {
        "status": "success"
    }


def test_other_models_are_not_pulled() -> None:
    response = ask(idle(), "POST", "/api/pull", json={"model": "llama3.2"})
    assert response.status_code == 404
    assert "constrain serve" in error_of(response)


@for_each(
    "method, path, says",
    ("POST", "create", "constrain serve"),
    ("POST", "copy", "--alias"),
    ("DELETE", "delete", "leave the model out"),
    ("POST", "push", "copy the model's GGUF file"),
    ("POST", "blobs/sha256:0123", "constrain serve"),
)
def test_models_are_not_changed(method: str, path: str, says: str) -> None:
    response = ask(idle(), method, f"/api/{path}", json={"model": "small"})
    assert response.status_code == 400
    assert says in error_of(response)


def test_the_version_is_one_of_ollama() -> None:
    version = answer_of(ask(idle(), "GET", "/api/version"))["version"]
    assert re.fullmatch(r"0\.\d+\.\d+", version)
    assert [int(part) for part in version.split(".")] >= [0, 6, 4]


def test_clients_that_look_for_a_server_find_one() -> None:
    assert ask(idle(), "HEAD", "/").status_code == 200
    assert ask(idle(), "GET", "/").headers["content-type"].startswith("text/html")
    without = Application(Models([]), Settings(playground=False))
    assert [ask(without, method, "/").status_code for method in ("HEAD", "GET", "POST")] == [200, 404, 404]
    for path in ("tags", "version", "ps"):
        assert ask(Application(Models([]), Settings()), "HEAD", f"/api/{path}").status_code == 200


@for_each("path", ["/api/tags", "/api/version", "/api/chat", "/api/nothing"])
def test_everything_needs_a_key_where_there_are_keys(path: str) -> None:
    application = idle(api_keys=("secret",))
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        response = ask(application, "GET", path, headers=headers)
        assert response.status_code == 401
        assert "API key" in error_of(response)
    assert ask(application, "GET", path, headers=KEY).status_code != 401


def test_other_errors_have_the_same_form() -> None:
    large = ask(idle(max_body_bytes=10), "POST", "/api/chat", content=b'{"model": "small"}', headers=JSON)
    assert (large.status_code, "10 bytes" in error_of(large)) == (413, True)
    foreign = ask(idle(), "GET", "/api/tags", headers={"Origin": "https://evil.example"})
    assert (foreign.status_code, "https://evil.example" in error_of(foreign)) == (403, True)
    unasked = ask(idle(), "POST", "/api/pull", content=b'{"model": "small"}', headers={"Content-Type": "text/plain"})
    assert (unasked.status_code, "--json" in error_of(unasked)) == (415, True)
    broken = ask(idle(), "POST", "/api/chat", content=b"{", headers=JSON)
    assert (broken.status_code, "JSON" in error_of(broken)) == (400, True)
    full = idle(queue=0)
    full.generator.room = 0
    busy = ask(full, "POST", "/api/chat", json={"model": "small"})
    assert (busy.status_code, "busy" in error_of(busy)) == (429, True)
    stopping = idle()
    stopping.generator.end_by(0.0)
    stopped = ask(stopping, "POST", "/api/chat", json={"model": "small"})
    assert (stopped.status_code, "shutting down" in error_of(stopped)) == (503, True)


def vectors_of(application: Application, **fields: Any) -> list[list[float]]:
    answer = answer_of(post(application, "embed", **fields))
    assert set(answer) == {"model", "embeddings", "total_duration", "load_duration", "prompt_eval_count"}
    found: list[list[float]] = answer["embeddings"]
    return found


def test_texts_get_vectors(application: Application) -> None:
    [first, second] = vectors_of(application, input=["Hello", "The sun is shining."])
    assert [first] == vectors_of(application, input="Hello", dimensions=len(first))
    assert vectors_of(application, input=[]) == []
    refused = post(application, "embed", input="a", dimensions=10)
    assert (refused.status_code, str(WIDTH) in error_of(refused)) == (400, True)
    assert (len(first), first == second) == (WIDTH, False)
    assert math.hypot(*first) == pytest.approx(1)
    assert answer_of(post(application, "embeddings", prompt="Hello")) == {"embedding": first}
    openai = ask(application, "POST", "/v1/embeddings", json={"model": "small", "input": "Hello"}).json()
    assert openai["data"][0]["embedding"] == first


def test_long_texts_are_cut_or_refused(application: Application, model: constrain.Model) -> None:
    text = "The sun is shining in Rome. " * 20
    tokens = model.text_tokens(text)
    cut = vectors_of(application, input=text, options={"num_ctx": 20})
    whole = model.vocabulary
    shown = b"".join(whole.token_bytes(token) for token in tokens[:20]).decode()
    assert cut == vectors_of(application, input=shown)
    assert cut == vectors_of(application, input=text * 400, options={"num_ctx": 20})
    for given in (text, text * 400):
        response = post(application, "embed", input=given, truncate=False, options={"num_ctx": 20})
        assert response.status_code == 400
        assert "20 tokens" in error_of(response)
