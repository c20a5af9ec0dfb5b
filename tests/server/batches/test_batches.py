"""Batches with OpenAI's own client: files up, answers down, wrong requests, and what clients may see."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest
from jsonschema import Draft202012Validator
from openai.types.chat import ChatCompletion

from constrain.server.app import Application
from constrain.server.http.auth import owners_of
from constrain.server.settings import Settings
from tests.server.batches.conftest import CHAT, NUMBER, begin, chat_line, client_of, read, upload, wait
from tests.support.server.asking import ask, error_of, served_as, serving

if TYPE_CHECKING:
    from pathlib import Path

    import constrain


NO_FILE = b'--a\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--a--\r\n'


def test_every_request_is_answered_in_the_order_of_the_file(client: openai.OpenAI) -> None:
    names = [f"request {number}" for number in range(9)]
    batch = wait(client, begin(client, [chat_line(name) for name in names], metadata={"of": "a test"}))
    assert batch.status == "completed"
    assert batch.error_file_id is None
    assert batch.errors is None
    assert batch.model == "small"
    assert batch.metadata == {"of": "a test"}
    lines = read(client, batch.output_file_id)
    assert [line["custom_id"] for line in lines] == names
    assert len({line["id"] for line in lines}) == len(names)
    tokens = 0
    for line in lines:
        assert set(line) == {"id", "custom_id", "response", "error"}
        assert line["error"] is None
        assert line["response"]["status_code"] == 200
        completion = ChatCompletion.model_validate(line["response"]["body"])
        Draft202012Validator(NUMBER).validate(json.loads(completion.choices[0].message.content or ""))
        assert completion.usage is not None
        tokens += completion.usage.total_tokens
    assert batch.usage is not None
    assert batch.usage.total_tokens == tokens
    counts = batch.request_counts
    assert counts is not None
    assert (counts.total, counts.completed, counts.failed) == (9, 9, 0)
    assert batch.in_progress_at is not None
    assert batch.completed_at is not None
    assert batch.created_at <= batch.in_progress_at <= batch.completed_at
    assert batch.expires_at == batch.created_at + 24 * 3600


def test_a_request_that_is_refused_is_in_the_file_of_errors(client: openai.OpenAI) -> None:
    impossible = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "string", "minLength": -1}}}
    lines = [chat_line("good"), chat_line("bad", response_format=impossible), chat_line("other", model="none")]
    batch = wait(client, begin(client, lines))
    assert batch.status == "completed"
    assert batch.model is None  # there are two
    assert [line["custom_id"] for line in read(client, batch.output_file_id)] == ["good"]
    bad, other = read(client, batch.error_file_id)
    assert bad["custom_id"] == "bad"
    assert bad["response"]["status_code"] == 400
    assert bad["response"]["body"]["error"]["code"] == "invalid_json_schema"
    assert other["response"]["status_code"] == 404
    assert other["response"]["body"]["error"]["code"] == "model_not_found"
    assert batch.request_counts is not None
    assert batch.request_counts.failed == 2


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        ("/v1/responses", {"input": "Say hello.", "max_output_tokens": 20}),
        ("/v1/completions", {"prompt": ["One", "Two"], "max_tokens": 5}),
        ("/v1/embeddings", {"input": "A text."}),
    ],
)
def test_other_endpoints_answer_batches_too(client: openai.OpenAI, endpoint: str, body: dict[str, Any]) -> None:
    line = {"custom_id": "a", "method": "POST", "url": endpoint, "body": {"model": "small", **body}}
    batch = wait(client, begin(client, [line], endpoint=endpoint))
    [answer] = read(client, batch.output_file_id)
    assert answer["response"]["status_code"] == 200
    assert batch.usage is not None
    assert batch.usage.input_tokens > 0


def test_a_key_sees_its_own_files_and_batches_only(model: constrain.Model, tmp_path: Path) -> None:
    settings = Settings(api_keys=("key-of-ann", "key-of-bob"), batch_folder=tmp_path / "batches")
    with contextlib.ExitStack() as entered:
        url = entered.enter_context(serving(Application(served_as(model, "small"), settings)))
        ann, bob = (entered.enter_context(client_of(url, key)) for key in settings.api_keys)
        body = {"model": "small", "input": "Say hello.", "max_output_tokens": 20}
        line = {"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": body}
        batch = wait(ann, begin(ann, [line], endpoint="/v1/responses"))
        name = read(ann, batch.output_file_id)[0]["response"]["body"]["id"]
        with pytest.raises(openai.NotFoundError):  # those of a large batch would push out all others
            ann.responses.retrieve(name)
        assert batch.output_file_id is not None
        assert not list(bob.files.list())
        assert not list(bob.batches.list())
        for hidden in (
            lambda: bob.files.retrieve(batch.input_file_id),
            lambda: bob.files.content(batch.output_file_id or ""),
            lambda: bob.files.delete(batch.input_file_id),
            lambda: bob.batches.retrieve(batch.id),
            lambda: bob.batches.cancel(batch.id),
        ):
            with pytest.raises(openai.NotFoundError):
                hidden()
        with pytest.raises(openai.BadRequestError, match="there is no file"):
            bob.batches.create(input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h")
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for key, owner in zip(settings.api_keys, owners_of(settings.api_keys), strict=True):
        assert key.encode() not in kept
        assert owner.encode() not in kept


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        (b"", "empty_file", "no requests"),
        (b"\n\n", "empty_file", "no requests"),
        (b"{", "invalid_json_line", "not JSON"),
        (b"[1]", "invalid_json_line", "not a JSON object"),
        (b'{"\\ud800": 1}', "invalid_json_line", "not JSON"),
        (b'{"custom_id": "\xed\xa0\x80"}', "invalid_json_line", "not JSON"),
        (b'"' + b"x" * (8 << 20), "invalid_json_line", "more than 8388608 bytes"),
        (json.dumps({**chat_line("a"), "x" * 9000: 1}).encode(), "unknown_field", "unknown fields"),
        ([{"method": "POST", "url": CHAT, "body": {"model": "small"}}], "missing_required_parameter", "custom_id"),
        ([{**chat_line("a"), "custom_id": ""}], "invalid_value", "1 to 512 characters"),
        ([{**chat_line("a"), "method": "GET"}], "invalid_value", "method"),
        ([{**chat_line("a"), "url": "/v1/embeddings"}], "invalid_value", "url"),
        ([{**chat_line("a"), "body": 1}], "invalid_type", "body"),
        ([{**chat_line("a"), "extra": 1}], "unknown_field", "extra"),
        ([chat_line("a", stream=True)], "invalid_value", "no streams"),
        ([chat_line("a"), chat_line("b"), chat_line("a")], "duplicate_custom_id", "line 1"),
    ],
)
def test_a_wrong_file_fails_before_any_answer(
    client: openai.OpenAI, lines: list[dict[str, Any]] | bytes, code: str, message: str
) -> None:
    batch = wait(client, begin(client, lines))
    assert batch.status == "failed"
    assert batch.output_file_id is None
    assert batch.errors is not None
    assert batch.errors.data is not None
    error = batch.errors.data[-1]
    assert error.code == code
    assert message in (error.message or "")
    assert error.line == {"empty_file": None, "duplicate_custom_id": 3}.get(code, 1)


def test_all_wrong_lines_are_listed(client: openai.OpenAI) -> None:
    batch = wait(client, begin(client, b"\n".join([b"{"] * 150)))
    assert batch.errors is not None
    assert batch.errors.data is not None
    assert [error.line for error in batch.errors.data] == list(range(1, 101))


def test_a_batch_that_is_cancelled_keeps_its_answers(client: openai.OpenAI) -> None:
    lines = [chat_line("quick")] + [chat_line(f"{n}", max_tokens=900, response_format=None) for n in range(40)]
    batch = begin(client, lines)
    while not client.batches.retrieve(batch.id).request_counts.completed:  # type: ignore[union-attr]
        pass
    assert client.batches.cancel(batch.id).status == "cancelling"
    batch = wait(client, batch)
    assert batch.status == "cancelled"
    assert batch.cancelled_at is not None
    answers, errors = read(client, batch.output_file_id), read(client, batch.error_file_id)
    assert answers
    assert len(answers) + len(errors) == len(lines)
    assert {line["custom_id"] for line in answers + errors} == {line["custom_id"] for line in lines}
    assert {line["error"]["code"] for line in errors} == {"batch_cancelled"}
    with pytest.raises(openai.BadRequestError, match="it is cancelled"):
        client.batches.cancel(batch.id)


def test_clients_who_wait_come_between_the_requests_of_a_batch(client: openai.OpenAI) -> None:
    batch = begin(client, [chat_line(f"{n}", max_tokens=200, response_format=None) for n in range(40)])
    for _ in range(3):
        client.chat.completions.create(model="small", messages=[{"role": "user", "content": "Hi."}], max_tokens=5)
    assert client.batches.retrieve(batch.id).status == "in_progress"
    client.batches.cancel(batch.id)


def test_an_input_file_may_be_deleted_while_its_batch_runs(client: openai.OpenAI) -> None:
    batch = begin(client, [chat_line(f"{n}") for n in range(6)])
    assert client.files.delete(batch.input_file_id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(batch.input_file_id)
    batch = wait(client, batch)
    assert len(read(client, batch.output_file_id)) == 6


def test_lists_have_pages(client: openai.OpenAI) -> None:
    batches = [wait(client, begin(client, b"")) for _ in range(5)]
    listed = [batch.id for batch in client.batches.list(limit=2)]
    assert listed == [batch.id for batch in reversed(batches)]
    files = [file.id for file in client.files.list(limit=2, order="asc", purpose="batch")]
    assert files == [batch.input_file_id for batch in batches]
    for query, param in (("limit=0", "limit"), ("limit=x", "limit"), ("after=none", "after"), ("order=up", "order")):
        with pytest.raises(openai.BadRequestError) as raised:
            client.get(f"/batches?{query}", cast_to=object)
        assert raised.value.param == param


def test_a_file_is_kept_as_long_as_its_client_says(client: openai.OpenAI) -> None:
    file = upload(client, b"", expires_after={"anchor": "created_at", "seconds": 3600})
    assert file.expires_at == file.created_at + 3600
    other = upload(client, b"")
    assert other.expires_at == other.created_at + 30 * 24 * 3600
    with pytest.raises(openai.BadRequestError, match="seconds"):
        upload(client, b"", expires_after={"anchor": "created_at", "seconds": 10})
    with pytest.raises(openai.BadRequestError, match="anchor"):
        upload(client, b"", expires_after={"anchor": "now", "seconds": 3600})


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"endpoint": "/v1/moderations"}, "endpoint"),
        ({"completion_window": "2 days"}, "completion_window"),
        ({"completion_window": "0h"}, "completion_window"),
        ({"completion_window": "31d"}, "completion_window"),
        ({"completion_window": 24}, "completion_window"),
        ({"input_file_id": "file-none"}, "input_file_id"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {"a": "x" * 513}}, "metadata.a"),
        ({"output_expires_after": {"anchor": "created_at"}}, "output_expires_after.seconds"),
    ],
)
def test_a_wrong_batch_is_refused(client: openai.OpenAI, given: dict[str, Any], param: str) -> None:
    body: dict[str, Any] = {"endpoint": CHAT, "completion_window": "24h", "input_file_id": upload(client, b"").id}
    with pytest.raises(openai.BadRequestError) as raised:
        client.post("/batches", body={**body, **given}, cast_to=object)
    assert raised.value.param == param


def test_answers_of_a_batch_are_no_requests_for_another(client: openai.OpenAI) -> None:
    batch = wait(client, begin(client, [chat_line("a")]))
    assert batch.output_file_id is not None
    with pytest.raises(openai.BadRequestError, match="purpose of that file is 'batch_output'"):
        client.batches.create(input_file_id=batch.output_file_id, endpoint=CHAT, completion_window="24h")


def test_there_is_room_for_so_many_bytes_only(model: constrain.Model, tmp_path: Path) -> None:
    settings = Settings(batch_folder=tmp_path / "batches", batch_bytes=2000)
    with serving(Application(served_as(model, "small"), settings)) as url, client_of(url) as client:
        first = upload(client, b" " * 1500)
        with pytest.raises(openai.BadRequestError, match="no room for"):
            upload(client, b" " * 900)
        client.files.delete(first.id)
        upload(client, b" " * 900)


def test_a_server_without_a_folder_says_so(application: Application) -> None:
    for method, path in (("GET", "/v1/files"), ("GET", "/v1/batches"), ("POST", "/v1/batches")):
        response = ask(application, method, path, json={} if method == "POST" else None)
        assert response.status_code == 404
        assert "--no-batches" in error_of(response)["message"]


def test_a_folder_serves_one_server_at_a_time(model: constrain.Model, tmp_path: Path) -> None:
    settings = Settings(batch_folder=tmp_path / "batches")
    with serving(Application(served_as(model, "small"), settings)) as url, client_of(url) as client:
        upload(client, b"")
        with serving(Application(served_as(model, "small"), settings)) as other:
            response = httpx.get(f"{other}/v1/files")
            assert response.status_code == 503
            assert "another server uses" in error_of(response)["message"]
    with serving(Application(served_as(model, "small"), settings)) as url, client_of(url) as client:
        assert len(list(client.files.list())) == 1


@pytest.mark.parametrize(
    ("content_type", "content", "status"),
    [
        ("application/json", b"{}", 415),
        ("multipart/form-data", b"x", 400),
        ("multipart/form-data; boundary=a", b"x", 400),
        ("multipart/form-data; boundary=a", b"--a--\r\n", 400),
        ("multipart/form-data; boundary=a", NO_FILE, 400),
    ],
)
def test_a_wrong_form_is_refused(
    model: constrain.Model, settings: Settings, content_type: str, content: bytes, status: int
) -> None:
    with serving(Application(served_as(model, "small"), settings)) as url:
        response = httpx.post(f"{url}/v1/files", content=content, headers={"content-type": content_type})
        assert response.status_code == status
        error_of(response)


def test_the_purpose_of_a_file_is_a_batch(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.files.create(file=b"", purpose="fine-tune")
    assert raised.value.param == "purpose"
