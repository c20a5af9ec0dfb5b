"""Tools: choices between them, results, and the package's own loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import BadRequestError, beta_tool
from samples import MOVE, QUESTION, TOOLS, WAIT, calls_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from anthropic import Anthropic


def test_any_tool(create: Callable[..., Any]) -> None:
    assert calls_of(create(tools=TOOLS, tool_choice={"type": "any"}))


@pytest.mark.parametrize("name", ["move", "wait"])
def test_a_forced_tool(create: Callable[..., Any], name: str) -> None:
    message = create(tools=TOOLS, tool_choice={"type": "tool", "name": name})
    assert [call.name for call in calls_of(message)] == [name]


def test_one_call_at_most(create: Callable[..., Any]) -> None:
    choice = {"type": "any", "disable_parallel_tool_use": True}
    assert len(calls_of(create(tools=TOOLS, tool_choice=choice))) == 1


def test_no_call(create: Callable[..., Any]) -> None:
    assert not calls_of(create(tools=TOOLS, tool_choice={"type": "none"}, max_tokens=20))


def test_the_model_may_choose(create: Callable[..., Any]) -> None:
    message = create(tools=TOOLS)
    assert calls_of(message) or message.content[0].text


def test_strict_tools_and_examples(create: Callable[..., Any]) -> None:
    tool = {**MOVE, "type": "custom", "strict": True, "input_examples": [{"to": "left", "steps": 1}]}
    assert calls_of(create(tools=[tool], tool_choice={"type": "any"}))


def test_results_go_back(create: Callable[..., Any]) -> None:
    first = create(tools=TOOLS, tool_choice={"type": "tool", "name": "move"})
    [call] = calls_of(first)
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "The way is blocked.", "is_error": True}]
    turns = [*QUESTION, first.to_param(), {"role": "user", "content": [*results, {"type": "text", "text": "And now?"}]}]
    assert create(tools=TOOLS, messages=turns, tool_choice={"type": "none"}, max_tokens=20).content


def test_the_loop_of_the_package(client: Anthropic, model: str) -> None:
    seen: list[tuple[str, int]] = []

    @beta_tool
    def move(to: str, steps: int) -> str:
        """Moves a piece."""
        seen.append((to, steps))
        return "Done."

    runner = client.beta.messages.tool_runner(
        model=model,
        max_tokens=60,
        messages=QUESTION,
        tools=[move],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        max_iterations=2,
    )
    messages = list(runner)
    assert [message.stop_reason for message in messages] == ["tool_use", "tool_use"]
    assert len(seen) >= 1
    assert all(isinstance(steps, int) for _, steps in seen)


def test_tools_of_anthropics_servers_are_left_out(create: Callable[..., Any]) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    assert create(tools=[WAIT, search])
    with pytest.raises(BadRequestError, match="web_search"):
        create(tools=[WAIT, search], tool_choice={"type": "tool", "name": "web_search"})
