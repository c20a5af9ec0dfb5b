"""Agents that answer with a text: runs, streams, sessions, settings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    Model,
    ModelBehaviorError,
    ModelSettings,
    OpenAIProvider,
    RunConfig,
    RunContextWrapper,
    Runner,
    SQLiteSession,
)
from openai import BadRequestError
from openai.types.shared import Reasoning
from samples import LONG, SUM, settings, wait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def run(agent: Agent[Any], given: Any = SUM, **options: Any) -> Any:
    return wait(Runner.run(agent, given, **options))


def brief(model: Model, **options: Any) -> Agent[Any]:
    return Agent(name="brief", model=model, **{"model_settings": settings(max_tokens=LONG), **options})


def test_a_run(model: Model) -> None:
    result = run(brief(model, instructions="Be brief."))
    assert isinstance(result.final_output, str)
    assert result.final_output


def test_a_run_without_a_loop(model: Model) -> None:
    assert Runner.run_sync(brief(model), SUM).final_output


def test_usage_is_counted(model: Model) -> None:
    usage = run(brief(model)).context_wrapper.usage
    assert usage.requests == 1
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens


def test_instructions_that_are_made_for_a_run(model: Model) -> None:
    def instruct(context: RunContextWrapper[str], _: Agent[str]) -> str:
        return f"Greet {context.context} in one short sentence."

    assert run(brief(model, instructions=instruct), context="Emma").final_output


def test_input_as_items(model: Model) -> None:
    items = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "input_text", "text": SUM}]},
    ]
    assert run(brief(model), items).final_output


def test_a_conversation_goes_on(model: Model) -> None:
    agent = brief(model)
    first = run(agent)
    second = run(agent, [*first.to_input_list(), {"role": "user", "content": "What is 3+3?"}])
    assert second.final_output
    assert len(second.to_input_list()) == 4


def test_a_session(model: Model) -> None:
    async def work() -> Any:
        session = SQLiteSession("emma")
        agent = brief(model)
        for text in (SUM, "What is 3+3?"):
            await Runner.run(agent, text, session=session)
        return await session.get_items()

    assert [item["role"] for item in wait(work())] == ["user", "assistant"] * 2


def test_a_conversation_goes_on_by_id(responses: Model) -> None:
    async def work() -> Any:
        agent = brief(responses)
        first = await Runner.run(agent, SUM)
        assert first.last_response_id
        return await Runner.run(agent, "What is 3+3?", previous_response_id=first.last_response_id)

    assert wait(work()).final_output


def test_a_stream(model: Model) -> None:
    async def work() -> tuple[str, Any]:
        agent = brief(model, model_settings=settings(max_tokens=LONG, include_usage=True))
        result = Runner.run_streamed(agent, SUM)
        text = ""
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                text += event.data.delta
        return text, result

    text, result = wait(work())
    assert text == result.final_output != ""
    assert result.context_wrapper.usage.output_tokens > 0


def test_the_events_of_a_stream(model: Model) -> None:
    async def work() -> list[str]:
        result = Runner.run_streamed(brief(model), SUM)
        return [
            event.type if event.type != "run_item_stream_event" else event.name
            async for event in result.stream_events()
        ]

    kinds = wait(work())
    assert kinds[0] == "agent_updated_stream_event"
    assert "message_output_created" in kinds


def test_a_stream_that_is_left(model: Model) -> None:
    async def work() -> Any:
        result = Runner.run_streamed(brief(model, model_settings=settings(max_tokens=1000)), SUM)
        events: AsyncIterator[Any] = result.stream_events()
        async for _ in events:
            result.cancel()
        return await Runner.run(brief(model), SUM)

    assert wait(work()).final_output


SETTINGS: dict[str, dict[str, Any]] = {
    "sampling": {"temperature": 0.7, "top_p": 0.1},
    "penalties": {"frequency_penalty": 0.0, "presence_penalty": 0.0},
    "storage": {"store": False},
    "metadata": {"metadata": {"purpose": "test"}},
    "reasoning": {"reasoning": Reasoning(effort="low")},
    "verbosity": {"verbosity": "low"},
    "usage": {"include_usage": True},
    "truncation": {"truncation": "auto"},
    "parallel calls": {"parallel_tool_calls": False},
    "no tools": {"tool_choice": "none"},
    "a body of one's own": {"extra_body": {"top_k": 5}},
    "headers": {"extra_headers": {"X-Mine": "1"}},
    "more arguments": {"extra_args": {"user": "emma"}},
    "caching": {"prompt_cache_retention": "24h"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(model: Model, name: str) -> None:
    given = ModelSettings(**{"max_tokens": LONG, "temperature": 0, **SETTINGS[name]})
    assert run(brief(model, model_settings=given)).final_output


def test_penalties_of_chat_completions_change_the_sampling(model: Model) -> None:
    given = settings(max_tokens=LONG, frequency_penalty=0.5, presence_penalty=0.5)
    if type(model).__name__ == "OpenAIChatCompletionsModel":
        assert run(brief(model, model_settings=given)).final_output


def test_log_probabilities(model: Model) -> None:
    given = settings(max_tokens=LONG, top_logprobs=2)
    (message,) = run(brief(model, model_settings=given)).raw_responses[0].output
    (part,) = message.content
    assert b"".join(bytes(token.bytes) for token in part.logprobs).decode() == part.text
    assert all(len(token.top_logprobs) == 2 for token in part.logprobs)


def test_an_answer_that_is_cut_is_an_error_by_responses(responses: Model) -> None:
    with pytest.raises(ModelBehaviorError, match="max_output_tokens"):
        run(brief(responses, model_settings=settings(max_tokens=3)))


def test_what_is_out_of_range(model: Model) -> None:
    with pytest.raises(BadRequestError):
        run(brief(model, model_settings=ModelSettings(temperature=3)))


@pytest.mark.parametrize("use_responses", [True, False])
def test_the_provider_of_the_environment(use_responses: bool) -> None:
    import os

    async def work() -> Any:
        provider = OpenAIProvider(use_responses=use_responses)
        agent: Agent[Any] = Agent(name="brief", model=os.environ["CONSTRAIN_MODEL"])
        config = RunConfig(model_provider=provider, model_settings=settings(max_tokens=LONG))
        return await Runner.run(agent, SUM, run_config=config)

    assert wait(work()).final_output


def test_many_runs_at_once(model: Model) -> None:
    async def work() -> list[Any]:
        agent = brief(model)
        return await asyncio.gather(*(Runner.run(agent, f"What is {number}+{number}?") for number in range(2, 6)))

    assert all(result.final_output for result in wait(work()))
