"""Everything else that the ``ollama`` package does: texts, vectors, models, errors, and asynchronous code."""

from __future__ import annotations

import asyncio
import json
import math
import os
from typing import TYPE_CHECKING, Any

import ollama
import pytest
from samples import MESSAGES, PROMPT, Person

if TYPE_CHECKING:
    from pathlib import Path

    import httpx


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_is_answered(client: ollama.Client, model: str, stream: bool) -> None:
    answer = client.generate(model, PROMPT, system="Be brief.", stream=stream, options={"num_predict": 6})
    parts = list(answer) if stream else [answer]
    assert "".join(part.response for part in parts)
    assert (parts[-1].done, parts[-1].done_reason, parts[-1].eval_count) == (True, "length", 6)


def test_a_raw_prompt_is_continued(client: ollama.Client, model: str) -> None:
    response = client.generate(model, "One, two,", raw=True, options={"num_predict": 4, "temperature": 0})
    assert response.prompt_eval_count == 4
    assert "three" in response.response


def test_a_format_is_enforced(client: ollama.Client, model: str) -> None:
    response = client.generate(model, PROMPT, format=Person.model_json_schema(), options={"num_predict": 80})
    assert Person.model_validate_json(response.response)
    response = client.generate(model, PROMPT, format="json", raw=True, options={"num_predict": 30})
    assert isinstance(json.loads(response.response), dict)


def test_reasoning_is_apart_from_the_answer(thinker: ollama.Client) -> None:
    response = thinker.generate("thinker", PROMPT, think=True, options={"num_predict": 12})
    assert response.thinking
    parts = list(thinker.generate("thinker", PROMPT, think="low", stream=True, options={"num_predict": 12}))
    assert "".join(part.thinking or "" for part in parts)


def test_no_prompt_loads_the_model(client: ollama.Client, model: str) -> None:
    assert client.generate(model, keep_alive=-1).done_reason == "load"


def test_texts_get_vectors(client: ollama.Client, model: str) -> None:
    response = client.embed(model, ["Hello", "The sun is shining."])
    [first, _] = response.embeddings
    assert response.prompt_eval_count > 2
    assert math.hypot(*first) == pytest.approx(1)
    assert client.embed(model, "Hello", truncate=True, options={"num_ctx": 64}).embeddings == [first]
    assert list(client.embeddings(model, "Hello").embedding) == first
    assert client.embed(model, []).embeddings == []


def test_models_are_listed_and_described(client: ollama.Client, model: str) -> None:
    [listed] = client.list().models
    assert (listed.model, listed.details.format) == (f"{model}:latest", "gguf")
    assert listed.size > 10_000_000
    assert listed.modified_at.tzinfo is not None
    shown = client.show(listed.model)
    assert shown.details == listed.details
    assert shown.modelinfo["general.architecture"] == "llama"
    assert "completion" in shown.capabilities
    assert "thinking" not in shown.capabilities
    assert "<|im_start|>" in shown.template
    [running] = client.ps().models
    assert (running.model, running.digest, running.context_length) == (listed.model, listed.digest, 4096)


def test_a_model_that_reasons_is_described_so(thinker: ollama.Client) -> None:
    assert "thinking" in thinker.show("thinker").capabilities


def test_models_are_pulled_that_are_there(client: ollama.Client, model: str) -> None:
    assert client.pull(model).status == "success"
    assert [part.status for part in client.pull(f"{model}:latest", stream=True)] == ["success"]


def refusal(ask: Any, status: int) -> str:
    with pytest.raises(ollama.ResponseError) as caught:
        ask()
    assert caught.value.status_code == status
    return caught.value.error


