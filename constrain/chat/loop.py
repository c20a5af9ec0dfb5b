"""``run_tools``: the model calls tools and is given their results, until it answers without a call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain._api import complete
from constrain._async import acomplete
from constrain._errors import ConstrainError
from constrain.chat.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from constrain._completion import Completion
    from constrain._models import AnyModel, Prompt
    from constrain._options import ChatOptions
    from constrain.chat.calls import ToolCall

MAX_STEPS = 10
"""Answers of the model in one run, unless ``max_steps`` says otherwise."""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What came of ``run_tools``.

    Attributes:
        reply: the last answer.
        messages: the whole conversation, ``reply`` included: the prompt of a next question, once that is added.
        completions: all answers of the model, in order.
    """

    reply: Reply
    messages: list[dict[str, Any]]
    completions: tuple[Completion, ...]

    @property
    def value(self) -> Any:
        """The text of the last answer, or the value of ``schema``."""
        return self.reply.content


def run_tools(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    max_steps: int = MAX_STEPS,
    context: Any = None,
    show_error: Callable[[ToolCall, Exception], str] | None = None,
    **options: Unpack[ChatOptions],
) -> ToolRun:
    """Has a model answer a prompt with the help of tools: runs what it calls and shows it the results.

    Args:
        model: as for ``complete``.
        prompt: as for ``complete``.
        schema: what answers without calls must be, as for ``complete``.
        options: as for ``complete``, with ``tools``. ``tool_choice`` is for the first answer; from then on the model
            may choose.
        max_steps: the most answers of the model. The last of them cannot call any more, so there always is a reply.
        context: handed to tools that take one.
        show_error: the text that the model is given of an exception in a tool, ``Error: ...`` by default. What it
            raises itself, ends the run, as Ctrl-C does.

    Raises as ``complete`` does.

    >>> def double(number: int) -> int:
    ...     return 2 * number
    >>> run = run_tools(None, "What is 7 doubled?", tools=[double], tool_choice="required", max_steps=2, max_tokens=60)
    >>> run.messages[1]["tool_calls"][0]["function"]["name"], run.messages[2]["role"]
    ('double', 'tool')
    """
    state = _State(prompt, options, max_steps)
    while True:
        completion = complete(model, state.messages, schema=schema, **state.step())
        for call in state.note(completion):
            try:
                result = result_text(call.call(context=context))
            except Exception as error:  # noqa: BLE001 - whatever a tool raises is shown to the model
                result = _shown(call, error, show_error)
            state.answer(call, result)
        if state.is_done:
            return state.outcome()


async def arun_tools(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    max_steps: int = MAX_STEPS,
    context: Any = None,
    show_error: Callable[[ToolCall, Exception], str] | None = None,
    **options: Unpack[ChatOptions],
) -> ToolRun:
    """``run_tools`` for asynchronous code; the calls of one answer run side by side."""
    state = _State(prompt, options, max_steps)

    async def run(call: ToolCall) -> str:
        try:
            return result_text(await call.acall(context=context))
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is shown to the model
            return _shown(call, error, show_error)

    while True:
        completion = await acomplete(model, state.messages, schema=schema, **state.step())
        calls = state.note(completion)
        for call, result in zip(calls, await asyncio.gather(*map(run, calls)), strict=True):
            state.answer(call, result)
        if state.is_done:
            return state.outcome()


def result_text(result: Any) -> str:
    """The result of a tool as the model reads it: a text as it is, anything else as JSON (or as its ``str``)."""
    if isinstance(result, str):
        return result
    from pydantic_core import to_json

    return to_json(result, fallback=str).decode()


class _State:
    """A run between two steps."""

    def __init__(self, prompt: Prompt, options: ChatOptions, max_steps: int) -> None:
        if not options.get("tools"):
            raise ValueError("run_tools needs tools; without them, there is complete")
        if max_steps < 1:
            raise ValueError(f"max_steps is {max_steps}; it must be 1 or more")
        start = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        self.messages: list[dict[str, Any]] = [dict(message) for message in start]
        self.is_done = False
        self._options = options
        self._left = max_steps
        self._completions: list[Completion] = []

    def step(self) -> ChatOptions:
        """The options of the next answer."""
        options: ChatOptions = {**self._options}
        if self._completions:
            options["tool_choice"] = "auto"
        if self._left == 1 and (self._completions or options.get("tool_choice") in (None, "auto")):
            options["tool_choice"] = "none"
        return options

    def note(self, completion: Completion) -> tuple[ToolCall, ...]:
        """Takes an answer in; returns the calls to run."""
        self._left -= 1
        self._completions.append(completion)
        reply = self.reply
        self.messages.append(reply.message())
        self.is_done = not reply.calls or self._left == 0
        return reply.calls

    def answer(self, call: ToolCall, result: str) -> None:
        """Takes the result of a call in."""
        self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    @property
    def reply(self) -> Reply:
        """The last one."""
        reply = self._completions[-1].value
        assert isinstance(reply, Reply)
        return reply

    def outcome(self) -> ToolRun:
        """What came of it."""
        return ToolRun(self.reply, self.messages, tuple(self._completions))


def _shown(call: ToolCall, error: Exception, show: Callable[[ToolCall, Exception], str] | None) -> str:
    if show is not None:
        return show(call, error)
    text = error.message if isinstance(error, ConstrainError) else str(error)
    return f"Error: {type(error).__name__}: {text}"
