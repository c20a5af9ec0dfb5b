"""Limits that an answer met are told in its response and in the log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from constrain.generation.completion import Completion, Finished, Timings, Usage, limits_object
from constrain.server.chat.response import Heading, Shape
from constrain.server.chat.stream import ChunkWriter
from constrain.server.completions.response import CompletionWriter
from constrain.server.http.account import Account
from constrain.server.logs import log_request

WHOLE = Completion("a", "a", (1,), Usage(3, 0, 1), Timings(0, 0, 0, 0), "stop", None)
LIMITED = replace(WHOLE, limited_masks=2, limits_met=("MAX_MASK_WORK",))
TOLD = {"masks": 2, "limits": ["MAX_MASK_WORK"]}


def writers() -> list[Any]:
    shape = Shape(is_text=True)
    return [
        ChunkWriter(Heading("m"), [], shape, include_usage=False, logprobs=False),
        CompletionWriter("m", [""], 2, 2, is_text=True, logprobs=False, include_usage=False),
    ]


@pytest.mark.parametrize("which", [0, 1], ids=["chat", "completions"])
def test_each_answer_tells_its_own_limits(which: int) -> None:
    choices = writers()[which].response([LIMITED, WHOLE])["choices"]
    assert choices[0]["constrain"]["limited"] == TOLD
    assert "constrain" not in choices[1]


@pytest.mark.parametrize("which", [0, 1], ids=["chat", "completions"])
def test_the_last_chunk_of_an_answer_tells_them(which: int) -> None:
    writer = writers()[which]
    assert '"limited":' in "".join(writer.write(0, Finished(LIMITED))).replace(" ", "")
    assert '"limited":' not in "".join(writer.write(1, Finished(WHOLE))).replace(" ", "")


def test_an_answer_that_met_none_tells_nothing() -> None:
    assert limits_object(WHOLE) == {}


def test_an_answer_without_its_captures_tells_the_limit() -> None:
    assert limits_object(replace(WHOLE, limits_met=("MAX_CAPTURE_WORK",))) == {
        "limited": {"masks": 0, "limits": ["MAX_CAPTURE_WORK"]}
    }


def test_the_log_tells_them(caplog: pytest.LogCaptureFixture) -> None:
    account = Account(until=0)
    account.add(LIMITED, is_first=True)
    account.add(replace(LIMITED, limits_met=("MAX_CALL_WORK",)), is_first=False)
    with caplog.at_level("INFO", logger="constrain.server.requests"):
        log_request(account, {"method": "POST", "path": "/v1/chat/completions"})
    assert "4 masks limited by MAX_MASK_WORK and MAX_CALL_WORK" in caplog.text
    (record,) = caplog.records
    assert (record.limited_masks, record.limits_met) == (4, ["MAX_MASK_WORK", "MAX_CALL_WORK"])  # type: ignore[attr-defined]
