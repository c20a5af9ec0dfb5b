"""The option ``certificate``: every kind of answer gets a proof, and the model can repeat the answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import struct
from typing import Any

import pytest

import constrain
from constrain.certificates import derivation
from constrain.certificates.certificate import canonical, digest
from constrain.generation.completion import Finished
from constrain.generation.observers.certificate.replay import recompile, replay
from constrain.generation.observers.certificate.sources import grammar_of_source
from constrain.llama.hashes import file_sha256

ASKED = "Ada is 36 years old. Who is it?"
PERSON = "name, age int"
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks up a person.",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}
LARK = constrain.Lark('start: name " is " AGE\nname[capture]: /[A-Z][a-z]{1,8}/\nAGE: /[0-9]{1,3}/')
QUOTED = {"type": "object", "properties": {"said": {"type": "string", "x-quote": True}}, "required": ["said"]}
BOUNDED = {
    "type": "object",
    "properties": {
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "years": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "from": {"type": "integer", "minimum": 0, "maximum": 99},
                    "to": {"type": "integer", "minimum": {"$data": "1/from"}, "maximum": 99},
                },
                "required": ["from", "to"],
            },
        },
    },
    "required": ["age", "years"],
}
COMPOSED = constrain.parts.sequence("Age: ", constrain.parts.choice("young", "old", constrain.Regex("[0-9]{2}")), "!")

KINDS: dict[str, dict[str, Any]] = {
    "json_schema": {"schema": PERSON},
    "sampled": {"schema": PERSON, "temperature": 1.0, "seed": 5},
    "seed-drawn": {"schema": PERSON, "temperature": 1.0},
    "number": {"schema": {"type": "number", "minimum": 0.5, "multipleOf": 0.01}, "temperature": 0.9, "seed": 2},
    "regex": {"schema": constrain.Regex("[a-z]{1,9}( [a-z]{1,9}){0,3}"), "temperature": 0.9, "seed": 1},
    "lark": {"schema": LARK, "temperature": 0.9, "seed": 1},
    "gbnf": {"schema": constrain.Gbnf('root ::= "a"{1,4} [0-9]+ "."'), "temperature": 0.9, "seed": 3},
    "composition": {"schema": COMPOSED, "temperature": 0.9, "seed": 1},
    "tool": {"tools": [TOOL], "tool_choice": "required"},
    "tools": {"tools": [TOOL], "seed": 4, "temperature": 0.9},
    "refusal": {"schema": PERSON, "allow_refusal": True, "temperature": 1.0, "seed": 7},
    "draft": {"schema": PERSON, "draft": 8, "temperature": 0.8, "seed": 7},
    "prefix": {"schema": PERSON, "prefix": '{"name": "Bob"', "temperature": 0.8, "seed": 7},
    "stop": {"schema": PERSON, "stop": '"age"', "temperature": 0},
    "trace": {"schema": PERSON, "trace": True},
    "quote": {"schema": QUOTED},
    "stages": {"schema": BOUNDED, "temperature": 0.9, "seed": 2},
    "bias": {"schema": PERSON, "logit_bias": {81: float("-inf")}, "temperature": 0.5, "seed": 1},
    "policies": {"schema": PERSON, "property_order": "any", "whitespace": "compact", "temperature": 0.9, "seed": 1},
}


def answered(model: constrain.Model, **options: Any) -> constrain.Completion:
    return constrain.complete(model, ASKED, **{"certificate": "prompt", "max_tokens": 120, **options})


def parsed(answer: constrain.Completion) -> dict[str, Any]:
    """The certificate as another program reads it."""
    found: dict[str, Any] = json.loads(canonical(answer.certificate))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_proved_and_repeated(model: constrain.Model, kind: str) -> None:
    answer = answered(model, **KINDS[kind])
    certificate = parsed(answer)
    assert constrain.certificates.verify_certificate(certificate) == certificate["sha256"]
    assert answer.text in certificate["text"]
    assert [entry[0] for entry in certificate["tokens"]] == list(answer.tokens)
    assert certificate["budget"]["needed"][-1] == 0
    recompile(certificate)
    recompile(certificate, model.vocabulary)
    assert replay(model, certificate) is None
    source = {name: member for name, member in certificate["source"].items() if name != "sha256"}
    assert certificate["source"]["sha256"] == digest(source)


def test_a_certificate_says_where_the_answer_comes_from(model: constrain.Model) -> None:
    answer = answered(model, schema=PERSON, temperature=0.7, top_k=9, logit_bias={5: float("inf"), 6: 0.5})
    found = parsed(answer)
    ids = found["prompt"]["ids"]
    assert found["prompt"]["count"] == len(ids) == answer.usage.prompt_tokens
    assert found["prompt"]["sha256"] == hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()
    (file,) = found["model"]["files"]
    assert file["name"] == "SmolLM2-135M-Instruct.Q4_1.gguf"
    with open(model.llama.model_path, "rb") as opened:  # noqa: PTH123 - the path is a text
        assert file["sha256"] == hashlib.sha256(opened.read()).hexdigest()
    sampling = found["sampling"]
    assert (sampling["temperature"], sampling["top_k"], sampling["logit_bias"]) == (0.7, 9, {"5": "inf", "6": 0.5})
    assert 0 <= sampling["seed"] < 2**32
    assert found["settings"]["max_tokens"] == 120
    assert found["budget"]["max_tokens"] == 120
    assert found["vocabulary"]["size"] == model.vocabulary.n_vocab
    assert found["source"]["kind"] == "json_schema"
    assert found["previous"] is None


def test_the_prompt_is_only_hashed_unless_it_is_asked_for(model: constrain.Model) -> None:
    found = parsed(answered(model, schema=PERSON, certificate=True))
    assert set(found["prompt"]) == {"sha256", "count"}
    assert ASKED not in canonical(found)
    with pytest.raises(ValueError, match="give the prompt, too"):
        replay(model, found)
    with pytest.raises(ValueError, match="the prompt is not the one of the certificate"):
        replay(model, found, "Who is Bob?")
    assert replay(model, found, ASKED) is None


@pytest.mark.slow
def test_all_ways_to_generate_have_it(model: constrain.Model) -> None:
    options: Any = {"schema": PERSON, "certificate": True, "max_tokens": 60}
    *_, last = constrain.stream(model, ASKED, **options)
    assert isinstance(last, Finished)
    found = [last.completion, asyncio.run(constrain.acomplete(model, ASKED, **options))]
    found += constrain.complete_batch(model, [ASKED, "Bob is 7."], **options)
    for answer in found:
        constrain.certificates.verify_certificate(parsed(answer))
    assert constrain.complete(model, ASKED, schema=PERSON, max_tokens=60).certificate is None


def test_captures_come_with_it(model: constrain.Model) -> None:
    answer = answered(model, **KINDS["lark"])
    assert answer.captures is not None
    assert answer.captures["name"] == answer.text.partition(" ")[0]


def test_a_replay_says_where_another_answer_begins(model: constrain.Model) -> None:
    found = parsed(answered(model, schema={"enum": ["red", "blue", "green", "black"]}, temperature=0))
    encode = model.vocabulary.encode
    assert encode is not None
    for other in ("red", "blue", "green", "black"):
        forged = {**found, "tokens": [[token, ""] for token in encode(f'"{other}"'.encode())]}
        difference = replay(model, forged)
        assert (difference is None) == (f'"{other}"' == found["text"])
        if difference is not None:
            assert difference.written != difference.repeated
            assert difference.number < len(found["tokens"])


def test_another_model_and_another_source_are_told(model: constrain.Model) -> None:
    found = parsed(answered(model, schema=PERSON))
    (file,) = found["model"]["files"]
    with pytest.raises(ValueError, match="another model file"):
        replay(model, {**found, "model": {**found["model"], "files": [{**file, "sha256": "0" * 64}]}})
    source = {**found["source"], "text": '{"type": "string"}'}
    with pytest.raises(ValueError, match="gives another grammar"):
        recompile({**found, "source": source})


def test_a_grammar_made_by_hand_has_no_other_source(model: constrain.Model) -> None:
    builder = constrain.grammars.GrammarBuilder()
    word = builder.terminal("word", constrain.Regex("[a-z]{1,5}").grammar().terminals[0].expression)
    builder.define(builder.rule("start"), [[word]])
    found = parsed(answered(model, schema=builder.build()))
    assert found["source"]["kind"] == "grammar"
    constrain.certificates.verify_certificate(found)
    with pytest.raises(ValueError, match=r"^the source is a Grammar made by hand"):
        recompile(found)


@pytest.mark.slow
def test_a_source_that_is_not_understood_is_told() -> None:
    for source, why in (
        ({"kind": "none"}, "a part of the unknown kind 'none'"),
        ({"kind": "section", "begin": "", "end": ""}, "which is no language"),
        ({"kind": "lark", "text": "start: A", "start": "start", "grammars": {"kind": "grammar"}}, "made by hand"),
        ({"kind": "regex", "pattern": "a", "dialect": "rust", "other": 1}, "unknown member 'other'"),
    ):
        with pytest.raises(ValueError, match=why):
            grammar_of_source(source)
    nested: Any = {"kind": "grammar"}
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(constrain.LimitError, match="nested too deeply"):
        grammar_of_source({"kind": "lark", "text": nested})


@pytest.mark.parametrize("options", [{}, {"thinking": True}, {"tools": [TOOL], "tool_choice": "none"}])
def test_free_text_has_no_certificate(model: constrain.Model, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="certificate needs a schema, a grammar or tools"):
        answered(model, **options)


def test_votes_and_other_values_are_refused(model: constrain.Model) -> None:
    with pytest.raises(ValueError, match="leave vote out"):
        answered(model, schema=PERSON, vote=True, n=3)
    with pytest.raises(ValueError, match="leave vote out"):
        constrain.complete_batch(model, [ASKED], schema=PERSON, vote=True, n=3, certificate=True)
    with pytest.raises(ValueError, match="leave vote out"):
        asyncio.run(constrain.acomplete(model, ASKED, schema=PERSON, vote=True, n=3, certificate=True))
    with pytest.raises(ValueError, match="certificate is 'yes'; it must be True, False or 'prompt'"):
        answered(model, schema=PERSON, certificate="yes")


def test_an_answer_beyond_the_limit_says_so(model: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, "MAX_CERTIFICATE_WORK", 3)
    answer = answered(model, schema=PERSON)
    assert answer.certificate is None
    assert answer.limits_met == ("MAX_CERTIFICATE_WORK",)
    assert set(answer.value) == {"name", "age"}


def test_hashes_of_files_are_kept(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file, folder = tmp_path / "m.gguf", str(tmp_path / "kept")
    file.write_bytes(b"weights")
    monkeypatch.setattr("constrain.llama.hashes._known", {})
    assert file_sha256(file, folder) == hashlib.sha256(b"weights").hexdigest()
    (kept,) = (tmp_path / "kept" / "hashes-v1").iterdir()
    kept.write_text(json.dumps("0" * 64))
    monkeypatch.setattr("constrain.llama.hashes._known", {})
    assert file_sha256(file, folder) == "0" * 64
    file.write_bytes(b"other weights")
    assert file_sha256(file, folder) == hashlib.sha256(b"other weights").hexdigest()
    with pytest.raises(constrain.ModelError, match="its hash cannot be computed"):
        file_sha256(tmp_path / "none.gguf", folder)
