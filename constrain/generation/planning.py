"""From a prompt, a schema and options to a job: which way the prompt takes, and what is compiled."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.progress import TextProgress
from constrain.generation.job import SCHEMA, Language, Plan
from constrain.generation.options import asks_for_chat, compile_options, split_options
from constrain.language.result import result_type

if TYPE_CHECKING:
    from constrain.chat.reading.progress import Progress
    from constrain.chat.reading.text_tokens import TextTokens
    from constrain.generation.job import Job
    from constrain.generation.options import Options
    from constrain.llama.lookup import Prompt
    from constrain.llama.model import Model


def prepare(model: Model, prompt: Prompt, schema: Any, options: Options) -> Job:
    """Checks the options, compiles the schema and tokenizes the prompt. Raises as ``complete`` does."""
    plan = make_plan(model, prompt, schema, options)
    started = time.perf_counter()
    constraint = None if plan.language is None else plan.language.compile(model.vocabulary)
    return plan.job(constraint, time.perf_counter() - started)


def make_plan(model: Model, prompt: Prompt, schema: Any, options: Options) -> Plan:
    """``prepare`` up to where the schema is compiled."""
    from constrain.chat.families.forms import may_reason
    from constrain.llama.prompt import is_plain

    if asks_for_chat(options) or not is_plain(prompt) or may_reason(model.chat_template):
        from constrain.generation.chat import plan_chat

        return plan_chat(model, prompt, schema, options)
    plan = plan_continuation(model, [], schema, options)

    def shown() -> str:
        return plan.request.shown(result_type(schema))

    def tokens() -> list[int]:
        return model.prompt_tokens(prompt, shown=shown(), constrained=plan.language is not None)

    return replace(plan, tokens=tokens, shown=lambda: {SCHEMA: shown()})


def plan_continuation(model: Model, tokens: list[int], schema: Any, options: Options) -> Plan:
    """The same for a prompt that the model goes on with as it is: without a template, and nothing of the schema."""
    sampling, request = split_options(options)
    policies = compile_options(options, schema)
    language = None if schema is None else Language(schema, policies)
    result = result_type(schema)

    def progress(_: int, tokens: TextTokens | None) -> Progress:
        return TextProgress(result, request.stops, tokens, cuts=language is None)

    return Plan(model, language, lambda: tokens, progress, sampling, request)
