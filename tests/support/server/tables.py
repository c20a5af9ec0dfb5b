"""Tables of requests: which are refused, in which words, and which are accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from constrain.server.http.errors import ApiError
from tests.support import tomllib


def table(name: str) -> dict[str, list[dict[str, Any]]]:
    """The cases of ``data/NAME.toml``, by kind."""
    return tomllib.loads((Path(__file__).parents[2] / "server" / "data" / f"{name}.toml").read_text(encoding="utf-8"))


def require_refused(case: dict[str, Any], read: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(ApiError) as caught:
        read(json.loads(case["fields"]))
    error = caught.value
    assert (error.status, error.kind) == (400, "invalid_request_error")
    assert (error.param, error.code) == (case["param"], case.get("code"))
    assert case.get("says", "") in error.message
