"""What a server keeps of prompts on disk: for its next start, for each key alone, and not for private requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import CHAT, ask, served_as

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