def test_models_cannot_be_changed(client: ollama.Client, model: str, tmp_path: Path) -> None:
    assert "constrain serve" in refusal(lambda: client.pull("llama3.2"), 404)
    assert "constrain serve" in refusal(lambda: list(client.pull("llama3.2", stream=True)), 404)
    assert "constrain serve" in refusal(lambda: client.create("mine", from_=model), 400)
    assert "constrain serve" in refusal(lambda: list(client.create("mine", from_=model, stream=True)), 400)
    assert "--alias" in refusal(lambda: client.copy(model, "mine"), 400)
    assert "deletes no models" in refusal(lambda: client.delete(model), 400)
    assert "sends no models" in refusal(lambda: client.push(model), 400)
    file = tmp_path / "weights.gguf"
    file.write_bytes(bytes(30 << 20))
    assert "takes no files" in refusal(lambda: client.create_blob(file), 400)


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"model": "nothing"}, 404, "model 'nothing' not found"),
    ({"messages": [{"role": "user", "content": "x", "images": [b"png"]}]}, 400, "images"),
    ({"format": {"type": "integer", "minimum": 3, "maximum": 2}}, 400, "minimum"),
    ({"options": {"mirostat": 3}}, 400, "options.mirostat"),
    ({"think": True}, 400, "does not support thinking"),
    ({"messages": [{"role": "user", "content": "word " * 20_000}]}, 400, "context"),
    ({"messages": [{"role": "tool", "tool_name": "f", "content": "x"}]}, 400, "messages[0]"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("more", "status", "says"), REFUSED)
def test_errors_say_what_is_wrong(
    client: ollama.Client, model: str, more: dict[str, Any], status: int, says: str, stream: bool
) -> None:
    def ask() -> None:
        answer = client.chat(**{"model": model, "messages": MESSAGES, **more}, stream=stream)
        list(answer)

    assert says in refusal(ask, status)


def test_generate_refuses_what_it_cannot_do(client: ollama.Client, model: str) -> None:
    for more in ({"suffix": "end"}, {"template": "{{ .Prompt }}"}, {"context": [1, 2]}, {"images": [b"png"]}):
        assert next(iter(more)) in refusal(lambda more=more: client.generate(model, PROMPT, **more), 400)


def test_a_wrong_key_is_an_error(model: str) -> None:
    with ollama.Client(headers={"Authorization": "Bearer wrong"}) as client:
        assert "API key" in refusal(lambda: client.generate(model), 401)
        assert "API key" in refusal(client.list, 401)


def test_a_body_without_a_type_is_refused_with_the_fix(raw: httpx.Client, model: str) -> None:
    response = raw.post("/api/generate", content=json.dumps({"model": model}))
    assert response.status_code == 415
    assert "--json" in response.json()["error"]


def test_a_probe_finds_a_server(raw: httpx.Client) -> None:
    assert raw.head("/").status_code == 200


def test_asynchronous_clients_do_the_same(model: str) -> None:
    async def ask() -> None:
        async with ollama.AsyncClient(timeout=240.0) as client:
            options = {"num_predict": 4, "temperature": 0}
            whole = await client.chat(model, MESSAGES, options=options)
            parts = [part async for part in await client.chat(model, MESSAGES, options=options, stream=True)]
            assert "".join(part.message.content for part in parts) == whole.message.content
            texts = await client.generate(model, PROMPT, format=Person.model_json_schema(), options={"num_predict": 80})
            assert Person.model_validate_json(texts.response)
            vectors = await client.embed(model, "Hello")
            assert len(vectors.embeddings) == 1
            assert len((await client.list()).models) == len((await client.ps()).models) == 1
            assert (await client.show(model)).capabilities
            with pytest.raises(ollama.ResponseError, match="not found"):
                await client.chat("nothing", MESSAGES)
            answers = [client.chat(model, MESSAGES, format={"enum": [1, 2]}, options={"seed": n}) for n in range(6)]
            assert {json.loads(each.message.content) for each in await asyncio.gather(*answers)} <= {1, 2}

    asyncio.run(ask())


def test_the_functions_of_the_package_find_the_server(model: str) -> None:
    assert os.environ["OLLAMA_HOST"]
    assert ollama.generate(model, PROMPT, options={"num_predict": 2}).eval_count == 2
