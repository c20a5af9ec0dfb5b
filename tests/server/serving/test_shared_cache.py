"""What a model has read of a prompt serves requests with the same key, and no key learns of the prompts of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import CHAT, ask, served_as

if TYPE_CHECKING:
    import constrain

SECRET = "The merger of the firms A and B is planned for the ninth of May, and nobody else may know of it. " * 2


def cached_tokens(application: Application, path: str, text: str, key: str) -> int:
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


@pytest.mark.slow
@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/v1/responses"])
def test_a_key_is_told_of_its_own_prompts_alone(model: constrain.Model, path: str) -> None:
    one, two = f"one for {path}", f"two for {path}"  # that nothing else has asked with
    application = Application(served_as(model, "small"), Settings(api_keys=(one, two)))
    found = [cached_tokens(application, path, SECRET, key) for key in (one, one, two, two, one)]
    known = found[1]
    assert known > 20
    assert found == [0, known, 0, known, known]


@pytest.mark.slow
def test_all_share_a_cache_where_there_are_no_keys(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings())
    first = cached_tokens(application, CHAT, "no keys" + SECRET, "one")
    assert cached_tokens(application, CHAT, "no keys" + SECRET, "two") > first + 20


@pytest.mark.slow
def test_keys_share_a_cache_where_the_operator_says_so(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings(api_keys=("one", "two"), shared_cache=True))
    first = cached_tokens(application, CHAT, "shared" + SECRET, "one")
    assert cached_tokens(application, CHAT, "shared" + SECRET, "two") > first + 20
