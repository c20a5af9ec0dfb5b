"""The default temperature: the most likely tokens for one answer to a schema or with tools, samples otherwise."""

from __future__ import annotations

from typing import Any

import constrain
from constrain.generation.job import Job
from constrain.generation.planning import plan_continuation, prepare
from tests.support import for_each

TOOL: Any = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
SCHEMA: Any = {"type": "string", "maxLength": 12}


def temperature(job: Job) -> float:
    return job.used_sampling.temperature


@for_each(
    "schema, options, expected",
    (SCHEMA, {}, 0.0),
    (constrain.Regex("[a-z]+"), {}, 0.0),
    (constrain.Lark('start: "a"'), {"seed": 3, "repeat_penalty": 1.1}, 0.0),
    (None, {"tools": [TOOL]}, 0.0),
    (SCHEMA, {"allow_refusal": True}, 0.0),
    (SCHEMA, {"unbias": False}, 0.0),
    (None, {"tools": [TOOL], "tool_choice": "none"}, 0.8),
    (SCHEMA, {"tools": [TOOL], "tool_choice": "none"}, 0.0),
    (None, {}, 0.8),
    (SCHEMA, {"draft": 8}, 0.8),
    (SCHEMA, {"top_p": 0.9}, 0.8),
    (SCHEMA, {"top_k": 5}, 0.8),
    (SCHEMA, {"min_p": 0.0}, 0.8),
    (SCHEMA, {"mirostat": 2}, 0.8),
    (SCHEMA, {"mirostat": 0, "typical_p": 1.0, "top_n_sigma": -1.0, "dynatemp_range": 0.0}, 0.0),
    (SCHEMA, {"temperature": 0.8}, 0.8),
    (SCHEMA, {"temperature": 0.3, "top_p": 0.9}, 0.3),
    (None, {"temperature": 0}, 0.0),
)
def test_the_default_depends_on_the_answer(
    model: constrain.Model, schema: Any, options: dict[str, Any], expected: float
) -> None:
    job = prepare(model, "Say hello.", schema, {"max_tokens": 20, **options})  # type: ignore[typeddict-item]
    assert temperature(job) == expected
    several = {"temperature": 0.8, **options}["temperature"]
    assert [temperature(each) for each in job.samples(2)] == [several, several]
    assert [temperature(each) for each in job.samples(1)] == [expected]


def test_a_continuation_with_a_schema_is_greedy(model: constrain.Model) -> None:
    assert plan_continuation(model, [1], SCHEMA, {}).is_greedy
    assert not plan_continuation(model, [1], None, {}).is_greedy
    assert not plan_continuation(model, [1], SCHEMA, {"top_k": 3}).is_greedy


def test_answers_are_the_same_whatever_the_seed(model: constrain.Model) -> None:
    asked: Any = {"schema": SCHEMA, "max_tokens": 12}
    answers = {constrain.generate(model, "Name a colour.", seed=seed, **asked) for seed in range(4)}
    assert answers == {constrain.generate(model, "Name a colour.", temperature=0, **asked)}
    (drawn,) = constrain.generate_batch(model, ["Name a colour."], n=8, seed=1, temperature=1.5, **asked)
    assert len(set(drawn)) > 1
