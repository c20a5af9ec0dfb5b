"""``replay``: has the model of a certificate write the answer again, and compares it token by token."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.certificates.certificate import digest
from constrain.certificates.export import grammar_to_json
from constrain.chat.answers.call_or_content import make_call_or_content
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.reading.progress import TextProgress
from constrain.chat.reading.reply import ReplyProgress
from constrain.engine.compiling import JSON_SCHEMA
from constrain.generation.generate import decode
from constrain.generation.observers.certificate.certifying import SOFT_LIMITS, hash_tokens
from constrain.generation.observers.certificate.sources import ANSWER, decode_source, grammar_of_source
from constrain.generation.options import AnswerSettings
from constrain.generation.plan import Language, Plan
from constrain.generation.planning import add_constraint, make_plan
from constrain.generation.running import Running
from constrain.language.result import result_type
from constrain.language.schema_text import JsonSchema, parse_schema
from constrain.language.stages import mentions_data
from constrain.llama.decoding.sampler import Sampling
from constrain.quotes.keyword import GIVEN_SOURCES, PROMPT
from constrain.tables.keyword import GIVEN_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.chat.prompt.messages import Prompt
    from constrain.chat.reading.progress import Progress
    from constrain.chat.reading.text_tokens import TextTokens
    from constrain.generation.options import ChatOptions
    from constrain.language.grammar import Grammar
    from constrain.language.policies import CompileOptions
    from constrain.llama.model import Model
    from constrain.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between an answer and its repetition.

    Attributes:
        number: number of the token, from 0; in a draft, of the draft's token.
        in_draft: whether it stands in the draft.
        written: text of the token in the certificate; ``None`` if the answer ends before it.
        repeated: text of the token that the model writes now; ``None`` if it ends the answer.
    """

    number: int
    in_draft: bool
    written: str | None
    repeated: str | None


def recompile(certificate: Mapping[str, Any], vocabulary: Vocabulary | None = None) -> Grammar:
    """Compiles the source of a certificate again. Raises ValueError if that gives another grammar, and its errors.

    ``vocabulary``: that of the model. Without it, the token ids that a grammar names are not compared.
    """
    text = certificate["text"]
    grammar = grammar_of_source(certificate["source"], text.encode() if isinstance(text, str) else b"")
    if vocabulary is not None:
        is_equal = digest(grammar_to_json(grammar, vocabulary)) == certificate["grammar_sha256"]
    else:
        is_equal = _without_tokens(grammar_to_json(grammar)) == _without_tokens(certificate["grammar"])
    if not is_equal:
        raise ValueError(
            "the source of the certificate gives another grammar: the certificate is not about this source, or it was "
            f"made by another version of constrain (it was made by {certificate['versions']['constrain']})"
        )
    return grammar


def names_tokens(certificate: Mapping[str, Any]) -> bool:
    """Returns whether the grammar of a certificate names tokens by their ids."""
    return any("tokens" in terminal for terminal in certificate["grammar"]["terminals"])


def replay(
    model: Model, certificate: Mapping[str, Any], prompt: Prompt | Sequence[int] | None = None
) -> Difference | None:
    """Has a model write the answer of a certificate again; returns the first difference, ``None`` for none.

    ``prompt``: the prompt as ``complete`` takes it, or its token ids; ``None`` if the certificate has these. Raises
    ValueError if model, prompt or source are not those of the certificate, or if an answer like this cannot be
    repeated; and the errors of ``complete``.
    """
    _require_model(model, certificate)
    if certificate["finish_reason"] == "timeout":
        raise ValueError("the answer was ended by its time limit, which a repetition meets in another place")
    grammar = recompile(certificate, model.vocabulary)
    plan = _plan(model, certificate, grammar, _find_prompt(model, certificate, prompt))
    assert plan.language is not None
    running = Running(add_constraint(plan, plan.language.compile(model.vocabulary), 0.0))
    for _ in decode(running):
        pass
    answer, draft = running.answer, certificate["draft"]
    if draft is not None and answer.draft is not None:
        found = _first_difference(model, draft["tokens"], answer.draft.tokens, in_draft=True)
        if found is not None:
            return found
    return _first_difference(model, _answer_tokens(certificate), answer.tokens, in_draft=False)


def _require_model(model: Model, certificate: Mapping[str, Any]) -> None:
    wanted, found = certificate["model"]["files"], model.file_hashes()
    if [each["sha256"] for each in wanted] != [each["sha256"] for each in found]:
        names = ", ".join(str(each["name"]) for each in wanted)
        raise ValueError(f"the answer was written by another model file: {names}, whose SHA-256 is another one")
    if model.vocabulary.fingerprint.hex() != certificate["vocabulary"]["sha256"]:
        raise ValueError("the vocabulary of the model is not the one of the certificate")


