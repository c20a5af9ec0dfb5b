"""What a server keeps of prompts, on disk and in memory: for each key alone, and not of private requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import CHAT, ask, served_as

SYSTEM = "The merger of the firms A and B is planned for the ninth of May, and nobody else may know of it. " * 20
ASKED: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "When?"}], "max_tokens": 2},
    "/v1/completions": {"prompt": SYSTEM + "When?", "max_tokens": 2},
}

pytestmark = pytest.mark.slow


@pytest.fixture
def cached_tokens(model_file: Path) -> Callable[..., int]:
    """How many tokens of a prompt are known to a server that was just started."""

    def known(key: str, keys: tuple[str, ...] = ("one", "two"), *, path: str = CHAT, **fields: Any) -> int:
        body = {"model": "small", **ASKED[path], **fields}
        with constrain.Model(model_file, n_ctx=1024, n_threads=1, parallel=2, batch_invariant=False) as model:
            application = Application(served_as(model, "small"), Settings(api_keys=keys))
            response = ask(application, "POST", path, json=body, headers={"Authorization": f"Bearer {key}"})
        assert response.status_code == 200, response.text
        found: int = response.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        return found

    return known


def test_a_restarted_server_knows_the_prompts_of_a_key_for_this_key_alone(
    cached_tokens: Callable[..., int], tmp_path: Path
) -> None:
    keys = ("a-key-that-is-secret", "another")
    found = [cached_tokens(key, keys) for key in (keys[0], keys[0], keys[1], keys[1])]
    known = found[1]
    assert known > 300
    assert found == [0, known, 0, known]
    files = [path for path in (tmp_path / "cache" / "prompts-v1").rglob("*") if path.is_file()]
    assert files
    assert not any(b"a-key" in path.read_bytes() or "a-key" in str(path) for path in files)


def test_without_keys_all_share(cached_tokens: Callable[..., int]) -> None:
    assert cached_tokens("one", ()) == 0
    assert cached_tokens("two", ()) > 300


def test_private_requests_neither_keep_nor_read(cached_tokens: Callable[..., int], tmp_path: Path) -> None:
    private = {"prompt_cache_retention": "in_memory"}
    assert cached_tokens("one", **private) == 0
    assert not (tmp_path / "cache" / "prompts-v1").exists()
    cached_tokens("one", prompt_cache_retention="24h")
    assert cached_tokens("one", **private) == 0
    assert cached_tokens("one") > 300


def test_a_text_to_continue_is_kept_if_asked(cached_tokens: Callable[..., int]) -> None:
    assert cached_tokens("one", path="/v1/completions") == 0
    assert cached_tokens("one", path="/v1/completions", cache_prompt="whole") == 0
    assert cached_tokens("one", path="/v1/completions") > 300


# In memory, while the server runs.


SECRET = "The merger of the firms A and B is planned for the ninth of May, and nobody else may know of it. " * 2


def told_tokens(application: Application, path: str, text: str, key: str) -> int:
    """How many tokens of a prompt a key is told to have been known."""
    asked: dict[str, Any] = {
        CHAT: {"messages": [{"role": "user", "content": text}], "max_tokens": 2},
        "/v1/completions": {"prompt": text, "max_tokens": 2},
        "/v1/responses": {"input": text, "max_output_tokens": 2},
    }
    headers = {"Authorization": f"Bearer {key}"}
    response = ask(application, "POST", path, json={"model": "small", **asked[path]}, headers=headers)
    assert response.status_code == 200, response.text
    usage = response.json()["usage"]
    details = usage["input_tokens_details" if "input_tokens_details" in usage else "prompt_tokens_details"]
    found: int = details["cached_tokens"]
    return found


@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/v1/responses"])
def test_a_key_is_told_of_its_own_prompts_alone(model: constrain.Model, path: str) -> None:
    one, two = f"one for {path}", f"two for {path}"  # that nothing else has asked with
    application = Application(served_as(model, "small"), Settings(api_keys=(one, two)))
    found = [told_tokens(application, path, SECRET, key) for key in (one, one, two, two, one)]
    known = found[1]
    assert known > 20
    assert found == [0, known, 0, known, known]


def test_all_share_a_cache_where_there_are_no_keys(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings())
    first = told_tokens(application, CHAT, "no keys" + SECRET, "one")
    assert told_tokens(application, CHAT, "no keys" + SECRET, "two") > first + 20


def test_keys_share_a_cache_where_the_operator_says_so(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings(api_keys=("one", "two"), shared_cache=True))
    first = told_tokens(application, CHAT, "shared" + SECRET, "one")
    assert told_tokens(application, CHAT, "shared" + SECRET, "two") > first + 20
