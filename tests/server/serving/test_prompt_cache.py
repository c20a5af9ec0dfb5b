"""What a server keeps of prompts on disk: for its next start, for each key alone, and not for private requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import CHAT, ask, served_as

if TYPE_CHECKING:
    from pathlib import Path

SYSTEM = "The merger of the firms A and B is planned for the ninth of May, and nobody else may know of it. " * 20

pytestmark = pytest.mark.slow


def cached_tokens(key: str, keys: tuple[str, ...] = ("one", "two"), *, path: str = CHAT, **fields: Any) -> int:
    """How many tokens of a prompt are known to a server that was just started."""
    asked: dict[str, Any] = {
        CHAT: {"messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "When?"}]},
        "/v1/responses": {"instructions": SYSTEM, "input": "When?", "store": False},
        "/v1/completions": {"prompt": SYSTEM + "When?", "max_tokens": 2},
    }
    limit = {CHAT: "max_tokens", "/v1/completions": "max_tokens", "/v1/responses": "max_output_tokens"}[path]
    body = {"model": "small", limit: 2, **asked[path], **fields}
    with constrain.Model(n_ctx=1024, n_threads=1, parallel=2, batch_invariant=False) as model:
        application = Application(served_as(model, "small"), Settings(api_keys=keys))
        response = ask(application, "POST", path, json=body, headers={"Authorization": f"Bearer {key}"})
    assert response.status_code == 200, response.text
    usage = response.json()["usage"]
    details = usage["input_tokens_details" if "input_tokens_details" in usage else "prompt_tokens_details"]
    found: int = details["cached_tokens"]
    return found


@pytest.mark.parametrize("path", [CHAT, "/v1/responses"])
def test_a_restarted_server_knows_the_prompts_of_a_key_for_this_key_alone(path: str) -> None:
    found = [cached_tokens(key, path=path) for key in ("one", "one", "two", "two", "one")]
    known = found[1]
    assert known > 300
    assert found == [0, known, 0, known, known]


def test_keys_stand_nowhere_in_the_folder(tmp_path: Path) -> None:
    cached_tokens("a-key-that-is-secret", ("a-key-that-is-secret",))
    files = [path for path in (tmp_path / "cache" / "prompts-v1").rglob("*") if path.is_file()]
    assert len(files) == 2
    assert not any(b"secret" in path.read_bytes() for path in files if path.name != "secret")
    assert not any("a-key" in str(path) for path in files)


def test_without_keys_all_share() -> None:
    assert cached_tokens("one", ()) == 0
    assert cached_tokens("two", ()) > 300


@pytest.mark.parametrize(
    "private",
    [{"cache_prompt": False}, {"prompt_cache_retention": "in_memory"}, {"prompt_cache_retention": "in-memory"}],
)
def test_private_requests_neither_keep_nor_read(private: dict[str, Any], tmp_path: Path) -> None:
    assert cached_tokens("one", **private) == 0
    assert not (tmp_path / "cache" / "prompts-v1").exists()
    cached_tokens("one", prompt_cache_retention="24h")
    assert cached_tokens("one", **private) == 0
    assert cached_tokens("one") > 300


def test_a_text_to_continue_is_kept_if_asked() -> None:
    assert cached_tokens("one", path="/v1/completions") == 0
    assert cached_tokens("one", path="/v1/completions", cache_prompt="whole") == 0
    assert cached_tokens("one", path="/v1/completions") > 300