def _find_prompt(model: Model, certificate: Mapping[str, Any], given: Prompt | Sequence[int] | None) -> list[int]:
    """Returns the token ids of the prompt. Raises ValueError if they are not those of the certificate."""
    about = certificate["prompt"]
    if given is None and "ids" not in about:
        raise ValueError("the certificate has only the hash of the prompt; give the prompt, too")
    if given is None:
        tokens = about["ids"]
    elif not isinstance(given, str) and all(isinstance(each, int) for each in given):
        tokens = list(given)
    else:
        tokens = _tokenize(model, certificate, given)  # type: ignore[arg-type]
    if hash_tokens(tokens) != about["sha256"]:
        raise ValueError(
            f"the prompt is not the one of the certificate: it has {len(tokens)} tokens, and should have "
            f"{about['count']} with the SHA-256 {about['sha256']}"
        )
    return list(tokens)


def _tokenize(model: Model, certificate: Mapping[str, Any], prompt: Prompt) -> list[int]:
    """Returns the token ids of a prompt, as the model reads it for a schema that the prompt shows."""
    source, settings = certificate["source"], certificate["settings"]
    if source["kind"] == ANSWER:
        raise ValueError(
            "the prompt of an answer with tools, refusals or reasoning shows more than its text; give its token ids as "
            "a JSON list, or make the certificate with them (certificate='prompt')"
        )
    options: ChatOptions = {"show_schema": settings["show_schema"], "draft": settings["draft"]}
    schema: Any = None
    if source["kind"] == JSON_SCHEMA:
        schema = json.loads(source["text"])
        if isinstance(schema, dict):
            schema.pop(GIVEN_TABLES, None)
            quoted = schema.pop(GIVEN_SOURCES, {})
            options["sources"] = {name: texts for name, texts in quoted.items() if name != PROMPT}
    else:
        schema = decode_source(source)
    return make_plan(model, prompt, schema, options).tokens


def _plan(model: Model, certificate: Mapping[str, Any], grammar: Grammar, tokens: list[int]) -> Plan:
    settings = certificate["settings"]
    given = {name: settings[name] for name in ("max_tokens", *SOFT_LIMITS, "draft", "show_schema")}
    answer_settings = AnswerSettings(**given, stop=tuple(settings["stop"]))
    schema: Any = grammar
    policies: CompileOptions = {}
    call_or_content = None
    source = certificate["source"]
    if source["kind"] == JSON_SCHEMA and mentions_data(parse_schema(source["text"])):  # several grammars were in force
        schema, policies = JsonSchema(source["text"], source["plain_integers"]), source["policies"]
    result = result_type(None)
    if certificate["source"]["kind"] == ANSWER:
        schema = decode_source(certificate["source"])
        assert isinstance(schema, AnswerLanguage)
        call_or_content = make_call_or_content(schema, model.vocabulary)
    return Plan(
        model,
        Language(schema, policies),
        tokens,
        partial(_progress, schema, answer_settings, tokens),
        _sampling(certificate["sampling"]),
        answer_settings,
        result,
        call_or_content=call_or_content,
        insertion=lambda _: _Inserted({each["index"]: each["ids"] for each in certificate.get("inserted", ())}),
        request=tuple(certificate["draft"]["request"]) if certificate["draft"] else (),
        prefix=tuple(settings["prefix"]),
    )


class _Inserted:
    """Inserts the tokens that a certificate has, by the number of the token behind them."""

    def __init__(self, left: dict[int, list[int]]) -> None:
        self._left = left

    def __call__(self, tokens: Sequence[int]) -> Sequence[int]:
        return self._left.pop(len(tokens), ())


def _progress(
    schema: Grammar | AnswerLanguage, settings: AnswerSettings, tokens: list[int], number: int, _: TextTokens | None
) -> Progress:
    """Returns a reader that says where the answer stops; nobody asks it for a value."""
    if isinstance(schema, AnswerLanguage):
        return ReplyProgress(schema, {}, result_type(None), settings.stops, tokens, number, wants_reply=True)
    return TextProgress(result_type(None), settings.stops, None, cuts=False)


def _sampling(written: Mapping[str, Any]) -> Sampling:
    given = {name: value for name, value in written.items() if name != "logit_bias"}
    return Sampling(**given, logit_bias={int(token): float(bias) for token, bias in written["logit_bias"].items()})


def _answer_tokens(certificate: Mapping[str, Any]) -> list[int]:
    """Returns the token ids of an answer, without one that ends the generation."""
    tokens = [entry[0] for entry in certificate["tokens"]]
    return tokens[:-1] if tokens and tokens[-1] in certificate["vocabulary"]["eos"] else tokens


def _first_difference(
    model: Model, written: Sequence[int], repeated: Sequence[int], *, in_draft: bool
) -> Difference | None:
    for number in range(max(len(written), len(repeated))):
        pair = [each[number] if number < len(each) else None for each in (written, repeated)]
        if pair[0] != pair[1]:
            texts = [None if token is None else _text(model, token) for token in pair]
            return Difference(number, in_draft, *texts)
    return None


def _text(model: Model, token: int) -> str:
    data = model.vocabulary.token_bytes(token)
    return data.decode("utf-8", "backslashreplace") if data else model.tokenizer.name(token)


def _without_tokens(grammar: Mapping[str, Any]) -> str:
    terminals = [{name: each for name, each in one.items() if name != "tokens"} for one in grammar["terminals"]]
    return digest({**grammar, "terminals": terminals})
