"""The options that exclude or need each other: one table, with the reasons and the words of every refusal.

A new exclusion is a row of ``RULES``. Python reads the table with ``refuse_together``, requests and lines of a batch
with the function of this name in ``fields.values``, the command line with the one in ``cli.flags``; the reference
pages list it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from constrain.errors import CertificateError, DraftError, PrefixError
from constrain.llama.decoding.sampling import NEUTRAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MIN_VOTERS = 2
"""Smallest number of answers that can vote."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Options of which one needs another, or that exclude each other.

    Messages are format strings: ``other`` is the other option, ``neutral`` its value without effect, and every name
    that is given its value.

    Attributes:
        relation: the option ``needs`` one of the others or ``excludes`` each, or needs just ``one``; of a ``choice``,
            one may be given.
        option: option that is refused; behind a space, what it is an option of.
        others: the other options, or names of what is not an option, which ``NAMES`` explains.
        why: reason, for the documentation.
        python: message of the error in Python; an empty text where Python does not refuse.
        field: message of requests and of lines of a batch.
        flag: message of the command line.
        hint: option of the command line that its message is about; ``None`` if the message names it.
        code: name of the error of requests for programs.
        error: class of the error in Python.
    """

    relation: Literal["needs", "excludes", "one", "choice"]
    option: str
    others: tuple[str, ...]
    why: str
    python: str = ""
    field: str = ""
    flag: str = ""
    hint: str | None = None
    code: str = "invalid_value"
    error: type[ValueError] = ValueError

    def broken_by(self, given: Mapping[str, object]) -> str:
        """Returns the other option that breaks the rule, or the names of a choice; an empty text if none does.

        An option needs nothing where ``given`` does not say whether there are the others.
        """
        if self.relation == "choice":
            asked = [name for name in given if given[name] and name in self.others]
            return " and ".join(asked) if len(asked) > 1 else ""
        if not given.get(self.option):
            return ""
        asked = [name for name in self.others if given.get(name)]
        if self.relation == "one":
            return "" if len(asked) == 1 else self.others[0]
        if self.relation == "excludes":
            return asked[0] if asked else ""
        return "" if asked or not given.keys() >= {*self.others} else self.others[0]


def _needs(option: str, others: str, why: str, **said: Any) -> Rule:
    return Rule("needs", option, tuple(others.split()), why, **{"hint": option, **said})


def _excludes(option: str, others: str, why: str, **said: Any) -> Rule:
    return Rule("excludes", option, tuple(others.split()), why, **{"hint": option, **said})


def _choice(option: str, others: str, why: str, *places: str) -> Rule:
    said: Any = dict.fromkeys(places or ("flag",), "{other} exclude each other; give one of them")
    return Rule("choice", option, tuple(others.split(", ")), why, **said)


_UNREAD = {"code": "unsupported_parameter"}
_FUNCTIONS = "Invalid request: '{option}' and '{{other}}' cannot be used together. Use 'tools' and 'tool_choice'."
_SUCCEEDED = "the others are its successors"


NAMES = {
    "answer": "the shape of an answer",
    "best_of": "`best_of` of more than `n`",
    "cache": "the prompt cache",
    "voters": f"`n` of {MIN_VOTERS} or more",
    "reply": "tools, refusals, reasoning",
    "lengths": "another number of prompts",
    "line": "a line of a batch",
    "logprobs of a completion": "`logprobs` of a completion",
    "n of a response": "`n` of a response",
    "prefill": "the beginning of the answer as the last message",
    "schema": "a schema",
    "json_schema": "a JSON Schema or a type",
    "language": "a schema, a grammar",
    "callable": "tools that may be called",
    "draft of a request": "`draft` of a request",
    "explain": "`constrain explain`",
    "fields": "an answer with fields (a type, a JSON Schema, tools with arguments)",
    "stream": "streams",
    "a schema": "a schema of `llm`",
    "the option regex": "`-o regex`",
    "the option lark": "`-o lark`",
    "table": "tables (`constrain.ray`)",
    "tempered": "a grammar with temperatures",
    "thinking": "`thinking=True`",
}
"""What the names in rules stand for that are no options, as Markdown."""

RULES = (
    _excludes("best_of", "stream", "which answers are the best is known when all are written",
        field="Invalid 'best_of': which answers are the best is known when all are written, so they cannot be "
        "streamed."),
    _excludes("best_of", "vote", "all answers that are written vote",
        field="Invalid 'best_of': all answers that are written vote; leave 'best_of' out."),
    _excludes("logprobs of a completion", "echo", "there are no log-probabilities of a prompt", **_UNREAD,
        field="Unsupported parameter: 'logprobs'. This server has no log-probabilities of a prompt; leave 'echo' out."),
    _needs("n", "vote", "a call has one answer, and `complete_batch` returns several",
        python="n needs vote=True here; complete_batch returns several answers to a prompt",
        field="Invalid 'n': it needs 'vote': true; a line has one answer."),
    _needs("vote", "voters", "one answer has nothing to agree with",
        python=f"vote=True needs n, the number of answers that vote, of {MIN_VOTERS} or more; 5, for example",
        field=f"Invalid 'vote': it needs 'n', the number of answers that vote, of {MIN_VOTERS} or more; 5, for "
        "example."),
    _needs("unbias", "vote", "it weights the answers that vote",
        python="unbias needs vote=True: it weights the answers that vote",
        field="Invalid 'unbias': it weights the answers that vote, so it needs 'vote': true.",
        flag="it weights the answers that vote, so it needs --vote", hint="--unbias"),
    _excludes("confidence", "vote", "the result may be none of the answers",
        flag="the result may be none of the answers; --vote tells how many agree", hint="--confidence"),
    _excludes("vote", "stream", "the answers vote when all are written",
        field="Invalid 'vote': the answers vote when all are written, so the result cannot be streamed; leave 'stream' "
        "out.",
        flag="answers vote when all are written; leave --stream out", hint="--vote"),
    _excludes("vote", "logprobs", "the result may be none of the answers",
        field="Invalid 'vote': the result may be none of the answers, so it has no log-probabilities; leave them out."),
    _needs("n of a response", "vote", "a response is one answer", **_UNREAD,
        field="Unsupported parameter: 'n'. A response is one answer; with 'vote': true, it is the one that 'n' answers "
        "agree on."),
    _excludes("vote", "trace", "a vote has many answers, and a trace is about one",
        flag="a vote has many answers, and one is traced; leave --vote out", hint="--vote"),
    _excludes("certificate", "vote", "it is about an answer that the model wrote as a whole, and a vote merges several",
        python="certificate needs an answer that the model wrote as a whole, and a vote merges several; leave vote out",
        field="Invalid 'certificate': it is about an answer that the model wrote as a whole, and a vote merges "
        "several; leave 'vote' out.",
        flag="a vote merges answers, and a certificate is about one", hint="--vote", error=CertificateError),
    _excludes("unbias", " ".join((*NEUTRAL, "logit_bias")), "it samples from the model's own distribution",
        python="unbias samples from the model's own distribution, with {other}={neutral!r}; leave {other} out"),
    _excludes("unbias", "tempered", "it samples from the model's own distribution",
        python="unbias samples from the model's own distribution, but the grammar gives {tempered} a temperature; "
        "leave it out"),
    _excludes("vote", "prefill", "the last message is the beginning of the answer", **_UNREAD,
        field="Unsupported parameter: 'vote'. The last message is the beginning of the answer; leave it out."),
    _excludes("draft of a request", "prefill", "the last message is the beginning of the answer", **_UNREAD,
        field="Unsupported parameter: 'draft'. The last message is the beginning of the answer; leave it out."),
    _excludes("continue_final_message", "add_generation_prompt", "one continues a message, the other begins one",
        field="Invalid 'continue_final_message': 'add_generation_prompt' begins a new message; send one of them."),
    _excludes("prefix", "draft", "a prefix is the beginning of the answer itself",
        python="prefix and draft exclude each other: a prefix is the beginning of the answer itself",
        error=PrefixError),
    _needs("top_logprobs", "logprobs", "one report has both",
        python="top_logprobs needs logprobs=True",
        field="The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."),
    _needs("stream_options", "stream", "they are about a stream",
        field="The 'stream_options' parameter is only allowed when 'stream' is enabled."),
    _needs("draft", "schema tools", "without them, the answer is free text already",
        python="draft needs a schema or tools; without them, the answer is free text already", error=DraftError),
    _excludes("draft", "thinking", "a draft takes the place of the model's reasoning",
        python="draft and thinking=True exclude each other: a draft takes the place of the model's reasoning",
        error=DraftError),
    _excludes("unbias", "reply draft", "it is for answers that are one text of a schema",
        python="unbias is for answers that are one text of a schema: without tools, refusals, reasoning, draft"),
    _excludes("checks", "reply", "they judge the fields of an answer that is one JSON text",
        python="checks and retries are for answers that are one JSON text: without tools, refusals, reasoning"),
    _needs("checks", "json_schema", "only JSON has fields",
        python="checks and retries need a JSON Schema or a type as schema; other answers have no fields"),
    _needs("certificate", "language callable", "of free text there is nothing to prove",
        python="certificate needs a schema, a grammar or tools that may be called; of free text there is nothing to "
        "prove",
        error=CertificateError),
    _needs("registry", "json_schema", "it has the schemas that references name; tools have `$defs` of their own",
        python="registry needs a JSON Schema as schema; for references of tools, use $defs in their own schemas"),
    _needs("sources", "json_schema tools", "only JSON has quotes",
        field="Invalid 'sources': only answers with a JSON Schema, and arguments of tools, have quotes."),
    _needs("partial", "fields", "other answers have no parts",
        python="partial=True needs an answer with fields: a schema that is a type or a JSON Schema, or tools with "
        "arguments; leave partial out to stream the text"),
    _needs("run_tools", "tools", "it runs the model's calls",
        python="run_tools needs tools; without tools, use complete"),
    _excludes("trace", "table", "a trace is a hundred times as long as its answer",
        python="trace is not for tables: a trace is a hundred times as long as its answer; ask complete"),
    _needs("checkpoint", "id_column", "the rows that are done are known by their names",
        python="checkpoint needs id_column: the rows that are done are known by their names"),
    _excludes("schemas", "schema lengths", "they are the shapes of the answers, one for each prompt",
        python="schemas must hold one for each of the {prompts} prompts, and schema be left out"),
    *(_excludes(option, "tools tool_choice", _SUCCEEDED, field=_FUNCTIONS.format(option=option))
      for option in ("functions", "function_call")),
    _excludes("system", "raw", "the prompt is all that the model reads", **_UNREAD,
        field="Unsupported parameter: 'system'. With 'raw', the prompt is all that the model reads; write it into "
        "'prompt'."),
    _excludes("think", "raw", "the prompt begins the reasoning where there is one", **_UNREAD,
        field="Unsupported parameter: 'think'. With 'raw', the prompt begins the reasoning where there is one; leave "
        "it out."),
    _excludes("before_id", "after_id", "a page is next to one model",
        field="Invalid 'before_id': it cannot be used together with 'after_id'."),
    Rule("one", "line", ("prompt", "messages"), "a line has one prompt",
        field="give either prompt or messages, and not both"),
    _choice("answer", "SCHEMA, --schema, --regex, --lark, --gbnf, --structural-tag, --sql", "an answer has one shape"),
    _choice("answer", "a schema, the option regex, the option lark", "an answer has one shape", "python"),
    Rule("one", "explain", ("TEXT", "--file"), "one text is explained",
        flag="give the text to explain either as an argument or with --file"),
    _excludes("--model", "MODEL", "both are the model", flag="the model is {MODEL} already; leave one of them out"),
    _needs("--dialect", "--regex", "it is the syntax of a pattern", flag="--dialect needs --regex", hint=None),
    _choice("cache", "--no-prompt-cache, --cache-whole-prompt", "one keeps nothing, the other everything"),
    _needs("--stream fields", "--schema", "only JSON has fields",
        flag="fields need --schema, because only JSON has them", hint="--stream"),
    _needs("--certificate-prompts", "--certificates", "it is about certificates", flag="it needs --certificates"),
    _needs("--certificate-prompt", "--certificate", "it is about a certificate",
        flag="it is about a certificate; give --certificate, too"),
    _needs("--sign", "--certificate", "it is about a certificate",
        flag="it is about a certificate; give --certificate, too"),
    _needs("verify --prompt", "--model", "the prompt is for writing the answer again",
        flag="the prompt is for writing the answer again; give --model, too", hint="--prompt"),
    _needs("--actors", "--ray", "only Ray has actors", flag="it needs --ray"),
    _needs("--cpus-per-actor", "--ray", "only Ray has actors", flag="it needs --ray"),
    _excludes("--threads", "--ray", "`--cpus-per-actor` gives the threads of an actor",
        flag="--cpus-per-actor gives the threads of an actor"),
)  # fmt: skip
"""All rules; where options break several, the first one is told."""


_PLACES: dict[str, list[int]] = {}
"""Places in ``RULES`` of the rules that an option can break, since every answer asks."""

for _number, _rule in enumerate(RULES):
    for _name in _rule.others if _rule.relation == "choice" else (_rule.option,):
        _PLACES.setdefault(_name, []).append(_number)


def describe(rule: Rule, named: Callable[[str], str] = lambda name: NAMES.get(name) or f"`{name}`") -> str:
    """Returns what an option needs or excludes, as Markdown; ``named``: function that spells a name."""
    *first, last = map(named, rule.others)
    link = "and" if rule.relation == "excludes" else "or"
    said = {"needs": "needs", "excludes": "not with", "one": "one of", "choice": "at most one of"}[rule.relation]
    return f"{said} {', '.join(first)} {link} {last}" if first else f"{said} {last}"


def broken_rules(place: Literal["python", "field", "flag"], given: Mapping[str, object]) -> Iterator[tuple[Rule, str]]:
    """Yields the rules of a place that options break, each with its message.

    ``given``: whether options and facts are asked for, by name.
    """
    for number in sorted({number for name, is_asked in given.items() if is_asked for number in _PLACES.get(name, ())}):
        rule = RULES[number]
        if (message := getattr(rule, place)) and (other := rule.broken_by(given)):
            yield rule, message.format(other=other, neutral=NEUTRAL.get(other, {}), **given)


def refuse_together(**given: object) -> None:
    """Raises the error of the first rule of Python that options break; ``given``: as for ``broken_rules``."""
    for rule, message in broken_rules("python", given):
        raise rule.error(message)
