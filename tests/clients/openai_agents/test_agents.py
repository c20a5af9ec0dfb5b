"""What the Agents SDK alone asks for: output types, signatures of tools, handoffs, guardrails and sessions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from adapter import WAYS, Responses, settings, wait
from agents import (
    Agent,
    AgentOutputSchema,
    CustomTool,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelSettings,
    OpenAIProvider,
    RunConfig,
    RunContextWrapper,
    Runner,
    SQLiteSession,
    function_tool,
    handoff,
)
from openai.types.shared import Reasoning
from pydantic import BaseModel, Field
from shared import MODEL, PROMPT, QUESTION, SUM, Person, Plan
from typing_extensions import TypedDict


@pytest.fixture(params=WAYS)
def model(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]().model


def agent_of(model: Any, **options: Any) -> Agent[Any]:
    return Agent(name="agent", model=model, **{"model_settings": settings(), **options})


def run(agent: Agent[Any], given: Any = SUM, **options: Any) -> Any:
    return wait(Runner.run(agent, given, **options))


@dataclass
class Point:
    x: int
    label: Literal["a", "b"]


class Pair(TypedDict):
    left: bool
    right: Literal["up", "down"]


class Open(BaseModel):
    """Not for strict mode: its keys are not known."""

    scores: dict[str, bool] = Field(max_length=2)


OUTPUTS: dict[str, tuple[Any, Any]] = {
    "a dataclass": (Point, Point),
    "a dictionary": (Pair, dict),
    "a list": (list[Literal["a", "b"]], list),
    "a number": (int, int),
    "a choice": (Literal["yes", "no"], str),
    "one of two": (Person | Point, (Person, Point)),
    "not strict": (AgentOutputSchema(Plan, strict_json_schema=False), Plan),
    "open": (AgentOutputSchema(Open, strict_json_schema=False), Open),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_is_of_its_type(model: Any, name: str) -> None:
    wanted, kind = OUTPUTS[name]
    assert isinstance(run(agent_of(model, output_type=wanted), PROMPT).final_output, kind)


@function_tool
def of_a_model(person: Person) -> str:
    """Takes a model."""
    return "ok" if isinstance(person, Person) else "no"


@function_tool
def of_others(options: Pair, size: Point, sides: Annotated[list[Literal["left", "right"]], Field(max_length=3)]) -> str:
    """Takes a dictionary, a dataclass and a list."""
    return (
        "ok"
        if isinstance(options["left"], bool) and isinstance(size, Point) and {*sides} <= {"left", "right"}
        else "no"
    )


@function_tool
async def with_defaults(context: RunContextWrapper[str], steps: Literal[1, 2] | None = None) -> str:
    """Has defaults, and a context, and is asynchronous."""
    return "ok" if context.context == "mine" and steps in (1, 2, None) else "no"


@function_tool(strict_mode=False, name_override="renamed")
def lenient(scores: Annotated[dict[str, bool], Field(max_length=2)], more: Literal["a", "b"] = "a") -> str:
    """Is not strict."""
    return "ok" if all(isinstance(value, bool) for value in scores.values()) and more in ("a", "b") else "no"


@pytest.mark.parametrize("tool", [of_a_model, of_others, with_defaults, lenient], ids=lambda tool: tool.name)
def test_arguments_are_those_of_the_signature(model: Any, tool: Any) -> None:
    chosen = settings(tool_choice=tool.name)
    agent = agent_of(model, tools=[tool], model_settings=chosen, tool_use_behavior="stop_on_first_tool")
    assert run(agent, QUESTION, context="mine").final_output == "ok"


class Reason(BaseModel):
    why: Literal["hard", "easy"]


def test_a_handoff_with_a_reason(model: Any) -> None:
    reasons: list[Reason] = []
    other = Agent(name="Other", model=model, output_type=Person, model_settings=settings())

    def note(_: RunContextWrapper[Any], reason: Reason) -> None:
        reasons.append(reason)

    given = handoff(other, on_handoff=note, input_type=Reason, tool_name_override="escalate")
    agent = agent_of(model, handoffs=[given, handoff(agent_of(model))], model_settings=settings(tool_choice="escalate"))
    result = run(agent)
    assert (result.last_agent.name, type(result.final_output)) == ("Other", Person)
    assert reasons[0].why in ("hard", "easy")


CUSTOM: dict[str, tuple[Any, str]] = {
    "lark": ({"type": "grammar", "syntax": "lark", "definition": 'start: "go " ("left" | "right")'}, "go (left|right)"),
    "regex": ({"type": "grammar", "syntax": "regex", "definition": "[a-z]{3}"}, "[a-z]{3}"),
    "any text": ({"type": "text"}, r"(?s).*"),
    "nothing said": (None, r"(?s).*"),
}


@pytest.mark.parametrize("name", CUSTOM)
def test_custom_tools_write_in_their_grammar(name: str) -> None:
    form, pattern = CUSTOM[name]
    texts: list[str] = []

    async def invoke(_: Any, text: str) -> str:
        texts.append(text)
        return "taken"

    tool = CustomTool(name="write", description="Writes.", on_invoke_tool=invoke, format=form)
    chosen = settings(tool_choice="required", max_tokens=60)
    with pytest.raises(MaxTurnsExceeded):  # only functions end a run
        run(agent_of(Responses().model, tools=[tool], model_settings=chosen, reset_tool_choice=False), max_turns=2)
    assert len(texts) == 2
    assert all(re.fullmatch(pattern, text) for text in texts)


def test_sessions_and_conversations_by_id(model: Any) -> None:
    async def work() -> Any:
        session = SQLiteSession("emma")
        for text in (SUM, "What is 3+3?"):
            await Runner.run(agent_of(model), text, session=session)
        return await session.get_items()

    assert [item["role"] for item in wait(work())] == ["user", "assistant"] * 2
    agent = agent_of(Responses().model)
    first = run(agent)
    assert run(agent, "What is 3+3?", previous_response_id=first.last_response_id).final_output


def test_settings_go_with_the_request(model: Any) -> None:
    given: dict[str, Any] = {
        "temperature": 0, "top_p": 0.1, "store": False, "metadata": {"purpose": "test"}, "max_tokens": 400,
        "reasoning": Reasoning(effort="low"), "verbosity": "low", "include_usage": True, "truncation": "auto",
        "extra_body": {"top_k": 5}, "extra_headers": {"X-Mine": "1"}, "extra_args": {"user": "emma"},
        "prompt_cache_retention": "24h", "top_logprobs": 2,
    }  # fmt: skip
    result = run(agent_of(model, model_settings=ModelSettings(**given)))
    (message,) = result.raw_responses[0].output
    (part,) = message.content
    assert b"".join(bytes(token.bytes) for token in part.logprobs).decode() == part.text
    assert result.context_wrapper.usage.output_tokens > 0


def test_a_text_that_is_cut_is_an_error_by_responses() -> None:
    with pytest.raises(ModelBehaviorError, match="max_output_tokens"):
        run(agent_of(Responses().model, model_settings=settings(max_tokens=3)))


@pytest.mark.parametrize("use_responses", [True, False])
def test_the_provider_of_the_environment(use_responses: bool) -> None:
    config = RunConfig(model_provider=OpenAIProvider(use_responses=use_responses), model_settings=settings())
    assert run(Agent(name="agent", model=MODEL), run_config=config).final_output
